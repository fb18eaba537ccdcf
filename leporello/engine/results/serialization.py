"""Converts predictions, reads, outputs and failures to JSON and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leporello.core.calls.answers import as_text, confidence_of, rounded
from leporello.core.coverage import Coverage, Span, merge, outside
from leporello.core.errors import ReadError
from leporello.core.files import in_utf8
from leporello.core.passages import Passage, spans_of
from leporello.core.records import (
    JSON,
    Chunk,
    Document,
    Example,
    Hit,
    HitPassage,
    Output,
    Prediction,
    Read,
    Reply,
)
from leporello.engine.results.columns import from_columns, to_columns

# Fields of a prediction that rows omit if they are empty.
_DERIVED = ("stood_for", "passages", "confidence", "abstained")
_SEEN = "all"  # replaces the spans of an output that cover all chunks of its read
_EMPTY = Output("")
# Fields of an output that few readers set; rows omit them if they are None or False.
_RARE = Output.__slots__[Output.__slots__.index("span") :]
# Columns and the values that they are omitted for; a failed read has the last two.
_OUTPUT: Mapping[str, JSON] = {
    **{name: getattr(_EMPTY, name) for name in Output.__slots__},
    **{"scores": [], "error": None, "traceback": ""},
}
_READ: Mapping[str, JSON] = {
    "round": 0,
    **{name: getattr(Read(()), name) for name in Read.__slots__ if name != "passages"},
    "choices": [],
}


# -- predictions ---------------------------------------------------------------------------------


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
    the reader saw only as other text, such as a summary.

    Raises:
        TypeError: JSON cannot represent the value that the combiner returned.
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
    ledger = Coverage.of(len(example.document.text), example.document.losses, (), ())
    return Prediction(example.id, "", None, (), (), ledger, example.document.sha256)


def prediction_row(prediction: Prediction) -> dict[str, JSON]:
    """Returns a row of predictions.jsonl."""
    row: dict[str, JSON] = {
        **_fields(prediction),
        "hits": [list(hit) for hit in prediction.hits],
        "read": _pairs(prediction.read),
        "coverage": _fields(prediction.coverage),
        "stood_for": _pairs(prediction.stood_for),
        "passages": {
            str(rank): {**_fields(passage), "spans": _pairs(passage.spans)}
            for rank, passage in prediction.passages.items()
        },
    }
    return {
        name: value
        for name, value in row.items()
        if name not in _DERIVED or value or isinstance(value, float)
    }


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


# -- reads ---------------------------------------------------------------------------------------


def reads_to_columns(reads: Sequence[tuple[int, Read]]) -> dict[str, JSON]:
    """Returns reads and their rounds as columns; each distinct passage is stored once."""
    indices: dict[tuple[int, int] | str, int] = {}
    rows: list[list[JSON]] = [
        [indices.setdefault(_key(passage), len(indices)) for passage in read.passages]
        for _, read in reads
    ]
    passages: list[JSON] = [key if isinstance(key, str) else [*key] for key in indices]
    values: dict[str, list[JSON]] = {"round": [round_ for round_, _ in reads]}
    for name in _READ:
        if name != "round":
            values[name] = [getattr(read, name) for _, read in reads]
    values["choices"] = [[*read.choices] for _, read in reads]
    values["pair"] = [pair_of(read) for _, read in reads]
    columns = to_columns(_without_defaults(values, _READ))
    return {"count": len(reads), "passages": passages, "of": _by_position(rows), **columns}


def reads_from_columns(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns one mapping per read, with passages as [start, end] or text.

    Raises:
        ValueError: The columns have different lengths.
        KeyError: A column is missing.
    """
    count, passages = columns["count"], columns["passages"]
    filled = {name: columns.get(name, {"=": value}) for name, value in _READ.items()}
    return [
        {"round": row.pop("round"), "passages": [passages[index] for index in indices], **row}
        for indices, row in zip(
            _indices(columns["of"], count), from_columns(filled, count), strict=True
        )
    ]


def read_from_row(row: Mapping[str, Any], document: Document) -> Read:
    """Returns the read of a mapping from `reads_from_columns`."""
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
        role=row["role"],
        schema=row["schema"],
    )


def _by_position(rows: list[list[JSON]]) -> JSON:
    """Packs indices of passages by position in the read, if all reads have equally many."""
    sizes = {len(row) for row in rows}
    if len(sizes) != 1:
        return [*rows]
    return to_columns({str(at): [*column] for at, column in enumerate(zip(*rows, strict=True))})


def _indices(column: Any, count: int) -> list[list[int]]:  # noqa: ANN401 -- JSON
    if isinstance(column, dict):
        return [[*row.values()] for row in from_columns(column, count)]
    return [*column]


def _key(passage: Chunk | str) -> tuple[int, int] | str:
    return passage if isinstance(passage, str) else (passage.start, passage.end)


