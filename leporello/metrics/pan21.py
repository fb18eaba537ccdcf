"""F1 of style change, as the evaluator of PAN 2021 computes it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from leporello.core.records import Example, Prediction
from leporello.metrics.confusion import columns, macro, macro_of_sums, tally
from leporello.metrics.protocol import GoldError, Statistics

if TYPE_CHECKING:
    from leporello.metrics.protocol import Numbers

_AUTHORS = "paragraph-authors"
_KEYS = {"pan21_task1": "multi-author", "pan21_task2": "changes", "pan21_task3": _AUTHORS}
# The official evaluator averages over these, whether they occur or not; task 1 over what occurs.
_LABELS = {"pan21_task2": ("0", "1"), "pan21_task3": ("1", "2", "3", "4")}
_NUMBERS = re.compile(r"\s*\d+(?:[\s,]+\d+)*\s*")


@dataclass(frozen=True)
class StyleChangeF1:
    """Macro F1 of PAN 2021's three tasks: several authors or one, each change, each author.

    The labels of all documents are put in one row, as the official evaluator does, and scored over
    labels that are fixed: authors 1 to 4, so that a perfect answer scores 50 where only two occur,
    and an author 5 only costs recall. Authors are compared by number, in order of appearance.

    Answers and references are JSON: an object as in PAN's files, or the list of the paragraphs'
    authors, from which what is not given follows; bare numbers will do. The official evaluator
    stops, or compares shifted rows, where the lengths differ; here such a list, like a missing
    one, counts as no label at all, for that document alone.
    """

    name: ClassVar[str] = "pan21"
    headline: ClassVar[str] = "pan21_task3"
    signature: ClassVar[str] = (
        "pan21|average:macro|labels:seen;0,1;1,2,3,4|documents:concatenated|no-answer:no-label"
        "|version:1"
    )

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns for each task, by label, how often it was hit, missed and given wrongly.

        None where there are no references.

        Raises:
            GoldError: More than one reference, or one that cannot be read.
        """
        if not example.references:
            return None
        truth, answer = _truth(example), _read(prediction.prediction)
        return {
            task: {label: list(n) for label, n in tally(_pairs(truth[key], answer[key])).items()}
            for task, key in _KEYS.items()
        }

    def parses(self, text: str, example: Example) -> bool:
        """Says whether a text has all three answers, for as many paragraphs as there are.

        Raises:
            GoldError: As `statistics` does.
        """
        answer = _read(text)
        gold = _truth(example) if example.references else answer
        return bool(answer[_AUTHORS]) and all(len(answer[k]) == len(gold[k]) for k in answer)

    def score(self, statistics: Statistics) -> float:
        """Returns the example's F1 of authors (task 3)."""
        return 100 * _macro([statistics], "pan21_task3")

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns the macro F1 of each task: `pan21_task1`, `pan21_task2`, `pan21_task3`."""
        if not statistics:
            return {}
        return {task: round(100 * _macro(statistics, task), 4) for task in _KEYS}

    def summands(self, statistics: Sequence[Statistics]) -> Numbers:
        """Returns the counts of the authors (task 3)."""
        return columns([s[self.headline] for s in statistics], _LABELS[self.headline])

    def of_sums(self, sums: Numbers, counts: Numbers) -> Numbers:  # noqa: ARG002 -- as every metric's; paragraphs count
        """Returns the macro F1 of authors."""
        return 100 * macro_of_sums(sums, fixed=True)


def _macro(statistics: Sequence[Statistics], task: str) -> float:
    counts: dict[str, tuple[int, int, int]] = {}
    for row in statistics:
        for label, (hits, missed, extra) in row[task].items():
            old = counts.get(label, (0, 0, 0))
            counts[label] = (old[0] + hits, old[1] + missed, old[2] + extra)
    return macro(counts, _LABELS.get(task, tuple(counts)))


def _pairs(truth: Sequence[str], answer: Sequence[str]) -> list[tuple[str, str | None]]:
    if len(truth) != len(answer):
        return [(label, None) for label in truth]
    return list(zip(truth, answer, strict=True))


def _truth(example: Example) -> Mapping[str, Sequence[str]]:
    if len(example.references) > 1:
        fault = f"has {len(example.references)} references; one, with all authors, is wanted"
        raise GoldError(example, fault)
    truth = _read(example.references[0])
    if not truth[_AUTHORS] or len(truth["changes"]) != len(truth[_AUTHORS]) - 1:
        fault = f"the reference {example.references[0]!r:.80} is no list of the paragraphs' authors"
        raise GoldError(example, fault)
    return truth


def _read(text: str) -> Mapping[str, Sequence[str]]:
    """Returns the labels by key, empty where there are none to be read."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = re.findall(r"\d+", text) if _NUMBERS.fullmatch(text) else None
    fields = value if isinstance(value, dict) else {_AUTHORS: value}
    authors = _labels(fields.get(_AUTHORS))
    return {
        "multi-author": _labels([fields.get("multi-author")]) or _any_change(authors),
        "changes": _labels(fields.get("changes")) or _changes(authors),
        _AUTHORS: authors,
    }


def _labels(values: Any) -> list[str]:  # noqa: ANN401 -- any JSON
    """Returns a list of numbers, or of their digits, as digits; nothing if it is none."""
    values = [values] if isinstance(values, int) else values
    if not isinstance(values, list):
        return []
    read = [label for value in values if (label := _label(value))]
    return read if len(read) == len(values) else []


def _label(value: Any) -> str:  # noqa: ANN401 -- any JSON
    if isinstance(value, int):
        return str(int(value))  # true is 1
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        return value.lstrip("0") or "0"
    return ""


def _changes(authors: Sequence[str]) -> list[str]:
    return [str(int(first != second)) for first, second in pairwise(authors)]


def _any_change(authors: Sequence[str]) -> list[str]:
    return [str(int(len(set(authors)) > 1))] if authors else []
