"""Web application of the page, and the local server that runs it."""

import asyncio
import json
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from leporello.core.environment.input_limits import COUNT, NUMBER_LETTERS, count_of
from leporello.core.errors import Stopped, UserError, counted
from leporello.engine.progress import Listener
from leporello.engine.reading import ReadStatistics
from leporello.runs.ask import Session
from leporello.serving.access import MOST_IDLE, AccessControl, LimitedConnection, body
from leporello.serving.documents import OpenDocuments, piece, turn
from leporello.serving.http_api import refused, tool_routes

_HERE = Path(__file__).parent
_ASSETS = {
    "/": ("text/html", [_HERE / "page.html"]),
    "/page.js": ("text/javascript", [_HERE / "page.js"]),
    "/server.js": ("text/javascript", [_HERE / "server.js"]),
    "/text.js": ("text/javascript", [_HERE / "text.js"]),
    "/page.css": ("text/css", [_HERE.parent / "report" / "page.css", _HERE / "page.css"]),
}
_LONGEST = 40_000  # bytes of a question


def application(documents: OpenDocuments) -> Starlette:
    """Returns the application without access control, which `AccessControl` adds."""
    answers = _Answers(documents)
    routes = [
        *(Route(path, partial(_asset, *asset)) for path, asset in _ASSETS.items()),
        Route("/documents", answers.list_documents),
        Route("/documents", answers.add, methods=["POST"]),
        *tool_routes(answers.session),
        Route("/documents/{number}", answers.turns),
        Route("/documents/{number}/text", answers.text),
        Route("/documents/{number}/pdf", answers.pdf),
        Route("/documents/{number}/ask", answers.ask, methods=["POST"]),
    ]
    handlers = dict.fromkeys((HTTPException, UserError, Exception), refused)
    return Starlette(routes=routes, exception_handlers={**handlers})


async def _asset(kind: str, files: list[Path], _: Request) -> Response:
    return Response("\n".join(file.read_text("utf-8") for file in files), media_type=kind)


def _json(value: Any) -> Response:  # noqa: ANN401 -- any JSON
    # As ASCII, because UTF-8 cannot encode the lone surrogates of broken files.
    return Response(json.dumps(value), media_type="application/json")


class _Answers:
    def __init__(self, documents: OpenDocuments) -> None:
        self.documents = documents

    async def list_documents(self, _: Request) -> Response:
        numbers = range(len(self.documents.sessions))
        entries = [self.documents.about(number).model_dump() for number in numbers]
        return _json({"documents": entries, "largest": self.documents.largest})

    async def add(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        number = await self.documents.add(name, request.stream())
        return _json(self.documents.about(number).model_dump())

    async def turns(self, request: Request) -> Response:
        return _json([turn(question, answer) for question, answer in self._session(request).turns])

    async def text(self, request: Request) -> Response:
        start, end = (
            _number(name, request.query_params.get(name, "")) for name in ("start", "end")
        )
        document = self._session(request).document
        # In a thread, since the first piece of a document divides all of it into blocks.
        return _json(await run_in_threadpool(piece, document, start, end))

    async def pdf(self, request: Request) -> Response:
        self._session(request)
        number = _number("number", request.path_params["number"])
        offset = _number("at", request.query_params.get("at", ""))
        try:
            data, page = await run_in_threadpool(self.documents.pdf, number, offset)
        except UserError as error:
            raise HTTPException(404, str(error)) from None
        return Response(data, media_type="application/pdf", headers={"x-page": str(page)})

    async def ask(self, request: Request) -> Response:
        session = self._session(request)
        content = await body(request, _LONGEST, "the question")
        question = content.decode("utf-8", "replace").strip()
        return StreamingResponse(_steps(session, question), media_type="application/x-ndjson")

    def session(self, number: int) -> Session:
        """Returns the conversation about a document, or raises `HTTPException`."""
        if number >= len(self.documents.sessions):
            raise HTTPException(404, f"No document has the number {number}; /documents lists them.")
        return self.documents.sessions[number]

    def _session(self, request: Request) -> Session:
        return self.session(_number("a document", request.path_params["number"]))


def _number(name: str, text: str) -> int:
    if not text.isdecimal() or (number := count_of(int(text[:NUMBER_LETTERS]))) is None:
        raise HTTPException(400, f"{name} must be a number of at most {COUNT:,}")
    return number


class _Steps(Listener):
    """Forwards progress events of a session, which can be cancelled."""

    def __init__(self, send: Callable[[str], None]) -> None:
        super().__init__()
        self.send = send

    def reading(self, reads: int) -> None:
        self.send(f"reading {counted(reads, 'input')}")

    def has_read(self, statistics: ReadStatistics) -> None:
        self.send(f"{statistics.reads + statistics.cached} read")


async def _steps(session: Session, question: str) -> AsyncIterator[bytes]:
    """Yields one line of JSON per step; the last line has the answer or an error."""
    events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    # The engine is synchronous and needs its own thread. If the browser leaves, the listener ends
    # the thread at its next step (decision 43).
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

    # A daemon thread, so that a long read of a model does not delay the end of the server.
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


_SECONDS = 2  # grace period of open connections when the server stops


def serve(
    session: Session,
    port: int = 0,
    ready: Callable[[str], None] = print,
    originals: Mapping[str, Callable[[], bytes]] = MappingProxyType({}),
) -> None:
    """Serves a conversation on 127.0.0.1 until Ctrl-C or SIGTERM; port 0 chooses a free port.

    `ready` receives the address with the token; for `originals` see `AskSettings.originals`.
    """
    import uvicorn

    try:
        # Bound here rather than by uvicorn: the address has the port.
        listening = socket.create_server(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        raise UserError(f"port {port} of 127.0.0.1 is not available: {error}") from None
    with listening:
        # Other users of this machine can connect to 127.0.0.1 too, and must not read the documents.
        port, token = listening.getsockname()[1], secrets.token_urlsafe(32)
        app = AccessControl(
            application(OpenDocuments([session], originals=[originals])), token, port
        )
        config = uvicorn.Config(
            app, http=LimitedConnection, ws="none", lifespan="off", log_config=None,
            access_log=False, server_header=False, timeout_graceful_shutdown=_SECONDS,
            backlog=MOST_IDLE,
        )  # fmt: skip
        # In the fragment, which browsers do not send.
        ready(f"http://127.0.0.1:{port}/#token={token}")
        uvicorn.Server(config).run([listening])
