"""Reads every line in its place, and keeps the number of lines: for translation."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal

from leporello.combiners.stuff import arranged, read_with
from leporello.core.notes import note
from leporello.core.protocols import Targets
from leporello.core.records import Chunk, Combination, Document, Example, Hit, Read, Span

# Indentation, and the dash before a speaker's words: `- Who's there?`
_FRAME = re.compile(r"\s*(?:[-‐–—]{1,2}\s*(?=[^\s\-‐–—]))?")


@dataclass(frozen=True)
class LineByLine:
    """Reads lines, and replaces each line by its answer: translation line for line.

    Indentation, a speaker's dash, line ends and blank lines are copied from the document and not
    read, except with `unit: joined`. The answers to a line in several chunks are joined. A line
    without an answer, or that was not selected, becomes empty.
    docs/decisions/0015-line-for-line.md has the reasons.

    Attributes:
        unit: Unit to read. `line` reads all lines one by one. `joined` reads the lines of a chunk
            together and joins the answers by line breaks, whatever their number of lines (MuLD,
            section 4: "concatenated").
    """

    # Many tokenizers lose line breaks (T5, Marian), and one lost line would shift all later ones.
    unit: Literal["line", "joined"] = "line"

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one round of reads."""
        page = _LinePage.of(example.document)
        groups = [*_groups(page, hits)]
        parts = [part for _, lines in groups for part in lines]
        # Unselected lines are never copied, since they would pass for translations (decision 15).
        if len({part.line for part in parts}) < len(page.texts):
            note("lines that were not selected are not translated")
        is_joined = self.unit == "joined"
        spans = [span for span, _ in groups] if is_joined else [part.span for part in parts]
        chunks = (example.document.chunk(span.start, span.end) for span in spans)
        outputs = yield [read_with(example, [chunk]) for chunk in chunks]
        if is_joined:
            return "\n".join(output.text.strip() for output in outputs)
        # An empty answer leaves an empty line, not the original (decision 15).
        answers = (" ".join(filter(None, map(str.strip, o.text.splitlines()))) for o in outputs)
        return page.filled(zip(parts, answers, strict=True))

    def supervise(self, example: Example, reads: Sequence[Read]) -> Sequence[Targets]:
        """Returns for each read the lines of the references that correspond to its lines."""
        page = _LinePage.of(example.document)
        translations = [lines for text in example.references if (lines := page.opposite(text))]
        return [
            tuple(filter(None, (page.target(read, lines) for lines in translations))) or None
            for read in reads
        ]


@dataclass(frozen=True, slots=True)
class _LinePart:
    """Line to read, or a span within a line, with the number of the line."""

    line: int
    span: Span


