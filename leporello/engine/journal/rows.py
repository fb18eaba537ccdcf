"""The rows of a journal, and the lines that they are written as."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from leporello.core.records import JSON

FORM = 3  # of the lines: from 2 on each has a checksum


@dataclass(frozen=True, slots=True)
class ShardRow:
    """What a journal is of.

    Attributes:
        shard: Number of the shard.
        first: Number of its first example in the task.
        examples: Number of its examples.
        run: Hash of what the results depend on.
        form: Version of the form of the lines.
    """

    KEY: ClassVar[str] = "shard"

    shard: int
    first: int
    examples: int
    run: str
    form: int = FORM

    def row(self) -> dict[str, JSON]:
        """Returns the row."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class StepRow:
    """What the reader said in one step.

    Attributes:
        step: Number of the step in this pass.
        cursor: Number of examples that had been admitted by then.
        of: Runs of outputs: example, place of the first among all that it has read, how many.
        outputs: Outputs as columns, in the order of `of`.
        notes: Notes on examples whose reads failed with others and not alone, by their numbers.
    """

    KEY: ClassVar[str] = "step"

    step: int
    cursor: int
    of: Sequence[Sequence[int]]
    outputs: Mapping[str, JSON]
    notes: Mapping[str, str] = field(default_factory=dict)

    def row(self) -> dict[str, JSON]:
        """Returns the row, without notes if there are none."""
        runs: list[JSON] = [[*run] for run in self.of]
        notes: dict[str, JSON] = {"notes": {**self.notes}} if self.notes else {}
        outputs: dict[str, JSON] = {"outputs": {**self.outputs}}
        return {"step": self.step, "cursor": self.cursor, "of": runs, **outputs, **notes}


@dataclass(frozen=True, slots=True)
class FinishedRow:
    """A finished example.

    Attributes:
        done: Number of the example in its shard.
        statistics: Statistics by metric.
        prediction: Row of predictions.jsonl; None if the example failed.
        reads: Reads as columns; None if it failed.
        notes: Notes of its stages.
        failure: Row of the failure, with its traceback; None unless it failed.
        faults: Faults of metrics that failed on it, by metric; None if none did.
    """

    KEY: ClassVar[str] = "done"

    done: int
    statistics: Mapping[str, Any]
    prediction: Mapping[str, Any] | None = None
    reads: Mapping[str, Any] | None = None
    notes: Sequence[str] = ()
    failure: Mapping[str, Any] | None = None
    faults: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        if (self.prediction is None) == (self.failure is None):
            raise ValueError("a finished example has a prediction or a failure")

    def row(self) -> dict[str, JSON]:
        """Returns the row, without what is empty."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in values.items() if value not in (None, (), [])}


@dataclass(frozen=True, slots=True)
class RetryRow:
    """Failed examples that are tried again.

    Attributes:
        retry: Numbers of the examples.
    """

    KEY: ClassVar[str] = "retry"

    retry: Sequence[int]

    def row(self) -> dict[str, JSON]:
        """Returns the row."""
        return {"retry": [*self.retry]}


@dataclass(frozen=True, slots=True)
class SizesRow:
    """Sizes that the reader uses from here on.

    Attributes:
        sizes: Sizes by name.
    """

    KEY: ClassVar[str] = "sizes"

    sizes: Mapping[str, int]

    def row(self) -> dict[str, JSON]:
        """Returns the row."""
        return {"sizes": {**self.sizes}}


Row: TypeAlias = ShardRow | StepRow | FinishedRow | RetryRow | SizesRow
_KINDS: Mapping[str, type[Row]] = {
    kind.KEY: kind for kind in (ShardRow, StepRow, FinishedRow, RetryRow, SizesRow)
}

# NaN, which is no JSON, fails here and not where another program reads the file.
_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def encode(row: Row) -> bytes:
    """Returns a row as a line.

    Raises:
        TypeError: It holds something that is no JSON.
        ValueError: It holds a number that is not finite.
    """
    values: dict[str, Any] = row.row()
    written = values.get("prediction")
    # Most answers are scored as they were returned: the text stands there once.
    if written and "raw" in written and written.get("prediction") == written["raw"]:
        values["prediction"] = {n: v for n, v in written.items() if n != "prediction"}
    return _encoded(values).encode("utf-8", "backslashreplace") + b"\n"


def decode(line: bytes) -> Row:
    """Returns the row of a line.

    Raises:
        ValueError: It is none.
        TypeError: Likewise.
    """
    values = json.loads(line)
    kind = next((kind for key, kind in _KINDS.items() if key in values), None)
    if kind is None:
        raise ValueError("is no row of a journal")
    row = values.get("prediction")
    if row and "raw" in row and "prediction" not in row:  # it is raw again
        values["prediction"] = {"id": row["id"], "prediction": row["raw"], **row}
    return kind(**values)
