"""Who may see the page: a browser of this machine that was given the token, and no other site."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS: Mapping[str, str] = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


@dataclass(frozen=True, slots=True)
class AccessControl:
    """Lets a request through that names this server, has the token and comes from its own page.

    The token stands in the address at first and in a cookie afterwards; a program sends it as a
    bearer's.

    Attributes:
        app: Application behind it.
        token: Secret of this server.
        port: Port that it listens on.
    """

    app: ASGIApp
    token: str
    port: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request itself, or hands it on."""
        if scope["type"] != "http":
            raise ValueError(f"nothing here speaks {scope['type']}")
        request, cookie = Request(scope), f"leporello-{self.port}"
        arrives = request.url.path == "/" and self._is_token(request.query_params.get("token"))

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                if arrives:
                    value = f"{cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
                    headers.append("set-cookie", value)
            await send(message)

        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        known = arrives or any(map(self._is_token, (request.cookies.get(cookie), bearer)))
        refusal = self._refusal(request, known=known)
        page = request.url.path == "/"
        as_json = {"error": refusal}
        no = PlainTextResponse(refusal, 403) if page else JSONResponse(as_json, 403)
        answer: ASGIApp = no if refusal else self.app
        await answer(scope, receive, told)

    def _is_token(self, text: str | None) -> bool:
        return hmac.compare_digest((text or "").encode(), self.token.encode())

    def _refusal(self, request: Request, *, known: bool) -> str:
        """Returns why a request is refused; empty if it is not."""
        # A site whose name is made to lead here (DNS rebinding) says that name.
        hosts = [f"{name}:{self.port}" for name in ("127.0.0.1", "localhost")]
        if request.headers.get("host") not in hosts:
            return "This server answers to 127.0.0.1 alone."
        if not known:
            return "Open the address that `serve` printed, or send its token as a bearer's."
        origin = request.headers.get("origin")
        if origin is not None and origin not in [f"http://{host}" for host in hosts]:
            return "Another site's page asked for this."
        return ""
