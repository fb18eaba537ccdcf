"""F1 of style change, as in the evaluator of PAN 2021."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

from leporello.core.records import Example
from leporello.metrics.f1_macro import columns, macro_of_sums, tally
from leporello.metrics.protocol import GoldError, Numbers, Statistics, Summed

_AUTHORS = "paragraph-authors"
_KEYS = {"pan21_task1": "multi-author", "pan21_task2": "changes", "pan21_task3": _AUTHORS}
# The official evaluator averages over these labels even if they do not occur; in task 1, over
# the labels that occur.
# Kept for comparison with PAN's scores, although two authors then score 50 at most in task 3.
_LABELS = {"pan21_task2": ("0", "1"), "pan21_task3": ("1", "2", "3", "4")}
_NUMBERS = re.compile(r"\s*\d+(?:[\s,]+\d+)*\s*")


@dataclass(frozen=True)
class StyleChangeF1(Summed):
    """Macro F1 of PAN 2021's three tasks: several authors or one, each change, each author.

    The labels of all documents are concatenated, as in the official evaluator, and scored over
    fixed labels: authors 1 to 4, so that a perfect answer scores 50 if only two occur, and an
    author 5 only costs recall. Authors are compared by number, in order of appearance.

    Answers and references are JSON: an object as in PAN's files, or a list of the paragraphs'
    authors, from which missing fields are derived; plain numbers are accepted. If lengths differ,
    the official evaluator stops or compares shifted rows; here a list of the wrong length, like a
    missing list, predicts no label for that document.
    """

    name = "pan21"
    headline = "pan21_task3"
    signature = (
        "pan21|average:macro|labels:seen;0,1;1,2,3,4|documents:concatenated|no-answer:no-label"
        "|version:1"
    )

    def measured(self, text: str, example: Example) -> Statistics:
        """Returns for each task, by label, numbers of hits, misses and wrong predictions."""
        truth, answer = _truth(example), labels_of(text)
        return {
            task: {label: list(n) for label, n in tally(_pairs(truth[key], answer[key])).items()}
            for task, key in _KEYS.items()
        }

    def score(self, statistics: Statistics) -> float:
        """Returns the example's F1 of authors (task 3)."""
        return 100 * _macro([statistics], "pan21_task3")

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns the macro F1 of each task: `pan21_task1`, `pan21_task2`, `pan21_task3`."""
        return {task: round(100 * _macro(statistics, task), 4) for task in _KEYS}

    def summands(self, statistics: Sequence[Statistics]) -> Numbers:
        """Returns the counts of the authors (task 3)."""
        return columns([s[self.headline] for s in statistics], _LABELS[self.headline])

    def of_sums(self, sums: Numbers, counts: Numbers) -> Numbers:  # noqa: ARG002 -- required by the protocol
        """Returns the macro F1 of authors."""
        return 100 * macro_of_sums(sums, fixed=True)


def _macro(statistics: Sequence[Statistics], task: str) -> float:
    # Counts of all documents first, as PAN concatenates them: the mean over documents differs.
    rows = [row[task] for row in statistics]
    labels = _LABELS.get(task) or [*dict.fromkeys(chain.from_iterable(rows))]
    sums = columns(rows, labels).sum(axis=0, keepdims=True)
    return float(macro_of_sums(sums, fixed=True)[0])


def _pairs(truth: Sequence[str], answer: Sequence[str]) -> list[tuple[str, str | None]]:
    if len(truth) != len(answer):
        # No label at all: shifted rows would be right or wrong by chance.
        return [(label, None) for label in truth]
    return list(zip(truth, answer, strict=True))


def _truth(example: Example) -> Mapping[str, Sequence[str]]:
    if len(example.references) > 1:
        fault = f"has {len(example.references)} references; provide one, with all authors"
        raise GoldError(example, fault)
    truth = labels_of(example.references[0])
    if not truth[_AUTHORS] or len(truth["changes"]) != len(truth[_AUTHORS]) - 1:
        fault = f"the reference {example.references[0]!r:.80} is not a list of paragraph authors"
        raise GoldError(example, fault)
    return truth


def labels_of(text: str) -> Mapping[str, Sequence[str]]:
    """Returns the labels of an answer by the keys of PAN's files; empty if they cannot be read."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = re.findall(r"\d+", text) if _NUMBERS.fullmatch(text) else None
    fields = value if isinstance(value, dict) else {_AUTHORS: value}
    authors = _labels(fields.get(_AUTHORS))
    changes = [str(int(first != second)) for first, second in pairwise(authors)]
    several = [str(int(len({*authors}) > 1))] if authors else []
    return {
        "multi-author": _labels([fields.get("multi-author")]) or several,
        # Derived only if absent: MuLD's baseline may contradict its own authors (decision 16).
        "changes": _labels(fields.get("changes")) or changes,
        _AUTHORS: authors,
    }


def _labels(values: Any) -> list[str]:  # noqa: ANN401 -- any JSON
    """Returns labels, each an integer or a text of digits, as texts; empty if one is invalid."""
    values = [values] if isinstance(values, int) else values
    if not isinstance(values, list):
        return []
    labels = [label for value in values if (label := _label(value))]
    return labels if len(labels) == len(values) else []


def _label(value: Any) -> str:  # noqa: ANN401 -- any JSON
    if isinstance(value, int):
        return str(int(value))  # true is 1
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        # Not int(), which refuses very long numbers that a model may repeat.
        return value.lstrip("0") or "0"
    return ""
