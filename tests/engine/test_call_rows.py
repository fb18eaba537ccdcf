"""Rows of reads and outputs: no value is lost, and many reads take few bytes."""

import json
import random
from dataclasses import astuple
from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leporello.core.calls.answers import rounded
from leporello.core.errors import ReadError
from leporello.core.records import Chunk, Document, Output, Read, Reply, Span
from leporello.engine.database import encoded
from leporello.engine.results.serialization import (
    call_row,
    complete_call,
    output_row,
    read_from_row,
    reply_of,
)

DOCUMENT = Document("d", "It rained for 40 days. Nobody counted them.")

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


def sees_all(read: Read) -> tuple[Read, Reply]:
    spans = tuple(p.span for p in read.passages if isinstance(p, Chunk))
    return read, Output("seen", read=spans)


CALLS = st.lists(st.tuples(reads(), replies()) | reads().map(sees_all), max_size=8)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(CALLS)
def test_rows_restore_reads_and_outputs(calls: list[tuple[Read, Reply]]) -> None:
    """From the rows of batches and from those of finished examples."""
    for number, (read, reply) in enumerate(calls):
        row = json.loads(json.dumps(call_row(number, read, reply)))
        complete = complete_call(row)
        assert complete["round"] == number
        assert read_from_row(complete, DOCUMENT) == read
        restored = reply_of(json.loads(json.dumps(output_row(read, reply))), read)
        if isinstance(reply, Output):
            assert restored == reply
            spans = None if reply.read is None else [[*astuple(span)] for span in reply.read]
            assert (complete["output"]["text"], complete["output"]["read"]) == (reply.text, spans)
        else:
            assert isinstance(restored, ReadError)
            assert (str(restored), restored.trace) == (str(reply), reply.trace)
            assert complete["output"] == {"error": str(reply), "traceback": reply.trace}


@pytest.mark.integration
def test_thirty_thousand_pairs_take_a_few_bytes_each() -> None:
    """All pairs of a document's 250 paragraphs, each with a label and a score, in a store."""
    chance = random.Random(0)
    document = Document("d", "\n".join(f"Paragraph {n}." for n in range(250)))
    starts = [n for n in range(len(document.text)) if document.text[n - 1 : n] in ("", "\n")]
    chunks = [document.chunk(start, start + 5) for start in starts]
    pairs = [Read(pair, pair=(pair[0].text, pair[1].text)) for pair in combinations(chunks, 2)]
    labels = [Output(chance.choice(["same", "other"]), rounded(chance.random())) for _ in pairs]
    assert len(pairs) == 31_125
    rows = [call_row(0, *call) for call in zip(pairs, labels, strict=True)]
    assert len(encoded(rows)) < 20 * len(pairs)