@dataclass(frozen=True, slots=True)
class _LinePage:
    """Lines of a document that contain text; `texts` are without indentation and dash."""

    document: Document
    lines: Sequence[Span]
    texts: Sequence[Span]

    @classmethod
    def of(cls, document: Document) -> _LinePage:
        """Returns the page of a document."""
        text = document.text
        lines = [line for line in _lines(text) if text[line.start : line.end].strip()]
        frames = [_frame(text, line.start, line.end) for line in lines]
        ends = zip(lines, frames, strict=True)
        return cls(
            document, lines, [_stripped(text, line, start, line.end) for line, start in ends]
        )

    def filled(self, pairs: Iterable[tuple[_LinePart, str]]) -> str:
        """Returns the document's text with the lines replaced by their answers."""
        text, pieces, position = self.document.text, [""], 0
        answers = self._by_line(pairs)
        for number, (line, inner) in enumerate(zip(self.lines, self.texts, strict=True)):
            answer = answers.get(number, "")
            start = (inner if answer else line).start  # an unanswered line loses its dash too
            pieces += [text[position:start], answer]
            position = (inner if answer else line).end
        return "".join([*pieces, text[position:]])

    def opposite(self, reference: str) -> list[str]:
        """Returns the reference's line for each line; empty if the numbers of lines differ."""
        spans, translations = [*_lines(self.document.text)], reference.splitlines()
        # Such a reference would train the model on lines that do not correspond.
        if len(translations) != len(spans):
            return []
        starts = [span.start for span in spans]
        lines = [translations[bisect_right(starts, line.start) - 1] for line in self.lines]
        return [line[_frame(line, 0, len(line)) :].strip() for line in lines]

    def target(self, read: Read, translations: Sequence[str]) -> str:
        """Returns the target of a read; empty if it has part of a line, or a line without one."""
        [chunk] = read.passages
        assert isinstance(chunk, Chunk)
        first = bisect_right(self.texts, chunk.start, key=lambda text: text.end)
        last = bisect_left(self.texts, chunk.end, key=lambda text: text.start)
        lines = translations[first:last]
        # Half a line has no reference: nobody knows which half of the translation belongs to it.
        is_whole = chunk.start <= self.texts[first].start and self.texts[last - 1].end <= chunk.end
        return "\n".join(lines) if is_whole and all(lines) else ""

    def _by_line(self, pairs: Iterable[tuple[_LinePart, str]]) -> dict[int, str]:
        """Returns the answer to each line, joined from the answers to its parts."""
        joined, ends = dict[int, str](), dict[int, int]()
        for part, answer in sorted(pairs, key=lambda pair: pair[0].span):
            before, bare = joined.get(part.line, ""), self._bare(part, answer)
            # Scripts without spaces would otherwise get a blank where a chunk ended (decision 15).
            is_adjacent = not before or not bare or ends[part.line] == part.span.start
            joined[part.line] = f"{before}{'' if is_adjacent else ' '}{bare}"
            ends[part.line] = part.span.end
        return joined

    def _bare(self, part: _LinePart, answer: str) -> str:
        """Returns an answer without its dash, if the document's line has a dash before it."""
        start = self.texts[part.line].start
        frame = self.document.text[self.lines[part.line].start : start].strip()
        is_first = part.span.start == start
        # The dash is copied from the document, so a model that writes one too would double it.
        return answer[_frame(answer, 0, len(answer)) :] if frame and is_first else answer


def _groups(page: _LinePage, hits: Sequence[Hit]) -> Iterator[tuple[Span, list[_LinePart]]]:
    """Yields the text and lines of each chunk in document order; no part of a line comes twice."""
    text, covered = page.document.text, 0
    ends = [line.end for line in page.texts]
    for hit in arranged(hits, "document"):
        start, end = max(covered, hit.chunk.start), max(covered, hit.chunk.end)
        covered = end
        # By ends: a chunk may begin in the middle of a line, and this line counts too.
        first = bisect_right(ends, start)
        parts = [
            _LinePart(number, span)
            for number in range(first, bisect_left(page.texts, Span(end, end), first))
            if len(span := _stripped(text, page.texts[number], start, end))
        ]
        if len(parts) == 1:
            yield parts[0].span, parts
        elif parts:
            yield _stripped(text, Span(start, end), start, end), parts


def _lines(text: str) -> Iterator[Span]:
    """Yields all lines, without their line ends."""
    bounds = accumulate(map(len, text.splitlines(keepends=True)), initial=0)
    for (start, _), line in zip(pairwise(bounds), text.splitlines(), strict=True):
        yield Span(start, start + len(line))


def _frame(text: str, start: int, end: int) -> int:
    match = _FRAME.match(text, start, end)
    return match.end() if match else start


def _stripped(text: str, span: Span, start: int, end: int) -> Span:
    """Returns the part of a span within bounds, without surrounding white space."""
    start, end = max(start, span.start), min(end, span.end)
    piece = text[start:end]
    stripped = piece.strip()
    start += len(piece) - len(piece.lstrip()) if stripped else 0
    return Span(start, start + len(stripped))
