"""Answers that are looked up: cells by row and column, items by number, lines by their label."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, takewhile

from leporello.core.records import Chunk
from leporello.readers.embedded.spans import Candidate
from leporello.readers.prompting.template import encodable, passage_text
from leporello.text.english.questions import asks_yes_no, named_choices
from leporello.text.english.terms import EMPTY_TERMS, LINE, content_terms, stem
from leporello.text.tokens import terms

_NAMED = re.compile(r"(?P<name>[^\t:]{1,60}): (?P<value>\S[^\t]*)")
_LABELLED = re.compile(
    r"[^\S\n]*+(?:[-*•][^\S\n]++)?(?P<name>[^\n\t:]{1,60}): (?P<value>[^\s:][^\n\t]*)"
)
_VALUE = 12  # maximum words of the value of a label
_NUMERIC = re.compile(r"(?!\d{4}$)[^\w]*\d[\d\W]*")  # a year can name a column
_BEFORE = 100_000  # characters before a passage that are searched for the header of its table
_NOUN = re.compile(
    r"\W*(?:how (?:many|much)|which|what(?: (?:is|was|are|were))?(?: the)?) (\w+)", re.I
)

_KINDS = "article|clause|condition|item|paragraph|point|principle|provision|rule|section|step|term"
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_BY_NUMBER = re.compile(
    rf"\b(?P<kind>{_KINDS}) (?:no\.? ?|number |#)?(?P<number>\d{{1,3}}(?:\.\d{{1,3}})*)\b", re.I
)
_BY_ORDINAL = re.compile(rf"\b(?P<number>{'|'.join(_ORDINALS)}) (?P<kind>{_KINDS})\b", re.I)
_LABEL = re.compile(
    r"[^\S\n]*+(?:(?P<kind>[a-z]+)[^\S\n]++)?[(\[§]?"
    r"(?P<number>\d{1,3}(?:\.\d{1,3}){0,5})[.):\]]{1,2}[^\S\n]++(?=\S)",
    re.IGNORECASE,
)
# Stems.
_VERBS = {"contai", "demand", "mean", "order", "provid", "read", "requir", "state", "text"}

Place = tuple[int, int, int]  # passage, start and end


def looked_up(
    question: str, passages: Sequence[Chunk | str], candidates: Sequence[Candidate]
) -> list[Candidate]:
    """Returns the candidates, after the cell, the item or the line that the question names.

    A question names a row by values of its cells and a column by words of its name, an item by its
    number (`rule 3`), or a line of a list by its label (`Pears: 7 euros`). If the cell is empty, or
    only other rows have such a column, the document has no answer. A question that names none of
    them gets the candidates as they are.
    """
    if not candidates or asks_yes_no(question) or named_choices(question):
        return [*candidates]
    places = _cells(question, passages, candidates)
    for look_up in (_items, _labelled):
        places = look_up(question, passages, candidates) if places is None else places
    if not places:
        return [*candidates] if places is None else []
    number, start, end = places[0]
    text = encodable(passage_text(passages[number])[start:end])
    best = candidates[0].score
    return [Candidate(text, number, start, end, best), *candidates]


def _by_candidate(places: Sequence[Place], candidates: Sequence[Candidate]) -> list[Place]:
    """Returns the places that contain candidates, the one with the best candidate first."""
    return [
        place
        for candidate in candidates
        for place in places
        if place[0] == candidate.passage and place[1] <= candidate.start < place[2]
    ]


@dataclass(frozen=True, slots=True)
class _TableCell:
    """A cell: stems of its column's name, terms of its value, and the place of the value."""

    name: frozenset[str]
    value: frozenset[str]
    start: int
    end: int

    @classmethod
    def of(cls, name: str, text: str, start: int, end: int) -> _TableCell:
        names = frozenset(stem(term) for term in terms(name) if term not in EMPTY_TERMS)
        return cls(names, frozenset(terms(text[start:end])), start, end)


def _cells(
    question: str, passages: Sequence[Chunk | str], candidates: Sequence[Candidate]
) -> list[Place] | None:
    """Returns the cell that a question asks for; empty without a value, None without a row.

    The row has the most words of the question in values that the question contains completely. The
    cell is the one whose column the question names, otherwise the first of the row, otherwise the
    one with the best candidate.
    """
    words = frozenset(terms(question))
    rows = [(n, row) for n, passage in enumerate(passages) for row in _rows(passage)]
    keys = [_matched(words, row) for _, row in rows]
    most = max(map(_size, keys), default=0)
    if not most:
        return None
    wanted = [
        (n, *_wanted(words, row, k))
        for (n, row), k in zip(rows, keys, strict=True)
        if _size(k) == most
    ]
    best = max(shared for _, shared, _ in wanted)
    noun = _NOUN.match(question)
    columns = {stem(noun[1].lower())} if noun else set()
    columns |= {word for word in words if word.isdigit()}.difference(
        *(c.value for k in keys for c in k)
    )
    if not best and any(columns & c.name for _, row in rows for c in row):
        return []
    cells = [(n, cell) for n, shared, group in wanted if shared == best for cell in group]
    places = [(n, cell.start, cell.end) for n, cell in cells if cell.value]
    if not places:
        return [] if best else None
    return _by_candidate(places, candidates) or (places if len(places) == 1 else None)


def _matched(words: frozenset[str], row: Sequence[_TableCell]) -> list[_TableCell]:
    """Returns the cells with values of the question; a value that is there twice counts once."""
    cells: list[_TableCell] = []
    for cell in row:
        if cell.value <= words and cell.value - EMPTY_TERMS.union(*(c.value for c in cells)):
            cells.append(cell)
    return cells


def _size(cells: Sequence[_TableCell]) -> int:
    return sum(len(cell.value) for cell in cells)


