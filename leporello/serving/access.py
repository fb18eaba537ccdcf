"""Access control of the page's server: a token, the host, the origin, and limits on clients."""

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from leporello.core.errors import UserError

PUBLIC = ("/", "/page.js", "/server.js", "/text.js", "/page.css", "/docs", "/openapi.json")
"""Addresses without the token: they contain no text of documents."""

_IDLE = 10.0  # seconds until a client has sent the headers of its first request
MOST_IDLE = 64
"""Clients that have not; also those that wait to be accepted."""

_log = logging.getLogger(__name__)

# No script or style from elsewhere: the page shows text of documents that nobody has checked.
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
    """Refuses requests for another host, without the bearer token, or from pages of other sites.

    A cookie would go to the servers of other users too, as browsers send it to all ports of a host.
    """

    app: ASGIApp
    token: str
    port: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuses a request, or passes it to the application."""
        if scope["type"] != "http":
            raise ValueError(f"the protocol {scope['type']} is not supported")
        request = Request(scope)
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        # Takes the same time for any text, which would otherwise reveal the token step by step.
        has_token = hmac.compare_digest(bearer.encode(), self.token.encode())
        refusal = self._refusal(request, has_token=has_token)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                if refusal or not has_token:  # strangers keep no connection, and send no body
                    headers["connection"] = "close"
            await send(message)

        app = JSONResponse({"error": refusal}, 403) if refusal else self.app
        await app(scope, receive, send_with_headers)

    def _refusal(self, request: Request, *, has_token: bool) -> str:
        """Returns the reason to refuse a request; empty if it is accepted."""
        # With DNS rebinding, another site's name resolves to this machine; `host` reveals it.
        hosts = [f"{name}:{self.port}" for name in ("127.0.0.1", "localhost")]
        if request.headers.get("host") not in hosts:
            return "This server accepts only requests to 127.0.0.1 or localhost."
        if request.url.path not in PUBLIC and not has_token:
            return "Open the address that `serve` printed, or send its token as a bearer token."
        origin = request.headers.get("origin")
        if origin is not None and origin not in [f"http://{host}" for host in hosts]:
            return "Requests from pages of other sites are not allowed."
        return ""


class LimitedConnection(H11Protocol):
    """Connection that is closed if its client sends no request.

    Clients without the token could otherwise use up the files of the process.
    """

    _idle: dict["LimitedConnection", asyncio.TimerHandle] = {}  # noqa: RUF012 -- of all connections

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 -- as uvicorn
        """Starts the time limit; closes the longest waiting connection if there are too many."""
        super().connection_made(transport)
        self._idle[self] = asyncio.get_running_loop().call_later(_IDLE, self._close)
        if len(self._idle) > MOST_IDLE:
            next(iter(self._idle))._close()

    def handle_events(self) -> None:
        """Ends the time limit when the headers are complete."""
        super().handle_events()
        if self.cycle is not None:
            self._forget()

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the time limit."""
        self._forget()
        super().connection_lost(exc)

    def _close(self) -> None:
        self._forget()
        _log.warning("%s:%d: closed, since it sent no request", *(self.client or ("client", 0)))
        self.transport.abort()

    def _forget(self) -> None:
        if timer := self._idle.pop(self, None):
            timer.cancel()


class TooLargeError(UserError):
    """A request is larger than the server accepts."""


async def limited(blocks: AsyncIterator[bytes], limit: int, name: str) -> AsyncIterator[bytes]:
    """Yields the blocks of a request; raises TooLargeError when it exceeds a limit in bytes."""
    size = 0
    async for block in blocks:
        size += len(block)
        if size > limit:
            raise TooLargeError(f"{name}: exceeds the limit of {limit:,} bytes")
        yield block


async def body(request: Request, limit: int, name: str = "the request") -> bytes:
    """Returns the body of a request; `TooLargeError` if it exceeds the limit in bytes."""
    return b"".join([block async for block in limited(request.stream(), limit, name)])
