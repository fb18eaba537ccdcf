"""Stores the documents that are open in the page, including files added in the browser."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import Field
from starlette.concurrency import run_in_threadpool

from leporello.core.coverage import Span, loss_lines
from leporello.core.errors import UserError
from leporello.core.records import Document, Member, Place
from leporello.loaders import Pdf
from leporello.loaders.files import load
from leporello.runs.ask import Answer, Session
from leporello.serving.access import limited
from leporello.serving.blocks import Block, blocks
from leporello.serving.marks import cells, ranges, separators
from leporello.serving.tools import Reply, name_of
from leporello.text.sentences import sentence_starts

_PIECE = 20_000  # characters of text per response
_PASSAGES, _EXCERPT = 200, 420  # passages per answer, characters per passage
_AROUND = 200  # characters on either side of an answer
_START = attrgetter("start")
_MARGIN = re.compile(r"[\x00-\x1f\x7f/\\]+")


class DocumentEntry(Reply):
    """An open document."""

    number: int = Field(description="Number of the document in requests.")
    name: str = Field(description="Name of the file or collection.")
    length: int = Field(description="Length of its text in characters.")
    notes: list[str] = Field(description="Content of the file that is not text, and guesses.")
    follows_up: bool = Field(description="Whether the page supports follow-up questions.")
    pdfs: list[tuple[int, int]] = Field(description="Characters (start, end) from PDF files.")


@dataclass
class OpenDocuments:
    """Conversations by number, one per document."""

    sessions: list[Session]  # the first is about the files from the command line
    largest: int = 64 * 2**20  # bytes of an added file
    room: int = 256 * 2**20  # remaining bytes for added files
    # For each document, functions that read its PDF files; see `AskSettings.originals`.
    originals: list[Mapping[str, Callable[[], bytes]]] = field(default_factory=lambda: [{}])

    async def add(self, name: str, data: AsyncIterator[bytes]) -> int:
        """Adds a file and returns its number; the copy on disk is deleted after loading."""
        with TemporaryDirectory(prefix="leporello-") as folder:
            path = Path(folder) / _file_name(name)
            await self._write(path, data)
            try:
                document = await run_in_threadpool(load, path)
                is_pdf = path.suffix.lower() in Pdf.suffixes
                data_of_pdf = path.read_bytes() if is_pdf else b""
            except UserError as error:
                # The folder is deleted when the message appears.
                raise UserError(str(error).replace(f"{folder}/", "")) from None
        self.sessions.append(self.sessions[0].about(document))
        self.originals.append({"": lambda: data_of_pdf} if data_of_pdf else {})
        return len(self.sessions) - 1

    def about(self, number: int) -> DocumentEntry:
        """Returns the description of an open document."""
        session = self.sessions[number]
        document = session.document
        return DocumentEntry(
            number=number,
            name=document.id,
            length=len(document.text),
            notes=[*document.notes, *loss_lines(document.losses)],
            follows_up=session.follows_up,
            pdfs=[(start, end) for start, end, _ in self._pdfs(number)],
        )

    def pdf(self, number: int, offset: int) -> tuple[bytes, int]:
        """Returns the PDF file that contains a character, and the number of its page from 1."""
        places = self.sessions[number].document.places
        for start, end, read in self._pdfs(number):
            if start <= offset < max(end, start + 1) and Pdf.begins.match(data := read()):
                first = bisect_left(places, start, key=_START)
                return data, max(1, bisect_right(places, offset, key=_START) - first)
        raise UserError("This text is not from a PDF file, or the file was replaced.")

    def _pdfs(self, number: int) -> Iterator[tuple[int, int, Callable[[], bytes]]]:
        """Yields the range of each PDF file in a document, and the function that reads the file."""
        document, originals = self.sessions[number].document, self.originals[number]
        files = [(m.name, m.start, m.end) for m in document.members]
        for name, start, end in files or [("", 0, len(document.text))]:
            if name in originals and (name or document.id).lower().endswith(Pdf.suffixes):
                yield start, end, originals[name]

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
    path = Path(_MARGIN.sub("_", name.replace("\\", "/").rpartition("/")[2]) or "file")
    return f"{path.stem[:50].lstrip('.') or 'file'}{path.suffix[:12]}"


def turn(asked: str, answer: Answer) -> dict[str, Any]:
    """Returns a question and its answer for the page, with the answer's sentence and excerpts."""
    row, document = answer.row(), answer.document
    passages = [
        {**passage, **_passage_excerpt(document, passage["span"], passage["text"], answer.spans)}
        for passage in row["passages"][:_PASSAGES]
    ]
    source = _excerpt(document, _sentences(document, answer.spans[0])) if answer.spans else None
    texts = {"asked": asked, "told": answer.told, "coverage_lines": [*answer.ledger]}
    return {**row, **texts, "found": answer.found, "source": source, "passages": passages}


