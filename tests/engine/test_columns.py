"""Rows as columns: no value is lost, and many reads take few bytes."""

import json
import random
from itertools import combinations
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from leporello.core.calls.answers import rounded
from leporello.core.errors import ReadError
from leporello.core.records import Chunk, Document, Output, Read, Reply, Span
from leporello.engine.results.serialization import (
    calls_from_row,
    calls_row,
    from_columns,
    output_rows,
    outputs_to_columns,
    read_from_row,
    reads_from_columns,
    reads_to_columns,
    reply_of,
    to_columns,
)

DOCUMENT = Document("d", "It rained for 40 days. Nobody counted them.")

SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.integers() | st.sampled_from("abc")
) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    SCALARS,
    lambda values: st.lists(values, max_size=2) | st.dictionaries(st.sampled_from("ab"), values),
    max_leaves=4,
)
# Also columns of one kind, which are packed in different ways.
COLUMNS = (
    st.lists(VALUES, min_size=1, max_size=30)
    | st.lists(st.integers(-2, 2), min_size=1, max_size=30)
    | st.lists(st.sampled_from(["yes", "no", ""]), min_size=1, max_size=30)
    | st.lists(st.sampled_from([0, 0.0, -0.0, False, None, [0], [False]]), min_size=1)
    | st.builds(lambda first, step, n: [*range(first, first + step * n, step)],
                st.integers(), st.integers(1, 3), st.integers(1, 30))
)  # fmt: skip


def as_text(value: Any) -> str:
    """Returns JSON, in which 1, 1.0 and true differ."""
    return json.dumps(value)


@given(st.dictionaries(st.sampled_from("xyz"), COLUMNS, min_size=1))
@example({"x": [0.0, -0.0], "y": [[0], [False]]})
@example({"x": [0.0, 0], "y": [True, 1]})
def test_columns_restore_their_rows(values: dict[str, list[Any]]) -> None:
    """With their types, after a round trip through JSON."""
    count = min(map(len, values.values()))
    values = {name: column[:count] for name, column in values.items()}
    rows = [{name: values[name][index] for name in values} for index in range(count)]
    columns = json.loads(json.dumps(to_columns(values)))
    assert as_text(from_columns(columns, count)) == as_text(rows)


@pytest.mark.parametrize("column", [[1], {"+": [[0, 1, 4]]}, {"of": ["a"], "at": "00"}])
def test_a_column_of_another_length_is_refused(column: Any) -> None:
    with pytest.raises(ValueError, match="values instead of 3"):
        from_columns({"x": column}, 3)


TEXTS = st.text(max_size=5)
LENGTH = len(DOCUMENT.text)
SPANS = st.tuples(st.integers(0, LENGTH), st.integers(0, LENGTH)).map(lambda t: Span(*sorted(t)))
PASSAGES = st.lists(SPANS.map(lambda s: DOCUMENT.chunk(s.start, s.end)) | TEXTS, max_size=3)
FLOATS = st.floats(-1e9, 1e9).map(rounded)


@st.composite
def reads(draw: st.DrawFn) -> Read:
    passages = tuple(draw(PASSAGES))
    pair = draw(st.none() | st.tuples(TEXTS, TEXTS))
    if len(passages) == 2 and draw(st.booleans()):
        first, second = (p if isinstance(p, str) else p.text for p in passages)
        pair = first, second
    return Read(passages, draw(TEXTS), draw(TEXTS), tuple(draw(st.lists(TEXTS, max_size=2))), pair)


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    if draw(st.booleans()):
        return ReadError(draw(TEXTS), draw(TEXTS))
    spans = draw(st.none() | st.lists(SPANS, max_size=3).map(tuple))
    return Output(
        draw(st.sampled_from(["yes", "no"]) | TEXTS),
        draw(st.none() | FLOATS),
        tuple(draw(st.lists(FLOATS, max_size=2))),
        spans,
        draw(st.integers(0, 3)),
        draw(st.integers(0, 3)),
        draw(st.integers(0, 3)),
        draw(st.none() | SPANS),
        draw(st.none() | FLOATS),
    )


def parts(error: ReadError) -> tuple[str, str]:
    """Returns what an error is compared by."""
    return str(error), error.trace


def sees_all(read: Read) -> tuple[Read, Reply]:
    spans = tuple(p.span for p in read.passages if isinstance(p, Chunk))
    return read, Output("seen", read=spans)


CALLS = st.lists(st.tuples(reads(), replies()) | reads().map(sees_all), max_size=8)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(CALLS)
def test_columns_restore_reads_and_outputs(calls: list[tuple[Read, Reply]]) -> None:
    """From the columns of a store and from those of calls.jsonl."""
    rounds = [number // 2 for number in range(len(calls))]
    columns = (
        reads_to_columns([(n, read) for n, (read, _) in zip(rounds, calls, strict=True)]),
        outputs_to_columns(calls),
    )
    read_columns, output_columns = json.loads(json.dumps(columns))
    rows = reads_from_columns(read_columns)
    assert [row["round"] for row in rows] == rounds
    assert [read_from_row(row, DOCUMENT) for row in rows] == [read for read, _ in calls]
    outputs = output_rows(output_columns, len(calls))
    replies = [reply_of(row, read) for row, (read, _) in zip(outputs, calls, strict=True)]
    expected = [reply if isinstance(reply, Output) else parts(reply) for _, reply in calls]
    assert [r if isinstance(r, Output) else parts(r) for r in replies] == expected
    with_rounds = [(n, *call) for n, call in zip(rounds, calls, strict=True)]
    restored = calls_from_row(json.loads(json.dumps(calls_row(with_rounds))))
    texts = [call["output"].get("text", call["output"].get("error")) for call in restored]
    assert texts == [r.text if isinstance(r, Output) else str(r) for _, r in calls]


@pytest.mark.integration
def test_thirty_thousand_pairs_take_a_few_bytes_each() -> None:
    """All pairs of a document's 250 paragraphs, each with a label and a score."""
    chance = random.Random(0)
    document = Document("d", "\n".join(f"Paragraph {n}." for n in range(250)))
    starts = [n for n in range(len(document.text)) if document.text[n - 1 : n] in ("", "\n")]
    chunks = [document.chunk(start, start + 5) for start in starts]
    pairs = [Read(pair, pair=(pair[0].text, pair[1].text)) for pair in combinations(chunks, 2)]
    labels = [Output(chance.choice(["same", "other"]), rounded(chance.random())) for _ in pairs]
    assert len(pairs) == 31_125
    outputs = outputs_to_columns([*zip(pairs, labels, strict=True)])
    assert len(json.dumps(outputs)) < 12 * len(pairs)
    assert len(json.dumps(reads_to_columns([(0, pair) for pair in pairs]))) < len(pairs)
