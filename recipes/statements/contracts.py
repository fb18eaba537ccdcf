"""Contracts with what their clauses say of each statement: ContractNLI's own files."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leporello.core.errors import UserError
from leporello.text.english.clauses import clause_spans

LABELS = ("Not mentioned", "Entailment", "Contradiction")
_CHOICES = {"NotMentioned": 0, "Entailment": 1, "Contradiction": 2}
_NUMBERS = {"0": 1, "1": 2, "2": 0}  # the labels of a file of evidence
_COVERED = 0.5  # share of the shorter of clause and evidence that both have


@dataclass(frozen=True)
class Contract:
    """A contract, or the clauses of one that are known.

    Attributes:
        id: Id, unique over all files.
        clauses: Clauses in order.
        evidence: Index of the label that each clause is evidence for, shape (clauses, statements).
        labels: Index of the label of each statement, shape (statements,).
        whole: Whether all of its clauses are known.
    """

    id: str
    clauses: tuple[str, ...]
    evidence: NDArray[np.int64]
    labels: NDArray[np.int64]
    whole: bool


def read_contracts(
    path: Path, statements: Mapping[str, str], excluded: Callable[[str], bool]
) -> Iterator[Contract]:
    """Yields the contracts of one of ContractNLI's JSON files.

    Args:
        path: The file, such as `train.json`.
        statements: Statements by their keys, in the order of the arrays.
        excluded: Test of a text that must not be learnt from.
    """
    for row in json.loads(path.read_text(encoding="utf-8"))["documents"]:
        if excluded(row["text"]):
            continue
        annotations = row["annotation_sets"][0]["annotations"]
        spans = clause_spans(row["text"])
        evidence = np.zeros((len(spans), len(statements)), dtype=np.int64)
        for column, key in enumerate(statements):
            places = [row["spans"][i] for i in annotations[key]["spans"]]
            told = [i for i, span in enumerate(spans) if any(_covers(span, p) for p in places)]
            evidence[told, column] = _CHOICES[annotations[key]["choice"]]
        yield Contract(
            id=f"{path.stem}/{row['id']}",
            clauses=tuple(row["text"][start:end] for start, end in spans),
            evidence=evidence,
            labels=np.array([_CHOICES[annotations[key]["choice"]] for key in statements]),
            whole=True,
        )


def _covers(one: Sequence[int], other: Sequence[int]) -> bool:
    shared = min(one[1], other[1]) - max(one[0], other[0])
    return shared >= _COVERED * min(one[1] - one[0], other[1] - other[0])


def read_evidence(
    path: Path, statements: Mapping[str, str], excluded: Callable[[str], bool]
) -> Iterator[Contract]:
    """Yields contracts of which no more than evidence, and some other clauses, are known.

    Args:
        path: CSV file with the columns `concatenated_spans`, `hypothesis` and `label` (0 for
            entailment, 1 for contradiction, 2 for neither), a row for each statement, the rows of
            a contract one after another.
        statements: Statements by their keys, in the order of the arrays.
        excluded: Test of a text that must not be learnt from.

    Raises:
        UserError: Rows do not come contract by contract.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    count, columns = len(statements), {text: i for i, text in enumerate(statements.values())}
    for first in range(0, len(rows), count):
        group = rows[first : first + count]
        order = [columns.get(row["hypothesis"]) for row in group]
        if sorted(order, key=str) != sorted(range(count), key=str):
            raise UserError(f"{path}: rows {first + 1} to {first + count} are not of one contract")
        contract = _of_evidence(f"{path.stem}/{first // count}", group, order)
        if not excluded("\n".join(contract.clauses)):
            yield contract


def _of_evidence(name: str, rows: Sequence[Mapping[str, Any]], order: Sequence[Any]) -> Contract:
    said: dict[str, NDArray[np.int64]] = {}
    labels = np.zeros(len(rows), dtype=np.int64)
    for row, column in zip(rows, order, strict=True):
        labels[column] = _NUMBERS[row["label"]]
        for line in row["concatenated_spans"].split("\n"):
            for start, end in clause_spans(line):
                told = said.setdefault(line[start:end], np.zeros(len(rows), dtype=np.int64))
                told[column] = max(told[column], labels[column])
    return Contract(name, tuple(said), np.array([*said.values()]), labels, whole=False)