def pair_of(read: Read) -> JSON:
    """Returns a read's pair of texts; None without a pair, True if its texts are the passages."""
    if read.pair is None:
        return None
    texts = [p if isinstance(p, str) else p.text for p in read.passages]
    return True if texts == [*read.pair] else [*read.pair]


def _pair_from_row(pair: Any, passages: Sequence[Chunk | str]) -> tuple[str, str] | None:  # noqa: ANN401 -- of JSON
    if pair is True:
        first, second = (p if isinstance(p, str) else p.text for p in passages)
        return first, second
    return tuple(pair) if pair else None


# -- outputs -------------------------------------------------------------------------------------


def outputs_to_columns(replies: Sequence[tuple[Read, Reply]]) -> dict[str, JSON]:
    """Returns outputs or errors of reads as columns, without columns of default values."""
    outputs = [_EMPTY if isinstance(reply, ReadError) else reply for _, reply in replies]
    values: dict[str, list[JSON]] = {
        name: [getattr(output, name) for output in outputs] for name in Output.__slots__
    }
    values["scores"] = [[*output.scores] for output in outputs]
    values["read"] = [_read_spans(read, o) for (read, _), o in zip(replies, outputs, strict=True)]
    spans = [output.span for output in outputs]  # an empty one is false
    values["span"] = [None if span is None else [span.start, span.end] for span in spans]
    values["error"] = [str(r) if isinstance(r, ReadError) else None for _, r in replies]
    values["traceback"] = [r.trace if isinstance(r, ReadError) else "" for _, r in replies]
    return to_columns(_without_defaults(values, _OUTPUT))


def _read_spans(read: Read, output: Output) -> JSON:
    if output.read is None:
        return None
    pairs = _pairs(output.read)
    return _SEEN if pairs and pairs == _chunk_pairs(read) else pairs


def output_rows(columns: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    """Returns one mapping per output; `full_output` turns them into rows with spans.

    Raises:
        ValueError: A column does not contain `count` values.
    """
    filled = {name: columns.get(name, {"=": value}) for name, value in _OUTPUT.items()}
    return from_columns(filled, count)


def full_output(row: Mapping[str, Any], passages: Sequence[Any]) -> dict[str, Any]:
    """Returns a row of `output_rows` without rare fields that are None or False.

    The passages of the read are [start, end] or text.
    """
    if row["error"] is not None:
        return {"error": row["error"], "traceback": row["traceback"]}
    values = {
        name: row[name]
        for name in Output.__slots__
        if name not in _RARE or (row[name] is not None and row[name] is not False)
    }
    if row["read"] == _SEEN:
        values["read"] = [[*passage] for passage in passages if not isinstance(passage, str)]
    return values


def reply_of(row: Mapping[str, Any], read: Read) -> Reply:
    """Returns the reply to a read from a mapping of `output_rows`."""
    values = full_output(
        row, [p if isinstance(p, str) else (p.start, p.end) for p in read.passages]
    )
    if "error" in values:
        return ReadError(values["error"], values["traceback"])
    values["scores"] = tuple(values["scores"])
    if values["read"] is not None:
        values["read"] = tuple(Span(start, end) for start, end in values["read"])
    if "span" in values:
        values["span"] = Span(*values["span"])
    return Output(**values)


def calls_row(calls: Sequence[tuple[int, Read, Reply]]) -> dict[str, JSON]:
    """Returns reads with their rounds and replies as columns for calls.jsonl."""
    reads = reads_to_columns([(round_, read) for round_, read, _ in calls])
    return {**reads, "outputs": {**outputs_to_columns([(r, reply) for _, r, reply in calls])}}


def calls_from_row(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns one mapping per read, with its `output`, from the `calls` of a row of calls.jsonl.

    Raises:
        ValueError: The columns have different lengths.
        KeyError: A column is missing.
    """
    reads = reads_from_columns(row)
    outputs = output_rows(row["outputs"], len(reads))
    return [
        {**read, "output": full_output(output, read["passages"])}
        for read, output in zip(reads, outputs, strict=True)
    ]


def _without_defaults(
    values: Mapping[str, list[JSON]], defaults: Mapping[str, JSON]
) -> dict[str, list[JSON]]:
    return {n: column for n, column in values.items() if column.count(defaults[n]) < len(column)}


def _chunk_pairs(read: Read) -> list[list[int]]:
    return [[p.start, p.end] for p in read.passages if isinstance(p, Chunk)]


def _fields(record: Prediction | HitPassage | Coverage) -> dict[str, Any]:
    """Returns the fields of a record; `dataclasses.asdict` would deep-copy every value."""
    return {name: getattr(record, name) for name in record.__slots__}


def _pairs(spans: Iterable[Span]) -> JSON:
    return [[span.start, span.end] for span in spans]
