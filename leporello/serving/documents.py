"""What is open in the page: the files that were given, and those that were added in the browser."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from leporello.core.coverage import Span, loss_lines
from leporello.core.errors import UserError
from leporello.core.records import Document, Member, Place
from leporello.loaders.files import load
from leporello.runs.ask import Answer, Session
from leporello.serving.tools import as_utf8, name_of
from leporello.text.outline import place_of_span

_PIECE = 20_000  # characters that are sent at once, at most
_PASSAGES, _EXCERPT = 200, 600  # of an answer; characters of each
_MARGIN = re.compile(r"[\x00-\x1f\x7f/\\]+")


class DocumentEntry(BaseModel):
    """A document that can be asked."""

    number: int = Field(description="Number by which requests name it.")
    name: str = Field(description="Name of the file or collection.")
    length: int = Field(description="Characters of its text.")
    notes: list[str] = Field(description="What of the file is no text, or was guessed.")
    follows_up: bool = Field(description="Whether its page understands follow-ups.")


class TooLargeError(UserError):
    """A file is larger than the page takes."""


@dataclass
class OpenDocuments:
    """Conversations by number, one a document.

    Attributes:
        sessions: Conversations; the first is about the files that were given.
        largest: Bytes of a file that is added, at most.
        room: Bytes of files that may still be added.
    """

    sessions: list[Session]
    largest: int = 64 * 2**20
    room: int = field(default=256 * 2**20)

    async def add(self, name: str, data: AsyncIterator[bytes]) -> int:
        """Takes a file in, which is on disk no longer than it is read; returns its number.

        Raises:
            UserError: It is too large, or cannot be read.
        """
        with TemporaryDirectory(prefix="leporello-") as folder:
            path = Path(folder) / _file_name(name)
            await self._write(path, data)
            try:
                document = await run_in_threadpool(load, path)
            except UserError as error:
                raise UserError(str(error).replace(f"{folder}/", "")) from None
        self.sessions.append(self.sessions[0].about(document))
        return len(self.sessions) - 1

    async def _write(self, path: Path, data: AsyncIterator[bytes]) -> None:
        size, most = 0, min(self.largest, self.room)
        with path.open("wb") as file:
            async for block in data:
                size += len(block)
                if size > most:
                    raise TooLargeError(f"{path.name}: is larger than the {most:,} bytes left")
                file.write(block)
        self.room -= size


def _file_name(name: str) -> str:
    """Returns a name that stays in its folder, with the suffix that it had."""
    own = Path(_MARGIN.sub("_", name.replace("\\", "/").rpartition("/")[2]) or "file")
    return f"{own.stem[:50].lstrip('.') or 'file'}{own.suffix[:12]}"


def about(number: int, session: Session) -> DocumentEntry:
    """Returns what is told of a document that is open."""
    document = session.document
    return DocumentEntry(
        number=number,
        name=as_utf8(document.id),
        length=len(document.text),
        notes=[*map(as_utf8, (*document.notes, *loss_lines(document.losses)))],
        follows_up=session.follows_up,
    )


def turn(asked: str, answer: Answer) -> dict[str, Any]:
    """Returns a question and its answer as the page shows them: long passages by excerpt."""
    row = answer.row()
    passages = [
        {**passage, "text": passage["text"][:_EXCERPT]} for passage in row["passages"][:_PASSAGES]
    ]
    told = {"asked": asked, "told": answer.told, "ledger": [*answer.ledger]}
    return {**row, **told, "passages": passages}


def piece(document: Document, start: int, end: int) -> dict[str, Any]:
    """Returns a stretch of the text, where it stands, and the places that begin in it."""
    start = max(0, min(start, len(document.text)))
    end = max(start, min(end, start + _PIECE, len(document.text)))
    stretches: list[Member | Place] = [*document.members, *document.places]
    places = [
        {"name": name_of(document, stretch), "start": stretch.start}
        for stretch in stretches
        if start <= stretch.start < end
    ]
    place = place_of_span(document, Span(start, end))
    return {"start": start, "text": document.text[start:end], "place": place, "places": places}