def _wanted(
    words: frozenset[str], row: Sequence[_TableCell], keys: Sequence[_TableCell]
) -> tuple[int, list[_TableCell]]:
    """Returns the cells of a row that may answer, and the number of words that name their column.

    Cells with values of the question do not answer it, and their columns are not asked for.
    """
    stems = {stem(term) for term in words.difference(EMPTY_TERMS, *(c.value for c in keys))}
    stems = stems.difference(*(c.name for c in keys))
    others = [cell for cell in row if cell not in keys]
    most = max((len(cell.name & stems) for cell in others), default=0)
    if most:
        return most, [cell for cell in others if len(cell.name & stems) == most]
    return 0, others if row[0] in keys else [row[0]]


def _rows(passage: Chunk | str) -> Iterator[list[_TableCell]]:
    """Yields the rows of tables, which name each cell (`Price: 15`) or have a header above them."""
    text = passage_text(passage)
    for lines in _tables(text):
        table = [_parts(text, *line) for line in lines]
        cells_of = [[_NAMED.fullmatch(text, *part) for part in row] for row in table]
        # The names of rows have no column if the corner of their table is empty.
        is_named = all(all(cells[1:]) for cells in cells_of[1:] or cells_of)
        if is_named or any(sum(map(bool, cells)) > 1 for cells in cells_of):
            for row, cells in zip(table, cells_of, strict=True):
                if any(cells):
                    yield [
                        _TableCell.of(match["name"], text, *match.span("value"))
                        if match
                        else _TableCell.of("", text, *part)
                        for part, match in zip(row, cells, strict=True)
                    ]
            continue
        header = _header_before(passage, len(table[0])) if not text[: lines[0][0]].strip() else []
        if not header:
            header, table = [text[start:end] for start, end in table[0]], table[1:]
        # The corner above the names of rows may be empty.
        if all(map(str.strip, header[1:])) and not any(map(_NUMERIC.fullmatch, header)):
            for row in table:
                yield [_TableCell.of(n, text, *part) for n, part in zip(header, row, strict=True)]


def _tables(text: str) -> Iterator[list[tuple[int, int]]]:
    """Yields the lines of each table: lines one after the other with as many tabs."""
    table: list[tuple[int, int]] = []
    for line in LINE.finditer(text):
        tabs = line.group().count("\t")
        end = table[-1][1] if table else 0
        if table and (
            text.count("\n", end, line.start()) > 1 or text.count("\t", *table[-1]) != tabs
        ):
            yield table
            table = []
        if tabs:
            table.append(line.span())
    if table:
        yield table


def _parts(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Returns the spans between the tabs of a line."""
    tabs = [i for i in range(start, end) if text[i] == "\t"]
    return [(before + 1, after) for before, after in pairwise([start - 1, *tabs, end])]


def _header_before(passage: Chunk | str, columns: int) -> list[str]:
    """Returns the first line of the table that a passage continues; empty if it does not."""
    if isinstance(passage, str):
        return []
    first = max(0, passage.start - _BEFORE)
    before = passage.document.text[first : passage.start].split("\n")[:-1]
    table = list(takewhile(lambda line: line.count("\t") == columns - 1, reversed(before)))
    return table[-1].split("\t") if table and (len(table) < len(before) or not first) else []


def _items(
    question: str, passages: Sequence[Chunk | str], candidates: Sequence[Candidate]
) -> list[Place] | None:
    """Returns the item whose number the question has, or the best answer in it; None without one.

    A question that only names the item (`What is rule 3?`) is answered by all of its line.
    """
    name = _BY_NUMBER.search(question) or _BY_ORDINAL.search(question)
    if not name:
        return None
    kind, number = name["kind"], name["number"]
    if number.lower() in _ORDINALS:
        number = str(_ORDINALS.index(number.lower()) + 1)
    places = [
        (n, match.end(), line.end())
        for n, passage in enumerate(passages)
        for line in LINE.finditer(passage_text(passage))
        if (match := _LABEL.match(passage_text(passage), *line.span()))
        if match["number"] == number and (match["kind"] or kind).lower() == kind.lower()
    ]
    remainder = question[: name.start()] + question[name.end() :]
    if {*content_terms(remainder)} <= _VERBS:
        return _by_candidate(places, candidates) or places or None
    spans = [(c.passage, c.start, c.end) for c in candidates if _by_candidate(places, [c])]
    return spans or None


def _labelled(
    question: str, passages: Sequence[Chunk | str], candidates: Sequence[Candidate]
) -> list[Place] | None:
    """Returns the value of the label that the question contains; None without exactly one.

    Only the list in which the reader found its answer is searched, since other lists may have
    nothing to do with the question.
    """
    best = candidates[0]
    text = passage_text(passages[best.passage])
    words = frozenset(content_terms(question))
    for lines in _labelled_lists(text):
        names = [line["name"] for line in lines]
        if lines[0].start() <= best.start < lines[-1].end() and len({*names}) == len(names):
            labels = [frozenset(content_terms(name)) for name in names]
            sizes = [len(label) if label <= words else 0 for label in labels]
            if max(sizes) and sizes.count(max(sizes)) == 1:
                return [(best.passage, *lines[sizes.index(max(sizes))].span("value"))]
    return None


def _labelled_lists(text: str) -> Iterator[list[re.Match[str]]]:
    """Yields the lines of each list of labels with short values; speeches are longer."""
    matches = [_LABELLED.fullmatch(text, *line.span()) for line in LINE.finditer(text)]
    for _, group in groupby(matches, key=lambda match: match is None):
        lines = [match for match in group if match]
        if len(lines) > 1 and all(len(line["value"].split()) <= _VALUE for line in lines):
            yield lines
