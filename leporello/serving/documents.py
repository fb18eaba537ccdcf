"""Stores the documents that are open in the page, including files added in the browser."""

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
from leporello.serving.access import limited
from leporello.serving.tools import as_utf8, name_of
from leporello.text.outline import place_of_span

_PIECE = 20_000  # characters of text per response
_PASSAGES, _EXCERPT = 200, 600  # passages per answer, characters per passage
_MARGIN = re.compile(r"[\x00-\x1f\x7f/\\]+")


class DocumentEntry(BaseModel):
    """An open document."""

    number: int = Field(description="Number of the document in requests.")
    name: str = Field(description="Name of the file or collection.")
    length: int = Field(description="Length of its text in characters.")
    notes: list[str] = Field(description="Content of the file that is not text, and guesses.")
    follows_up: bool = Field(description="Whether the page supports follow-up questions.")


@dataclass
class OpenDocuments:
    """Conversations by number, one per document.

    Attributes:
        sessions: Conversations; the first is about the files from the command line.
        largest: Maximum size of an added file in bytes.
        room: Remaining bytes for added files.
    """

    sessions: list[Session]
    largest: int = 64 * 2**20
    room: int = field(default=256 * 2**20)

    async def add(self, name: str, data: AsyncIterator[bytes]) -> int:
        """Adds a file and returns its number; the copy on disk is deleted after loading.

        Raises:
            UserError: The file is too large, or cannot be read.
        """
        with TemporaryDirectory(prefix="leporello-") as folder:
            path = Path(folder) / _file_name(name)
            await self._write(path, data)
            try:
                document = await run_in_threadpool(load, path)
            except UserError as error:
                # The folder is deleted when the message appears.
                raise UserError(str(error).replace(f"{folder}/", "")) from None
        self.sessions.append(self.sessions[0].about(document))
        return len(self.sessions) - 1

    async def _write(self, path: Path, data: AsyncIterator[bytes]) -> None:
        limit, size = min(self.largest, self.room), 0
        self.room -= limit  # reserved first, since several files may arrive at once
        try:
            with path.open("wb") as file:
                async for block in limited(data, limit, path.name):
                    size += file.write(block)
        except BaseException:
            size = 0
            raise
        finally:
            self.room += limit - size


def _file_name(name: str) -> str:
    """Returns a safe file name without folders, with the original suffix."""
    path = Path(_MARGIN.sub("_", name.replace("\\", "/").rpartition("/")[2]) or "file")
    return f"{path.stem[:50].lstrip('.') or 'file'}{path.suffix[:12]}"


def about(number: int, session: Session) -> DocumentEntry:
    """Returns the description of an open document."""
    document = session.document
    return DocumentEntry(
        number=number,
        name=as_utf8(document.id),
        length=len(document.text),
        notes=[*map(as_utf8, (*document.notes, *loss_lines(document.losses)))],
        follows_up=session.follows_up,
    )


def turn(asked: str, answer: Answer) -> dict[str, Any]:
    """Returns a question and its answer for the page, with excerpts of long passages."""
    row = answer.row()
    passages = [
        {**passage, "text": passage["text"][:_EXCERPT]} for passage in row["passages"][:_PASSAGES]
    ]
    texts = {"asked": asked, "told": answer.told, "ledger": [*answer.ledger]}
    return {**row, **texts, "passages": passages}


def piece(document: Document, start: int, end: int) -> dict[str, Any]:
    """Returns a range of the text, its place, and the places that begin in it."""
    start = max(0, min(start, len(document.text)))
    end = max(start, min(end, start + _PIECE, len(document.text)))
    all_places: list[Member | Place] = [*document.members, *document.places]
    places = [
        {"name": name_of(document, place), "start": place.start}
        for place in all_places
        if start <= place.start < end
    ]
    text, name = document.text[start:end], place_of_span(document, Span(start, end))
    return {"start": start, "text": text, "place": name, "places": places}
