"""Every line read in its place: as many lines out as in, for translation."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal

from leporello.combiners.stuff import arranged, asked
from leporello.core.notes import note
from leporello.core.protocols import Targets
from leporello.core.records import Chunk, Combination, Document, Example, Hit, Read, Span
from leporello.text.subtitles import Cue, cue_lines, rewritten

# Indentation, and the dash before a speaker's words: `- Who's there?`
_FRAME = re.compile(r"\s*(?:[-‐–—]{1,2}\s*(?=[^\s\-‐–—]))?")


@dataclass(frozen=True)
class LineByLine:
    """Reads lines, and puts each answer where its line stood: translation line for line.

    Indentation, a speaker's dash, line ends and blank lines are the document's own and are not
    read. A line in several chunks is put together again. A line to which nothing was answered, or
    that was not selected, is empty. Where the text is that of a subtitle file, numbers, times and
    the like stay as they are. All this is argued in docs/decisions/0015-line-for-line.md.

    Attributes:
        unit: Unit that is read: `chunk` reads the lines of a chunk together; where the answer has
            another number of lines, one by one in a second round. `line` reads all one by one at
            once: for models whose tokenizers lose line breaks (T5, Marian), which would always need
            that round.
        cues: Whether a document that was loaded from a subtitle file becomes one again, with that
            file's numbers, times and notes.
    """

    unit: Literal["chunk", "line"] = "chunk"
    cues: bool = False

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one round, or two; where no line was selected, none.

        Raises:
            ValueError: Cues are wanted of a document that has none.
        """
        page = _LinePage.of(example.document)
        if self.cues and not (page.cues or page.is_file):
            raise ValueError(
                f"cues: true makes subtitle files, and document {example.document.id!r} is of none"
            )
        groups = [*_groups(page, hits)]
        _note_unselected(page, groups)
        if self.unit == "line":
            groups = [part for group in groups for part in group.apart()]
        answered: list[tuple[_LinePart, str]] = []
        while groups:
            outputs = yield [_read(example, group.span) for group in groups]
            again: list[_LineGroup] = []
            for group, output in zip(groups, outputs, strict=True):
                answers = _answers(output.text, len(group.parts))
                answered += zip(group.parts, answers, strict=True) if answers else ()
                # Not paired by guess: a line that is lost would shift all behind it (decision 15).
                again += () if answers else group.apart()
            if again:
                note("answers to chunks had other numbers of lines: these were read line by line")
            groups = again
        filled = page.filled(answered)
        return rewritten(page.cues, page.by_cue(filled)) if self.cues and page.cues else filled

    def supervise(self, example: Example, reads: Sequence[Read]) -> Sequence[Targets]:
        """Returns for each read the reference's lines in the places of its own.

        A reference of another number of lines tells nothing, and nothing tells of part of a line.
        """
        page = _LinePage.of(example.document)
        sides = [said for text in example.references if (said := page.opposite(text))]
        return [
            tuple(filter(None, (page.taught(read, said) for said in sides))) or None
            for read in reads
        ]


@dataclass(frozen=True, slots=True)
class _LinePart:
    """A line that is read, or a stretch of one: its number on the page, and where it stands."""

    line: int
    span: Span


@dataclass(frozen=True, slots=True)
class _LineGroup:
    """What of a chunk is read together: lines that follow each other."""

    span: Span
    parts: tuple[_LinePart, ...]

    def apart(self) -> list[_LineGroup]:
        """Returns its lines, each to be read by itself."""
        return [_LineGroup(part.span, (part,)) for part in self.parts]


