"""Converts reads and outputs to rows of JSON, which omit default values, and back."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leporello.core.errors import ReadError
from leporello.core.records import JSON, Chunk, Document, Output, Read, Reply, Span

_ALL = "all"  # replaces the spans of an output that cover all chunks of its read
_OUTPUT: Mapping[str, Any] = {name: getattr(Output(""), name) for name in Output.__slots__}
# Fields that complete rows have, too; few readers set the others.
_COMMON = [*_OUTPUT][: [*_OUTPUT].index("span")]
_COMPLETE: Mapping[str, JSON] = {**{name: _OUTPUT[name] for name in _COMMON}, "scores": []}
_READ: Mapping[str, Any] = {n: getattr(Read(()), n) for n in Read.__slots__ if n != "passages"}


def call_row(round_: int, read: Read, reply: Reply) -> dict[str, JSON]:
    """Returns a read, the round of the combiner that requested it, and its output or error."""
    row: dict[str, JSON] = {"round": round_} if round_ else {}
    row["passages"] = [p if isinstance(p, str) else [p.start, p.end] for p in read.passages]
    row |= {n: value for n, default in _READ.items() if (value := getattr(read, n)) != default}
    if read.choices:
        row["choices"] = [*read.choices]
    if read.pair is not None:
        row["pair"] = pair_of(read)
    row["output"] = output_row(read, reply)
    return row


def complete_call(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a row of `call_row` with the defaults, except those of rare fields of outputs."""
    output = row["output"]
    if "error" not in output:
        output = {**_COMPLETE, **output}
    if output.get("read") == _ALL:
        output["read"] = [[*p] for p in row["passages"] if not isinstance(p, str)]
    return {"round": 0, **_READ, "choices": [], **row, "output": output}


def read_from_row(row: Mapping[str, Any], document: Document) -> Read:
    """Returns the read of a row that `complete_call` returned."""
    passages: list[Chunk | str] = [
        passage if isinstance(passage, str) else document.chunk(*passage)
        for passage in row["passages"]
    ]
    fields = {name: row[name] for name in _READ}
    fields["choices"] = tuple(row["choices"])
    fields["pair"] = _pair_from_row(row["pair"], passages)
    return Read(tuple(passages), **fields)


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


def output_row(read: Read, reply: Reply) -> dict[str, JSON]:
    """Returns the output or error of a read."""
    if isinstance(reply, ReadError):
        return {"error": str(reply), "traceback": reply.trace}
    row = {n: value for n, default in _OUTPUT.items() if (value := getattr(reply, n)) != default}
    if reply.scores:
        row["scores"] = [*reply.scores]
    if reply.read is not None:
        row["read"] = _read_spans(read, reply.read)
    if reply.span is not None:
        row["span"] = [reply.span.start, reply.span.end]
    return row


def _read_spans(read: Read, spans: Iterable[Span]) -> JSON:
    rows = pairs(spans)
    chunks = [[p.start, p.end] for p in read.passages if isinstance(p, Chunk)]
    return _ALL if rows and rows == chunks else rows


def reply_of(row: Mapping[str, Any], read: Read) -> Reply:
    """Returns the reply to a read from a row of `output_row`."""
    if "error" in row:
        return ReadError(row["error"], row["traceback"])
    values = {"text": "", **row, "scores": tuple(row.get("scores", ()))}
    if "read" in row:
        chunks = ((p.start, p.end) for p in read.passages if isinstance(p, Chunk))
        spans = chunks if row["read"] == _ALL else row["read"]
        values["read"] = tuple(Span(start, end) for start, end in spans)
    if "span" in row:
        values["span"] = Span(*row["span"])
    return Output(**values)


def pairs(spans: Iterable[Span]) -> list[JSON]:
    """Returns spans as JSON: [start, end] for each."""
    return [[span.start, span.end] for span in spans]
