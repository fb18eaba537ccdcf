"""What is written of an example, as JSON: predictions, calls and failures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leporello.coverage import coverage, merge, seen
from leporello.flight import Call, ExampleError, Flight, ReadError
from leporello.records import (
    JSON,
    Chunk,
    Coverage,
    Document,
    Example,
    Output,
    Prediction,
    Read,
    Span,
)

__all__ = [
    "call_rows",
    "cost_of",
    "empty_prediction",
    "failure_row",
    "output_from_row",
    "output_row",
    "prediction_from_row",
    "prediction_of",
    "prediction_row",
    "read_from_row",
    "rounded",
]

_RARE = ("span", "dollars")  # fields of an output that most readers leave out, and rows with them
_DIGITS = 6  # of scores: what lies beyond differs between machines


def rounded(score: float) -> float:
    """Rounds a score as it is written and compared."""
    return round(float(score), _DIGITS)


def prediction_of(flight: Flight) -> Prediction:
    """Returns the prediction of a landed flight.

    Raises:
        TypeError: The combiner returned something that JSON does not hold.
    """
    document = flight.example.document
    read = merge(
        span
        for call in flight.calls
        if isinstance(call.output, Output)
        for span in seen(call.read, call.output)
    )
    return Prediction(
        id=flight.example.id,
        prediction=_as_text(flight.value),
        raw=flight.value,
        hits=tuple((h.chunk.start, h.chunk.end, rounded(h.score)) for h in flight.hits),
        read=read,
        coverage=coverage(document, [hit.chunk.span for hit in flight.hits], read),
        document_sha256=document.sha256,
    )


def _as_text(value: JSON) -> str:
    """Returns what is scored: a text, the `answer` of a mapping that has such a text, or JSON."""
    if isinstance(value, dict) and isinstance(answer := value.get("answer"), str):
        value = answer
    if isinstance(value, str):
        return value.strip()
    try:
        return "" if value is None else json.dumps(value, ensure_ascii=False, allow_nan=False)
    except TypeError:
        raise TypeError(
            f"a combiner must return text or another JSON value, got {value!r:.200}"
            + ("; did you mean its .text?" if isinstance(value, Output) else "")
        ) from None


def empty_prediction(example: Example) -> Prediction:
    """Returns what a failed example is scored as."""
    ledger = Coverage(len(example.document.text), 0, 0, 0)
    return Prediction(example.id, "", None, (), (), ledger, example.document.sha256)


def prediction_row(prediction: Prediction) -> dict[str, JSON]:
    """Returns a row of predictions.jsonl."""
    return {
        **_fields(prediction),
        "hits": [list(hit) for hit in prediction.hits],
        "read": _pairs(prediction.read),
        "coverage": _fields(prediction.coverage),
    }


def prediction_from_row(row: Mapping[str, Any]) -> Prediction:
    """Returns the prediction that a row of predictions.jsonl holds."""
    return Prediction(
        id=row["id"],
        prediction=row["prediction"],
        raw=row["raw"],
        hits=tuple((start, end, score) for start, end, score in row["hits"]),
        read=tuple(Span(start, end) for start, end in row["read"]),
        coverage=Coverage(**row["coverage"]),
        document_sha256=row["document_sha256"],
    )


def call_rows(calls: Iterable[Call]) -> list[JSON]:
    """Returns what was read: passages as [start, end] or literal text, and the outputs."""
    return [
        {
            "round": call.round,
            "passages": [_passage(passage) for passage in call.read.passages],
            "question": call.read.question,
            "instruction": call.read.instruction,
            "choices": list(call.read.choices),
            "pair": _pair(call.read),
            "title": call.read.title,
            "output": output_row(call.output),
        }
        for call in calls
    ]


def cost_of(calls: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns what reading these rows of calls.jsonl cost, failed reads left out.

    `input_tokens` and `output_tokens`; `dollars`, None where no read knows its price.
    """
    said = [call["output"] for call in calls if "error" not in call["output"]]
    prices = [output["dollars"] for output in said if output.get("dollars") is not None]
    return {
        "input_tokens": sum(output["input_tokens"] for output in said),
        "output_tokens": sum(output["output_tokens"] for output in said),
        "dollars": sum(prices) if prices else None,
    }


def read_from_row(row: Mapping[str, Any], document: Document) -> Read:
    """Returns what was read, from a row of calls.jsonl."""
    passages: list[Chunk | str] = [
        passage if isinstance(passage, str) else document.chunk(*passage)
        for passage in row["passages"]
    ]
    return Read(
        tuple(passages),
        question=row["question"],
        instruction=row["instruction"],
        choices=tuple(row["choices"]),
        pair=_pair_from_row(row["pair"], passages),
        title=row["title"],
    )


def _pair(read: Read) -> JSON:
    """Returns a pair's texts; True where they are those of two passages, and need not be told."""
    if read.pair is None:
        return None
    texts = [p if isinstance(p, str) else p.text for p in read.passages]
    return True if texts == [*read.pair] else [*read.pair]


def _pair_from_row(pair: Any, passages: Sequence[Chunk | str]) -> tuple[str, str] | None:  # noqa: ANN401 -- of JSON
    if pair is True:
        one, other = (p if isinstance(p, str) else p.text for p in passages)
        return one, other
    return tuple(pair) if pair else None


def _passage(passage: Chunk | str) -> JSON:
    return passage if isinstance(passage, str) else [passage.start, passage.end]


def output_row(output: Output | ReadError) -> dict[str, JSON]:
    """Returns an output, or a failed read, as JSON."""
    if isinstance(output, ReadError):
        return {"error": str(output), "traceback": output.trace}
    read = None if output.read is None else _pairs(output.read)
    row = {**_fields(output), "scores": list(output.scores), "read": read}
    if output.span is not None:
        row["span"] = [output.span.start, output.span.end]
    return {name: row[name] for name in row if name not in _RARE or row[name] is not None}


def output_from_row(row: Mapping[str, Any]) -> Output | ReadError:
    """Returns what `output_row` was made from."""
    if "error" in row:
        return ReadError(row["error"], row.get("traceback", ""))
    read = None if row["read"] is None else tuple(Span(start, end) for start, end in row["read"])
    span = Span(*row["span"]) if "span" in row else None
    return Output(**{**row, "scores": tuple(row["scores"]), "read": read, "span": span})


def failure_row(example: Example, error: ExampleError) -> dict[str, JSON]:
    """Returns a failed example as the journal holds it, with the traceback."""
    return {
        "id": example.id,
        "stage": error.stage,
        "error": error.told,
        "traceback": error.trace,
    }


def _fields(record: Prediction | Coverage | Output) -> dict[str, Any]:
    """Returns a record's own fields; `dataclasses.asdict` would copy each of them deeply."""
    return {name: getattr(record, name) for name in record.__slots__}


def _pairs(spans: Iterable[Span]) -> list[list[int]]:
    return [[span.start, span.end] for span in spans]