def _passage_excerpt(
    document: Document, span: Mapping[str, int], text: str, answers: Sequence[Span]
) -> dict[str, Any]:
    start, end = span["start"], span["end"]
    if document.text[start:end] != text:  # written by an enricher
        return {"text": text[:_EXCERPT], "start": None, "ranges": []}
    inside = next((a for a in answers if start <= a.start < end), None)
    if inside and inside.end > start + _EXCERPT:
        start = max(start, inside.start - _AROUND)
    return _excerpt(document, Span(start, min(end, start + _EXCERPT)))


def _excerpt(document: Document, span: Span) -> dict[str, Any]:
    """Returns a range of the text without cut words, and its emphasis, which counts as spans do."""
    text = document.text
    start, end = span.start, span.end
    if start and text[start - 1 : start + 1].isalnum():
        start = max(start, text.find(" ", start, end) + 1)
    if end < len(text) and text[end - 1 : end + 1].isalnum():
        end = max(text.rfind(" ", start, end), start + 1)
    body = text[start:end]
    start, end = end - len(body.lstrip()), start + len(body.rstrip())
    near, _ = blocks(document, start, end)
    marks_of = [separators if block.kind == "table" else ranges for block in near]
    emphasis = [m for b, marks in zip(near, marks_of, strict=True) for m in marks(text, b)]
    breaks = [(b.start, b.end) for b in near if b.kind in ("lines", "code")]
    breaks += [(a.end, b.start) for a, b in pairwise(near)]
    emphasis += ((*span, "break") for span in breaks)
    within = [mark for mark in emphasis if mark[0] < end and start < mark[1]]
    return {"text": text[start:end], "start": start, "ranges": within}


def _sentences(document: Document, span: Span) -> Span:
    """Returns the sentences around an answer, or the row of a table."""
    near, _ = blocks(document, max(0, span.start - _AROUND), span.end + _AROUND)
    for block in near:
        for row in cells(document.text, block) if block.kind == "table" else ():
            if row and row[0][0] <= span.start < row[-1][1]:
                return Span(row[0][0], max(span.end, row[-1][1]))
    bounds = [at for block in near if block.kind == "heading" for at in (block.start, block.end)]
    low = max(0, span.start - _AROUND, *(at for at in bounds if at <= span.start))
    high = min(len(document.text), span.end + _AROUND, *(at for at in bounds if at >= span.end))
    ends = [low, *sentence_starts(document.text, low, high), high]
    first = bisect_right(ends, span.start) - 1
    last = bisect_left(ends, span.end)
    # An answer that is a complete sentence gets the sentences before and after it.
    if document.text[ends[first] : ends[last]].strip() == document.text[span.start : span.end]:
        first, last = max(0, first - 1), min(len(ends) - 1, last + 1)
    return Span(ends[first], ends[last])


def piece(document: Document, start: int, end: int) -> dict[str, Any]:
    """Returns a range extended to complete blocks, their text, and the places that begin in it."""
    chosen, span = blocks(document, start, max(start, min(end, start + _PIECE)))
    all_places: list[Member | Place] = [*document.members, *document.places]
    return {
        "start": span.start,
        "end": span.end,
        "text": document.text[span.start : span.end],
        "places": [
            {"name": name_of(document, place), "start": place.start}
            for place in all_places
            if span.start <= place.start < span.end
        ],
        "blocks": [_block_fields(document.text, block) for block in chosen],
    }


def _block_fields(text: str, block: Block) -> dict[str, Any]:
    return {
        "kind": block.kind,
        "start": block.start,
        "end": block.end,
        "level": block.level,
        "ranges": ranges(text, block),
        "rows": cells(text, block) if block.kind == "table" else [],
        "names": block.names,
    }
