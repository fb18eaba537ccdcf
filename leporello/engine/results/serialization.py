"""Converts reads and outputs to columns of JSON, which store equal values once, and back.

A document of 250 paragraphs has 31,000 pairs of paragraphs, and a store has a row for each pair,
so bytes per row matter. The result is plain JSON; a column is one of

    [3, 1, 4]                                  the values
    {"=": 0}                                   the same value in each row
    {"+": [[0, 1, 250], [9, 0, 4]]}            integers: first, step, count
    {"of": ["no", "yes"], "at": "0110100"}     few distinct texts: one digit per row
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leporello.core.errors import ReadError
from leporello.core.records import JSON, Chunk, Document, Output, Read, Reply, Span

_DIGITS = "0123456789"
_SEQUENCE_COST = 4  # values that one sequence of integers must replace to save space
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
    columns = _columns(values, _READ)
    return {"count": len(reads), "passages": passages, "of": _by_position(rows), **columns}


def reads_from_columns(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns one mapping per read, with passages as [start, end] or text."""
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
    return _columns(values, _OUTPUT)


def _read_spans(read: Read, output: Output) -> JSON:
    if output.read is None:
        return None
    spans = pairs(output.read)
    chunks = [[p.start, p.end] for p in read.passages if isinstance(p, Chunk)]
    return _SEEN if spans and spans == chunks else spans


def output_rows(columns: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    """Returns one mapping per output; `full_output` turns them into rows with spans."""
    filled = {name: columns.get(name, {"=": value}) for name, value in _OUTPUT.items()}
    return from_columns(filled, count)


def full_output(row: Mapping[str, Any], passages: Sequence[Any]) -> dict[str, Any]:
    """Returns a row of `output_rows` without rare fields that are None or False."""
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
    """Returns one mapping per read, with its `output`, from the `calls` of a row of calls.jsonl."""
    reads = reads_from_columns(row)
    outputs = output_rows(row["outputs"], len(reads))
    return [
        {**read, "output": full_output(output, read["passages"])}
        for read, output in zip(reads, outputs, strict=True)
    ]


def _columns(values: Mapping[str, list[JSON]], defaults: Mapping[str, JSON]) -> dict[str, JSON]:
    return {n: _packed(c) for n, c in values.items() if c.count(defaults[n]) < len(c)}


def pairs(spans: Iterable[Span]) -> JSON:
    """Returns spans as JSON: [start, end] for each."""
    return [[span.start, span.end] for span in spans]


# -- columns --------------------------------------------------------------------------------------


def to_columns(values: Mapping[str, list[JSON]]) -> dict[str, JSON]:
    """Returns packed columns of values by field, one value per row."""
    return {name: _packed(column) for name, column in values.items() if column}


def from_columns(columns: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    """Returns `count` rows from their columns; raises ValueError if a column has another length."""
    values = {name: _unpacked(column, count) for name, column in columns.items()}
    return [{name: values[name][index] for name in values} for index in range(count)]


def _packed(values: list[JSON]) -> JSON:
    """Returns a column in the shortest of the four forms."""
    if len(values) == 1:
        return values
    if _are_equal(values):
        return {"=": values[0]}
    if numbers := [value for value in values if type(value) is int]:
        sequences = _sequences(numbers) if len(numbers) == len(values) else []
        saves = bool(sequences) and len(sequences) * _SEQUENCE_COST < len(values)
        return {"+": sequences} if saves else values
    texts = [*dict.fromkeys(value for value in values if isinstance(value, str))]
    are_few = len(texts) <= len(_DIGITS) and 2 * len(texts) < len(values)
    if are_few and all(isinstance(value, str) for value in values):
        digits = {text: _DIGITS[index] for index, text in enumerate(texts)}
        return {"of": [*texts], "at": "".join(digits[str(value)] for value in values)}
    return values


def _are_equal(values: Sequence[JSON]) -> bool:
    first = values[0]
    # `1 == True == 1.0` in Python, but not in JSON, and a resumed run must have the same bytes.
    if values.count(first) < len(values) or len({*map(type, values)}) > 1:
        return False
    # Equal values can have different JSON: -0.0 and 0.0, [1] and [1.0].
    return not isinstance(first, float | list | dict) or len(set(map(repr, values))) == 1


def _sequences(values: Sequence[int]) -> list[JSON]:
    """Returns (first, step, count) of the longest sequences with equal steps, in order."""
    sequences: list[JSON] = []
    start, last = 0, len(values) - 1
    while start <= last:
        step = values[start + 1] - values[start] if start < last else 0
        end = start
        while end < last and values[end + 1] - values[end] == step:
            end += 1
        sequences.append([values[start], step, end + 1 - start])
        start = end + 1
    return sequences


def _unpacked(column: Any, count: int) -> Sequence[Any]:  # noqa: ANN401 -- JSON
    values: Sequence[Any] = column
    if isinstance(column, dict):
        if "=" in column:
            return [column["="]] * count
        if "+" in column:
            values = [first + step * n for first, step, size in column["+"] for n in range(size)]
        else:
            values = [column["of"][int(digit)] for digit in column["at"]]
    if len(values) != count:
        raise ValueError(f"a column has {len(values)} values instead of {count}")
    return values