@dataclass(frozen=True, slots=True)
class _LinePage:
    """The lines of a document that have any text.

    Attributes:
        document: Document whose lines they are.
        lines: Spans of the lines, without their line ends.
        texts: Spans of the lines' texts, which are read.
        is_file: Whether the document's text is that of a subtitle file.
    """

    document: Document
    lines: Sequence[Span]
    texts: Sequence[Span]
    is_file: bool

    @classmethod
    def of(cls, document: Document) -> _LinePage:
        """Returns the page of a document."""
        text = document.text
        cues = cue_lines(text)
        lines = [*_inked(text)] if cues is None else [line for cue in cues for line in cue]
        return cls(document, lines, [_inner(text, line) for line in lines], cues is not None)

    @property
    def cues(self) -> tuple[Cue, ...]:
        """The cues of the subtitle file that the document was loaded from."""
        return tuple(place for place in self.document.places if isinstance(place, Cue))

    def has_markup(self, parts: Sequence[_LinePart]) -> bool:
        """Says whether anything but white space stands between lines that follow each other."""
        between = pairwise(self.lines[part.line] for part in parts)
        return any(self.document.text[a.end : b.start].strip() for a, b in between)

    def filled(self, answered: Iterable[tuple[_LinePart, str]]) -> str:
        """Returns the document's text with answers in the places of what was read."""
        text, pieces, position = self.document.text, [""], 0
        answers = self._by_line(answered)
        for number, (line, inner) in enumerate(zip(self.lines, self.texts, strict=True)):
            answer = answers.get(number, "")
            start = (inner if answer else line).start  # without an answer, no dash
            pieces += [text[position:start], answer]
            position = (inner if answer else line).end
        return "".join([*pieces, text[position:]])

    def by_cue(self, filled: str) -> Iterator[list[str]]:
        """Yields the lines of each cue of a text that has as many as the document."""
        lines = filled.splitlines()
        lengths = map(len, self.document.text.splitlines(keepends=True))
        starts = [*accumulate(lengths, initial=0)][:-1]
        for cue in self.cues:
            yield lines[bisect_left(starts, cue.start) : bisect_left(starts, cue.end)]

    def opposite(self, reference: str) -> list[str]:
        """Returns what a reference says in the place of each line; nothing if its lines differ."""
        spans, said = [*_lines(self.document.text)], reference.splitlines()
        if len(said) != len(spans):
            return []
        starts = [span.start for span in spans]
        own = [said[bisect_right(starts, line.start) - 1] for line in self.lines]
        return [line[_frame(line, 0, len(line)) :].strip() for line in own]

    def taught(self, read: Read, said: Sequence[str]) -> str:
        """Returns what should come of a read; nothing if a line is read in part, or not told."""
        [chunk] = read.passages
        assert isinstance(chunk, Chunk)
        first = bisect_right(self.texts, chunk.start, key=lambda text: text.end)
        last = bisect_left(self.texts, chunk.end, key=lambda text: text.start)
        whole = chunk.start <= self.texts[first].start and self.texts[last - 1].end <= chunk.end
        return "\n".join(said[first:last]) if whole and all(said[first:last]) else ""

    def _by_line(self, answered: Iterable[tuple[_LinePart, str]]) -> dict[int, str]:
        """Returns the answers to each line, those to its stretches joined as these were parted."""
        joined, ends = dict[int, str](), dict[int, int]()
        for part, answer in sorted(answered, key=lambda pair: pair[0].span):
            before, bare = joined.get(part.line, ""), self._bare(part, answer)
            apart = not before or not bare or ends[part.line] == part.span.start
            joined[part.line] = f"{before}{'' if apart else ' '}{bare}"
            ends[part.line] = part.span.end
        return joined

    def _bare(self, part: _LinePart, answer: str) -> str:
        """Returns an answer, without its own dash where the line keeps the document's."""
        start = self.texts[part.line].start
        frame = self.document.text[self.lines[part.line].start : start].strip()
        at_front = part.span.start == start
        return answer[_frame(answer, 0, len(answer)) :] if frame and at_front else answer


def _groups(page: _LinePage, hits: Sequence[Hit]) -> Iterator[_LineGroup]:
    """Yields what is read of each chunk, in document order; what chunks share, once."""
    text, covered = page.document.text, 0
    ends = [line.end for line in page.texts]
    for hit in arranged(hits, "document"):
        start, end = max(covered, hit.chunk.start), max(covered, hit.chunk.end)
        covered = end
        first = bisect_right(ends, start)
        parts = [
            _LinePart(number, span)
            for number in range(first, bisect_left(page.texts, Span(end, end), first))
            if len(span := _stripped(text, page.texts[number], start, end))
        ]
        together = _LineGroup(_stripped(text, Span(start, end), start, end), tuple(parts))
        if len(parts) > 1 and not page.has_markup(parts):
            yield together
        else:
            yield from together.apart()


def _note_unselected(page: _LinePage, groups: Sequence[_LineGroup]) -> None:
    if len({part.line for group in groups for part in group.parts}) < len(page.texts):
        note("lines that were not selected are left empty")


def _read(example: Example, span: Span) -> Read:
    return asked(example, [example.document.chunk(span.start, span.end)])


def _answers(text: str, count: int) -> list[str]:
    """Returns one answer a line; none if there are more lines than one, and not as many."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if count == 1:
        return [" ".join(lines)]
    return lines if len(lines) == count else []


def _lines(text: str) -> Iterator[Span]:
    """Yields all lines, without their line ends."""
    bounds = accumulate(map(len, text.splitlines(keepends=True)), initial=0)
    for (start, _), line in zip(pairwise(bounds), text.splitlines(), strict=True):
        yield Span(start, start + len(line))


def _inked(text: str) -> Iterator[Span]:
    """Yields the lines that are not blank."""
    return (span for span in _lines(text) if text[span.start : span.end].strip())


def _inner(text: str, line: Span) -> Span:
    """Returns what of a line is read: no indentation, no dash."""
    return _stripped(text, line, _frame(text, line.start, line.end), line.end)


def _frame(text: str, start: int, end: int) -> int:
    match = _FRAME.match(text, start, end)
    return match.end() if match else start


def _stripped(text: str, span: Span, start: int, end: int) -> Span:
    """Returns what of a span lies within these bounds, without white space around it."""
    start, end = max(start, span.start), min(end, span.end)
    piece = text[start:end]
    stripped = piece.strip()
    start += len(piece) - len(piece.lstrip()) if stripped else 0
    return Span(start, start + len(stripped))
