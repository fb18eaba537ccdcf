"""Application of the page, and the server that runs it on this machine until it is stopped."""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leporello.core.errors import Stopped, UserError
from leporello.engine.progress import Cancellable
from leporello.engine.reading import ReadStatistics
from leporello.runs.ask import Session
from leporello.serving.documents import OpenDocuments, TooLargeError, about, piece, turn
from leporello.serving.http_api import refused, tool_routes

_HERE = Path(__file__).parent
_ASSETS = {
    "/": ("text/html", [_HERE / "page.html"]),
    "/page.js": ("text/javascript", [_HERE / "page.js"]),
    "/page.css": ("text/css", [_HERE.parent / "report" / "page.css", _HERE / "page.css"]),
}
_LONGEST = 10_000  # characters of a question


def application(documents: OpenDocuments) -> Starlette:
    """Returns the application, which whoever reaches it may ask anything."""
    answers = _Answers(documents)
    routes = [
        *(Route(path, partial(_asset, *asset)) for path, asset in _ASSETS.items()),
        Route("/documents", answers.listed),
        Route("/documents", answers.add, methods=["POST"]),
        *tool_routes(answers.session),
        Route("/documents/{number:int}", answers.turns),
        Route("/documents/{number:int}/text", answers.text),
        Route("/documents/{number:int}/ask", answers.ask, methods=["POST"]),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: refused, Exception: refused})


async def _asset(kind: str, files: list[Path], _: Request) -> Response:
    return Response("\n".join(file.read_text("utf-8") for file in files), media_type=kind)


def _json(value: Any, status: int = 200) -> Response:  # noqa: ANN401 -- any JSON
    # In ASCII: a broken file's lone surrogates have no UTF-8.
    return Response(json.dumps(value), status, media_type="application/json")


class _Answers:
    def __init__(self, documents: OpenDocuments) -> None:
        self.documents = documents

    async def listed(self, _: Request) -> Response:
        listed = [about(*entry).model_dump() for entry in enumerate(self.documents.sessions)]
        return _json({"documents": listed, "largest": self.documents.largest})

    async def add(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        try:
            number = await self.documents.add(name, request.stream())
        except UserError as error:
            return _json({"error": str(error)}, 413 if isinstance(error, TooLargeError) else 422)
        return _json(about(number, self.documents.sessions[number]).model_dump())

    async def turns(self, request: Request) -> Response:
        return _json([turn(*each) for each in self._session(request).turns])

    async def text(self, request: Request) -> Response:
        start, end = (_number(request, name) for name in ("start", "end"))
        return _json(piece(self._session(request).document, start, end))

    async def ask(self, request: Request) -> Response:
        session = self._session(request)
        question = (await request.body()).decode("utf-8", "replace").strip()
        if len(question) > _LONGEST:
            return _json({"error": f"a question has {_LONGEST:,} characters at most"}, 413)
        return StreamingResponse(_steps(session, question), media_type="application/x-ndjson")

    def session(self, number: int) -> Session:
        """Returns the conversation about a document, or refuses the request."""
        if number >= len(self.documents.sessions):
            raise HTTPException(404, f"There is no document {number}; /documents lists them.")
        return self.documents.sessions[number]

    def _session(self, request: Request) -> Session:
        return self.session(request.path_params["number"])


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "")
    if not text.isdecimal():
        raise HTTPException(400, f"{name} must be a number")
    return int(text)


class _Steps(Cancellable):
    """Hands on what a session does; ends it once nobody listens."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.tell = tell

    def reading(self, reads: int) -> None:
        self.tell(f"reading {reads} input{'s' * (reads > 1)}")

    def has_read(self, statistics: ReadStatistics) -> None:
        self.tell(f"{statistics.reads + statistics.cached} read")


async def _steps(session: Session, question: str) -> AsyncIterator[bytes]:
    """Yields a line of JSON a step, the last of which has the answer or an error."""
    events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def send(event: dict[str, Any]) -> None:
        loop.call_soon_threadsafe(events.put_nowait, event)

    steps = _Steps(lambda text: send({"step": text}))

    def work() -> None:
        try:
            answer = session.ask(question, steps)
        except (UserError, Stopped) as error:
            send({"error": str(error)})
        except Exception as error:
            send({"error": f"{type(error).__name__}: {error}"})
            raise
        else:
            send({"answer": turn(question, answer)})

    # A daemon: what a model reads for long does not keep the server from ending.
    threading.Thread(target=work, daemon=True).start()
    event: dict[str, Any] = {"step": "looking for passages"}
    try:
        while True:
            yield json.dumps(event).encode() + b"\n"
            if "step" not in event:
                return
            event = await events.get()
    finally:
        steps.cancel()


_SECONDS = 2  # that open connections have when it ends


def serve(session: Session, port: int = 0, ready: Callable[[str], None] = print) -> None:
    """Serves a conversation until Ctrl-C or SIGTERM.

    Args:
        session: Conversation about the files that are given.
        port: Port on 127.0.0.1; 0 takes a free one.
        ready: Function that is told the address, with its token, once connections are taken.

    Raises:
        UserError: The port is taken, or may not be used.
        KeyboardInterrupt: It was told to end, and has.
    """
    import uvicorn

    try:
        listening = socket.create_server(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        raise UserError(f"port {port} of 127.0.0.1 cannot be had: {error}") from None
    with listening:
        port, token = listening.getsockname()[1], secrets.token_urlsafe(32)
        app = AccessControl(application(OpenDocuments([session])), token, port)
        config = uvicorn.Config(
            app, http="h11", ws="none", lifespan="off", log_config=None, access_log=False,
            server_header=False, timeout_graceful_shutdown=_SECONDS,
        )  # fmt: skip
        ready(f"http://127.0.0.1:{port}/?token={token}")
        uvicorn.Server(config).run([listening])


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
