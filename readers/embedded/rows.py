"""Answers from rows of tables, whose lines are cells `Name: value` between tabs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.readers.embedded.spans import Candidate
from leporello.text.english.content_terms import EMPTY_TERMS, stem
from leporello.text.english.scripts import LINE
from leporello.text.tokens import terms

_BETWEEN_TABS = re.compile(r"[^\t]+")
_CELL = re.compile(r"(?P<name>[^\t:]{1,60}): (?P<value>\S[^\t]*)")


@dataclass(frozen=True, slots=True)
class _NamedCell:
    """A cell of a row: terms of its name and its value, and the value's place in the passage."""

    name: frozenset[str]  # stems
    value: frozenset[str]
    start: int
    end: int


def cell_first(
    question: str, passages: Sequence[str], candidates: Sequence[Candidate]
) -> list[Candidate]:
    """Returns the candidates, after the cell that a question with a value of its row asks for.

    Such a row has the most words of the question in values that the question contains completely.
    The cell is the one whose name the question has, otherwise the first of the row, otherwise the
    best candidate in the row. Without such a row, the candidates are returned as they are.

    Args:
        question: Question.
        passages: Passages, of which some may be rows.
        candidates: Answers to the question, the best first.
    """
    words = frozenset(terms(question))
    rows = [(n, row) for n, passage in enumerate(passages) for row in _rows(passage)]
    matches = [_matched(words, row) for _, row in rows]
    most = max(map(_size, matches), default=0)
    cells = [
        (number, cell)
        for (number, row), keys in zip(rows, matches, strict=True)
        if most and _size(keys) == most
        for cell in _wanted(words, row, keys)
    ]
    best = [
        (number, cell)
        for candidate in candidates
        for number, cell in cells
        if number == candidate.passage and cell.start <= candidate.start < cell.end
    ]
    if not candidates or (not best and len(cells) != 1):
        return [*candidates]
    number, cell = (best or cells)[0]
    text = passages[number][cell.start : cell.end]
    return [Candidate(text, number, cell.start, cell.end, candidates[0].score), *candidates]


def _rows(passage: str) -> list[list[_NamedCell]]:
    """Returns the cells of each line that has at least two cells with names."""
    rows = []
    for line in LINE.finditer(passage):
        spans = (part.span() for part in _BETWEEN_TABS.finditer(passage, *line.span()))
        cells = [_cell(cell) for span in spans if (cell := _CELL.fullmatch(passage, *span))]
        if len(cells) > 1:
            rows.append(cells)
    return rows


def _cell(cell: re.Match[str]) -> _NamedCell:
    names = frozenset(stem(term) for term in terms(cell["name"]) if term not in EMPTY_TERMS)
    return _NamedCell(names, frozenset(terms(cell["value"])), *cell.span("value"))


def _matched(words: frozenset[str], row: Sequence[_NamedCell]) -> list[_NamedCell]:
    """Returns the cells with values of the question; a value that is there twice counts once."""
    cells: list[_NamedCell] = []
    for cell in row:
        if cell.value <= words and cell.value - EMPTY_TERMS.union(*(c.value for c in cells)):
            cells.append(cell)
    return cells


def _size(cells: Sequence[_NamedCell]) -> int:
    return sum(len(cell.value) for cell in cells)


def _wanted(
    words: frozenset[str], row: Sequence[_NamedCell], keys: Sequence[_NamedCell]
) -> list[_NamedCell]:
    """Returns the cells of a row that may answer, without those with values of the question."""
    stems = {stem(term) for term in words.difference(EMPTY_TERMS, *(c.value for c in keys))}
    others = [cell for cell in row if cell not in keys]
    most = max((len(cell.name & stems) for cell in others), default=0)
    if most:
        return [cell for cell in others if len(cell.name & stems) == most]
    return others if row[0] in keys else [row[0]]
