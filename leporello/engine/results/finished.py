"""A finished example, as objects and as the lines that the files of a run hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leporello.core.calls.answers import way_of
from leporello.core.hashing import digest
from leporello.core.protocols import ANSWER
from leporello.core.records import JSON, Example, Output, Prediction, Read, Reply
from leporello.engine.failures import ExampleError
from leporello.engine.results.serialization import calls_row, prediction_row

TRACEBACKS = "tracebacks"  # the folder beside failures.jsonl

# NaN, which is not JSON, fails here and not where another program reads the file.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


@dataclass(frozen=True, slots=True)
class Call:
    """A read, the round of the combiner in which it was asked for, and its output or error."""

    round: int
    read: Read
    reply: Reply


@dataclass(frozen=True, slots=True)
class FinishedRow:
    """A finished example as a store holds it; each part is a line of a file, or empty.

    Attributes:
        number: Number of the example in its task.
        id: Id of the example.
        failed: Whether it failed.
        prediction: Line of predictions.jsonl; of failures.jsonl if it failed.
        calls: Line of calls.jsonl; empty if it failed.
        statistics: Line of statistics.jsonl.
        traceback: Traceback of a failure.
    """

    number: int
    id: str
    failed: bool
    prediction: bytes
    calls: bytes
    statistics: bytes
    traceback: bytes = b""


@dataclass(frozen=True, slots=True)
class FinishedExample:
    """A finished example.

    Attributes:
        number: Number of the example in its task.
        row: The same example as a store holds it; None where nobody wants rows.
        prediction: Prediction; None if the example failed.
        failure: Error; None unless the example failed.
        calls: Reads with their outputs, in order; empty if the example failed.
        notes: Notes of its stages.
    """

    number: int
    row: FinishedRow | None
    prediction: Prediction | None = None
    failure: ExampleError | None = None
    calls: Sequence[Call] = ()
    notes: Sequence[str] = ()

    @classmethod
    def succeeded(
        cls,
        number: int,
        prediction: Prediction,
        calls: Sequence[Call],
        notes: Sequence[str],
        statistics: ExampleStatistics,
    ) -> FinishedExample:
        """Returns an example that has a prediction.

        Raises:
            TypeError: The prediction or a statistic is not JSON.
            ValueError: It holds a number that is not finite.
        """
        columns = calls_row([(call.round, call.read, call.reply) for call in calls])
        row = FinishedRow(
            number,
            prediction.id,
            failed=False,
            prediction=_line(prediction_row(prediction)),
            calls=_line({"id": prediction.id, "calls": columns, "notes": [*notes]}),
            statistics=_line(statistics.row()),
        )
        return cls(number, row, prediction, calls=calls, notes=notes)

    @classmethod
    def failed(
        cls, number: int, example: Example, error: ExampleError, statistics: ExampleStatistics
    ) -> FinishedExample:
        """Returns an example that failed."""
        trace = error.trace and f"{TRACEBACKS}/{digest(error.trace)}.txt"
        failure = {
            "id": example.id,
            "stage": error.stage,
            "error": error.message,
            "traceback": trace,
        }
        row = FinishedRow(
            number,
            example.id,
            failed=True,
            prediction=_line(failure),
            calls=b"",
            statistics=_line(statistics.row()),
            traceback=error.trace.encode(errors="backslashreplace"),
        )
        return cls(number, row, failure=error)


def _line(row: Mapping[str, Any]) -> bytes:
    return _encode(row).encode(errors="backslashreplace") + b"\n"


@dataclass(frozen=True, slots=True)
class ExampleStatistics:
    """What tables need of a finished example: a row of statistics.jsonl.

    Attributes:
        number: Number of the example in its task.
        id: Id of the example.
        statistics: Statistics by metric; None where it has nothing to be scored against.
        document: SHA-256 of its document's text; empty if it failed.
        coverage: Ledger in characters; empty if it failed.
        empty: Whether the prediction is empty.
        failure: Stage and first line of the error, if it failed.
        notes: Notes of its stages.
        input_tokens: Tokens that the reader was given for it.
        output_tokens: Tokens that the reader wrote.
        dollars: Price of its reads, where the reader knows prices.
        faults: Faults of metrics that failed on it, by metric.
        roles: What readers of several roles did for it: reads, tokens, dollars, by role.
        way: Way that its answer came through combiners that choose; empty without any.
        reads: Number of its reads, where there is such a way.
        characters: Number of characters that these were given, likewise.
        confidence: Probability that the answer is right; None where nobody knows.
        abstained: Whether the answer was withheld.
    """

    number: int
    id: str
    statistics: Mapping[str, Any]
    document: str = ""
    coverage: Mapping[str, int] = field(default_factory=dict)
    empty: bool = False
    failure: tuple[str, str] | None = None
    notes: Sequence[str] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = None
    faults: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    way: str = ""
    reads: int = 0
    confidence: float | None = None
    abstained: bool = False
    characters: int = 0

    @classmethod
    def of(
        cls,
        number: int,
        prediction: Prediction,
        statistics: Mapping[str, Any],
        *,
        calls: Sequence[Call],
        notes: Sequence[str],
        faults: Mapping[str, str],
    ) -> ExampleStatistics:
        """Returns the statistics of an example that has a prediction."""
        way = ", ".join(way_of(prediction.raw))
        coverage = prediction.coverage
        return cls(
            number,
            prediction.id,
            statistics,
            document=prediction.document_sha256,
            coverage={name: getattr(coverage, name) for name in coverage.__slots__},
            empty=not prediction.prediction,
            notes=notes,
            faults=faults,
            roles=_by_role(calls),
            way=way,
            reads=len(calls) if way else 0,
            confidence=prediction.confidence,
            abstained=prediction.abstained,
            characters=sum(map(_characters, calls)) if way else 0,
            **cost_of(call.reply for call in calls),
        )

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> ExampleStatistics:
        """Returns what `row` made."""
        failure = row.get("failure")
        return cls(**{**row, "failure": tuple(failure) if failure else None})

    def row(self) -> dict[str, JSON]:
        """Returns the row, without what is empty."""
        row: dict[str, Any] = {"number": self.number, "id": self.id, "statistics": self.statistics}
        for name in _OPTIONAL:
            value = getattr(self, name)
            if value or (name == "confidence" and value == 0):
                row[name] = value
        return row


_OPTIONAL = [n for n in ExampleStatistics.__slots__ if n not in ("number", "id", "statistics")]


def cost_of(replies: Iterable[Reply]) -> dict[str, Any]:
    """Returns the cost of reads; failed ones cost nothing.

    `input_tokens` and `output_tokens`; `dollars`, None where no read knows its price.
    """
    outputs = [reply for reply in replies if isinstance(reply, Output)]
    prices = [output.dollars for output in outputs if output.dollars is not None]
    return {
        "input_tokens": sum(output.input_tokens for output in outputs),
        "output_tokens": sum(output.output_tokens for output in outputs),
        "dollars": sum(prices) if prices else None,
    }


def _by_role(calls: Sequence[Call]) -> dict[str, dict[str, Any]]:
    """Returns reads, refused reads and cost by role; empty if all are the answering reader's."""
    if not any(call.read.role or _over_budget(call) for call in calls):
        return {}
    roles: dict[str, list[Call]] = {}
    for call in calls:
        roles.setdefault(call.read.role or ANSWER, []).append(call)
    return {
        role: {
            "reads": sum(not _over_budget(call) for call in calls_of_role),
            "over_budget": sum(map(_over_budget, calls_of_role)),
            **cost_of(call.reply for call in calls_of_role),
        }
        for role, calls_of_role in roles.items()
    }


def _over_budget(call: Call) -> bool:
    return isinstance(call.reply, Output) and call.reply.over_budget


def _characters(call: Call) -> int:
    return sum(len(p) if isinstance(p, str) else p.end - p.start for p in call.read.passages)
