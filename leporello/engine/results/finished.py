"""Predictions and finished examples, as objects and as the lines of a run's files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from leporello.core.calls.answers import as_text, confidence_of, rounded, way_of
from leporello.core.coverage import Coverage, merge, outside
from leporello.core.files import in_utf8
from leporello.core.hashing import digest
from leporello.core.passages import Passage, spans_of
from leporello.core.protocols import ANSWER
from leporello.core.records import (
    JSON,
    Chunk,
    Example,
    Hit,
    HitPassage,
    Output,
    Prediction,
    Read,
    Reply,
    Span,
)
from leporello.engine.failures import ExampleError
from leporello.engine.results.serialization import call_row, complete_call, pairs

# Statistics by metric, and the error messages of metrics that failed.
Scored: TypeAlias = tuple[Mapping[str, Any], Mapping[str, str]]
TRACEBACKS = "tracebacks"  # the folder beside failures.jsonl
# Fields of a prediction that rows omit if they are empty.
_DERIVED = ("stood_for", "passages", "confidence", "abstained")

# NaN is not JSON: raise here instead of in another program that reads the file. Without a check for
# values that contain themselves, which raise RecursionError.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False).encode


def prediction_of(
    example: Example,
    hits: Iterable[Hit],
    calls: Iterable[tuple[Read, Reply]],
    value: JSON,
    unchunked: int = 0,
    *,
    stood_for: Iterable[Span] = (),
) -> Prediction:
    """Returns the prediction of an example for the value that its combiner returned.

    `unchunked` is the number of characters that are in no chunk. `stood_for` contains spans that
    the reader saw only as other text, such as a summary. Raises TypeError if JSON cannot represent
    the value.
    """
    document, hits, calls, value = example.document, tuple(hits), [*calls], in_utf8(value)
    text = as_text(value)
    read = merge(
        span for r, reply in calls if isinstance(reply, Output) for span in _seen(r, reply)
    )
    # Text that was also read itself counts as read, so that the shares of the coverage add up to 1.
    replaced = tuple(part for span in merge(stood_for) for part in outside(span, read))
    selected = (span for hit in hits for span in spans_of(hit.chunk))
    return Prediction(
        id=example.id,
        prediction=text,
        raw=value,
        hits=tuple((h.chunk.start, h.chunk.end, rounded(h.score)) for h in hits),
        read=read,
        coverage=Coverage.of(
            len(document.text),
            document.losses,
            selected,
            read,
            unchunked=unchunked,
            stood_for=replaced,
        ),
        document_sha256=document.sha256,
        stood_for=replaced,
        passages={
            # Without sources: the root of a summary tree would bring the complete tree into every
            # row. They are in the store, where `explain` finds them (decision 46).
            rank: HitPassage(hit.chunk.kind, hit.chunk.reading, hit.chunk.spans)
            for rank, hit in enumerate(hits)
            if isinstance(hit.chunk, Passage)
        },
        confidence=confidence_of(value, (reply for _, reply in calls if isinstance(reply, Output))),
    )


def _seen(read: Read, output: Output) -> tuple[Span, ...]:
    """Returns the spans that a reader saw: those in the output, by default all of the read."""
    if output.read is not None:
        return output.read
    return tuple(passage.span for passage in read.passages if isinstance(passage, Chunk))


def empty_prediction(example: Example) -> Prediction:
    """Returns the empty prediction that a failed example is scored with."""
    return prediction_of(example, (), (), None)


def prediction_row(prediction: Prediction) -> dict[str, JSON]:
    """Returns a row of predictions.jsonl."""
    row = _fields(prediction)
    row["hits"] = [*map(list, prediction.hits)]
    row["read"] = pairs(prediction.read)
    row["coverage"] = _fields(prediction.coverage)
    row["stood_for"] = pairs(prediction.stood_for)
    row["passages"] = {
        str(rank): {**_fields(passage), "spans": pairs(passage.spans)}
        for rank, passage in prediction.passages.items()
    }
    for name in _DERIVED:
        if not row[name] and not isinstance(row[name], float):
            del row[name]
    return row


def _fields(record: Prediction | HitPassage | Coverage) -> dict[str, Any]:
    """Returns the fields of a record; `dataclasses.asdict` would deep-copy every value."""
    return {name: getattr(record, name) for name in record.__slots__}


def prediction_from_row(row: Mapping[str, Any]) -> Prediction:
    """Returns the prediction of a row of predictions.jsonl."""
    return Prediction(
        id=row["id"],
        prediction=row["prediction"],
        raw=row["raw"],
        hits=tuple((start, end, score) for start, end, score in row["hits"]),
        read=tuple(Span(start, end) for start, end in row["read"]),
        coverage=Coverage(**row["coverage"]),
        document_sha256=row["document_sha256"],
        stood_for=tuple(Span(start, end) for start, end in row.get("stood_for", ())),
        passages={
            int(rank): HitPassage(p["kind"], p["text"], tuple(Span(*span) for span in p["spans"]))
            for rank, p in row.get("passages", {}).items()
        },
        confidence=row.get("confidence"),
        abstained=row.get("abstained", False),
    )


@dataclass(frozen=True, slots=True)
class Call:
    """A read, the round of the combiner that requested it, and its output or error."""

    round: int
    read: Read
    reply: Reply


@dataclass(frozen=True)
class FinishedRow:
    """A finished example as stores and results contain it; its properties parse the lines."""

    number: int  # number of the example in its task
    id: str
    failed: bool
    # Line of predictions.jsonl (of failures.jsonl if the example failed), its reads (empty if it
    # failed), line of statistics.jsonl, and the traceback, which results store separately.
    lines: Sequence[bytes]

    @cached_property
    def statistics(self) -> ExampleStatistics:
        """Row of statistics.jsonl."""
        return ExampleStatistics.from_row(json.loads(self.lines[2]))

    @cached_property
    def prediction(self) -> Mapping[str, Any] | None:
        """Row of predictions.jsonl; None if the example failed."""
        row: Mapping[str, Any] | None = None if self.failed else json.loads(self.lines[0])
        return row

    @cached_property
    def failure(self) -> Mapping[str, Any] | None:
        """Row of failures.jsonl; None unless the example failed."""
        row: Mapping[str, Any] | None = json.loads(self.lines[0]) if self.failed else None
        return row

    @cached_property
    def calls(self) -> list[dict[str, Any]]:
        """Reads with their outputs, one mapping per read; see `complete_call`."""
        return [*map(complete_call, json.loads(self.lines[1] or b"[]"))]

    @property
    def traceback(self) -> str:
        """Traceback of a failure in a store; otherwise empty."""
        return self.lines[3].decode()


def succeeded(
    number: int,
    prediction: Prediction,
    calls: Sequence[Call],
    notes: Sequence[str],
    scored: Scored,
) -> FinishedRow:
    """Returns an example that has a prediction; raises if JSON cannot represent a value."""
    way = ", ".join(way_of(prediction.raw))
    statistics = ExampleStatistics(
        number,
        prediction.id,
        scored[0],
        document=prediction.document_sha256,
        coverage=_fields(prediction.coverage),
        empty=not prediction.prediction,
        notes=notes,
        faults=scored[1],
        roles=_by_role(calls),
        way=way,
        reads=len(calls) if way else 0,
        confidence=prediction.confidence,
        abstained=prediction.abstained,
        characters=sum(map(_characters, calls)) if way else 0,
        **_cost_of(calls),
    )
    rows = [call_row(call.round, call.read, call.reply) for call in calls]
    lines = (_line(prediction_row(prediction)), _line(rows), _line(statistics.row()), b"")
    return FinishedRow(number, prediction.id, False, lines)


def failed(number: int, example: Example, error: ExampleError, scored: Scored) -> FinishedRow:
    """Returns an example that failed; `scored` are the statistics of an empty prediction."""
    # By content: thousands of examples often fail in the same line, and then share one file.
    trace = error.trace and f"{TRACEBACKS}/{digest(error.trace)}.txt"
    failure = {"id": example.id, "stage": error.stage, "error": error.message, "traceback": trace}
    cause = error.stage, error.message.partition("\n")[0]
    statistics = ExampleStatistics(number, example.id, scored[0], failure=cause, faults=scored[1])
    traceback = error.trace.encode(errors="backslashreplace")
    lines = _line(failure), b"", _line(statistics.row()), traceback
    return FinishedRow(number, example.id, True, lines)


def _line(row: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> bytes:
    """Returns a row, or rows, as a line of JSON, in which unpaired surrogates are escaped."""
    return _encode(row).encode(errors="backslashreplace") + b"\n"


@dataclass(slots=True)  # frozen, its many fields would take three times as long to set
class ExampleStatistics:
    """Row of statistics.jsonl: values of a finished example that the tables of results require."""

    number: int  # number of the example in its task
    id: str
    # Statistics by metric; None if the example has no reference for the metric.
    statistics: Mapping[str, Any]
    document: str = ""  # SHA-256 of the document's text; empty if the example failed
    # Coverage in characters; empty if the example failed.
    coverage: Mapping[str, int] = field(default_factory=dict)
    empty: bool = False  # whether the prediction is empty
    # Stage and first line of the error, if the example failed.
    failure: tuple[str, str] | None = None
    notes: Sequence[str] = ()
    input_tokens: int = 0  # number of tokens of the reads' prompts
    output_tokens: int = 0  # number of tokens that the reader generated
    dollars: float | None = None  # price of the reads, if the reader knows prices
    # Error messages of metrics that failed on the example, by metric.
    faults: Mapping[str, str] = field(default_factory=dict)
    # Reads, tokens and dollars by role, if readers of several roles were used.
    roles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    way: str = ""  # branches that combiners with a choice took; empty without such combiners
    reads: int = 0  # number of reads; 0 if `way` is empty
    confidence: float | None = None  # probability that the answer is correct; None if unknown
    abstained: bool = False  # whether the answer was withheld
    characters: int = 0  # number of characters in the passages of the reads; 0 if `way` is empty

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> ExampleStatistics:
        """Returns the statistics of a row that `row` returned."""
        failure = row.get("failure")
        return cls(**{**row, "failure": tuple(failure) if failure else None})

    def row(self) -> dict[str, JSON]:
        """Returns the row without empty fields."""
        row: dict[str, Any] = {"number": self.number, "id": self.id, "statistics": self.statistics}
        for name in _OPTIONAL:
            value = getattr(self, name)
            # A confidence of 0 is a value; every other empty field equals its default.
            if value or (name == "confidence" and value == 0):
                row[name] = value
        return row


_OPTIONAL = [n for n in ExampleStatistics.__slots__ if n not in ("number", "id", "statistics")]


def _cost_of(calls: Iterable[Call]) -> dict[str, Any]:
    """Returns the cost of reads; `dollars` is None if no read has a price."""
    outputs = [call.reply for call in calls if isinstance(call.reply, Output)]
    prices = [output.dollars for output in outputs if output.dollars is not None]
    return {
        "input_tokens": sum(output.input_tokens for output in outputs),
        "output_tokens": sum(output.output_tokens for output in outputs),
        "dollars": sum(prices) if prices else None,
    }


def _by_role(calls: Sequence[Call]) -> dict[str, dict[str, Any]]:
    """Returns reads, refused reads and cost by role; empty if only the answering reader reads."""
    if not any(call.read.role or _over_budget(call) for call in calls):
        return {}
    roles: dict[str, list[Call]] = {}
    for call in calls:
        roles.setdefault(call.read.role or ANSWER, []).append(call)
    return {
        role: {
            "reads": sum(not _over_budget(call) for call in calls_of_role),
            "over_budget": sum(map(_over_budget, calls_of_role)),
            **_cost_of(calls_of_role),
        }
        for role, calls_of_role in roles.items()
    }


def _over_budget(call: Call) -> bool:
    return isinstance(call.reply, Output) and call.reply.over_budget


def _characters(call: Call) -> int:
    return sum(len(p) if isinstance(p, str) else p.end - p.start for p in call.read.passages)
