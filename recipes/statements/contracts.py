"""Reads contracts from ContractNLI's files, with the labels of statements and their evidence."""

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
from leporello.text.english.terms import clause_spans

LABELS = ("Not mentioned", "Entailment", "Contradiction")
_CHOICES = {"NotMentioned": 0, "Entailment": 1, "Contradiction": 2}
_NUMBERS = {"0": 1, "1": 2, "2": 0}  # the labels of a file of evidence
_COVERED = 0.5  # minimum overlap of clause and evidence, as a share of the shorter


@dataclass(frozen=True)
class Contract:
    """A contract, or some of its clauses."""

    id: str  # Id, unique over all files
    clauses: tuple[str, ...]  # clauses in order
    # Index of the label that each clause supports, shape (clauses, statements).
    evidence: NDArray[np.int64]
    labels: NDArray[np.int64]  # index of the label of each statement, shape (statements,)
    complete: bool  # whether all clauses are known


def read_contracts(
    path: Path, statements: Mapping[str, str], excluded: Callable[[str], bool]
) -> Iterator[Contract]:
    """Yields the contracts of a JSON file of ContractNLI.

    `statements` have the order of the arrays.
    """
    for row in json.loads(path.read_text(encoding="utf-8"))["documents"]:
        if excluded(row["text"]):
            continue
        annotations = row["annotation_sets"][0]["annotations"]
        spans = clause_spans(row["text"])
        evidence = np.zeros((len(spans), len(statements)), dtype=np.int64)
        for column, key in enumerate(statements):
            places = [row["spans"][i] for i in annotations[key]["spans"]]
            clauses = [i for i, span in enumerate(spans) if any(_covers(span, p) for p in places)]
            evidence[clauses, column] = _CHOICES[annotations[key]["choice"]]
        yield Contract(
            id=f"{path.stem}/{row['id']}",
            clauses=tuple(row["text"][start:end] for start, end in spans),
            evidence=evidence,
            labels=np.array([_CHOICES[annotations[key]["choice"]] for key in statements]),
            complete=True,
        )


def _covers(clause: Sequence[int], evidence: Sequence[int]) -> bool:
    shared = min(clause[1], evidence[1]) - max(clause[0], evidence[0])
    return shared >= _COVERED * min(clause[1] - clause[0], evidence[1] - evidence[0])


def read_evidence(
    path: Path, statements: Mapping[str, str], excluded: Callable[[str], bool]
) -> Iterator[Contract]:
    """Yields contracts of which only evidence and some other clauses are known.

    The CSV file has the columns `concatenated_spans`, `hypothesis` and `label` (0 for entailment, 1
    for contradiction, 2 for neither), one row per statement, sorted by contract.

    Raises:
        UserError: Rows are not sorted by contract.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    count, columns = len(statements), {text: i for i, text in enumerate(statements.values())}
    for first in range(0, len(rows), count):
        group = rows[first : first + count]
        order = [columns.get(row["hypothesis"]) for row in group]
        if sorted(order, key=str) != sorted(range(count), key=str):
            raise UserError(
                f"{path}: rows {first + 1} to {first + count} must have each statement once, for"
                " one contract"
            )
        contract = _from_evidence(f"{path.stem}/{first // count}", group, order)
        if not excluded("\n".join(contract.clauses)):
            yield contract


def _from_evidence(name: str, rows: Sequence[Mapping[str, Any]], order: Sequence[Any]) -> Contract:
    evidence: dict[str, NDArray[np.int64]] = {}
    labels = np.zeros(len(rows), dtype=np.int64)
    for row, column in zip(rows, order, strict=True):
        labels[column] = _NUMBERS[row["label"]]
        for line in row["concatenated_spans"].split("\n"):
            for start, end in clause_spans(line):
                clause = evidence.setdefault(line[start:end], np.zeros(len(rows), dtype=np.int64))
                clause[column] = max(clause[column], labels[column])
    return Contract(name, tuple(evidence), np.array([*evidence.values()]), labels, complete=False)
