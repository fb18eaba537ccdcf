"""What the page asks for: itself, stretches of documents, files taken in, answers step by step."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from leporello.core.errors import Stopped, UserError
from leporello.engine.progress import Cancellable
from leporello.engine.reading import ReadStatistics
from leporello.runs.ask import Session
from leporello.serving.documents import (
    OpenDocuments,
    TooLargeError,
    about,
    piece,
    turn,
)
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
