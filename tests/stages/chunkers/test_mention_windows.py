"""Tests of chunks around mentions, and of the retriever of the first, last and densest chunk."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leporello import Document, Example, Hit
from leporello.chunkers import FixedTokens, Lines, MentionWindows
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.core.notes import collect_notes
from leporello.retrievers import Mentions
from leporello.text.folding import ComposedText
from leporello.text.mentions import mentions
from leporello.text.tokens import tokenizer

PIECES = (
    "Jack", "Jack Sparrow", "Mr. Sparrow", "x", "some words", ". ", " ", "\n", "👩‍👩‍👧", "猫", "é",
)  # fmt: skip


@pytest.mark.parametrize("model", ["words", "llama"])  # `llama` has several tokens per emoji
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(
    text=st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=50).map(" ".join),
    size=st.integers(1, 14),
)
def test_properties_of_chunks_around_mentions(
    model: str, tiny: Callable[[str], str], text: str, size: int
) -> None:
    """Chunks do not overlap or exceed the size, and contain all mentions."""
    most = max(size, 12) if model == "llama" else size  # an emoji has up to 12 tokens
    model = tiny(model) if model == "llama" else model
    document, names = Document("d", text), mentions(ComposedText.of(text), "Jack Sparrow")
    with collect_notes() as notes:
        chunks = divide(MentionWindows(size, model), document, "Jack Sparrow")
    assert bool(notes) == (not chunks) == (not names)
    assert all(chunk.text and chunk.text == chunk.text.strip() for chunk in chunks)
    assert all(before.end <= after.start for before, after in pairwise(chunks))
    starts = [int(start) for start, _ in document.tokens(tokenizer(model))]
    for chunk in chunks:
        assert sum(chunk.start <= start < chunk.end for start in starts) <= most
        assert any(chunk.start <= mention.start < chunk.end for mention in names)
    for mention in names:
        assert sum(chunk.start <= mention.start < chunk.end for chunk in chunks) == 1


@pytest.mark.parametrize(
    ("size", "text", "expected"),
    [
        (3, "a b c d Jack e f g h", ["d Jack e"]),
        (5, "a b c d Jack e f g h", ["c d Jack e f"]),
        (4, "Jack e f g h", ["Jack e f g"]),
        (4, "a b c d Jack", ["b c d Jack"]),
        (5, "a b c Jack d Jack e f g", ["c Jack d Jack e"]),
        (3, "a Jack b c Jack d e", ["a Jack b", "c Jack d"]),
        (4, "a b Jack c d Jack e f g", ["b Jack c d", "Jack e f g"]),
        (1, "a Captain Jack Sparrow b", ["Captain"]),
        (99, "\n a\n\nJack\nb \n", ["a\n\nJack\nb"]),
        (3, "a b c d", []),
    ],
)
def test_mentions_are_in_the_middle_of_chunks(size: int, text: str, expected: list[str]) -> None:
    with collect_notes():
        chunks = divide(MentionWindows(size), Document("d", text), "Captain Jack Sparrow")
    assert [chunk.text for chunk in chunks] == expected


STORY = (
    "The rain fell. Harry came.\nHe sat.\nSo Harry saw Harry's boat.\nHe left.\n"
    "We saw Harry at the gate.\nNobody came.\n"
)


def picked(chunker: Any, name: str) -> list[Hit]:
    document = Document("d", STORY)
    return retrieve(Mentions(), [Example("e", document, name)], divide(chunker, document, name))[0]


def test_the_first_last_and_densest_chunks_are_hits() -> None:
    first, most = "The rain fell. Harry came.", "So Harry saw Harry's boat."
    last = "We saw Harry at the gate."
    assert len(picked(FixedTokens(4), "HARRY")) == 3
    hits = picked(Lines(6), "HARRY")
    assert [(hit.chunk.text, hit.score) for hit in hits] == [(most, 2.0), (first, 1.0), (last, 1.0)]


@pytest.mark.parametrize(("name", "reason"), [("Sally", "never mentioned"), (" ", "is empty")])
def test_a_name_without_mentions_has_no_chunks_and_no_hits(name: str, reason: str) -> None:
    with collect_notes() as notes:
        assert divide(MentionWindows(), Document("d", STORY), name) == ()
    assert reason in notes[0]
    with collect_notes() as notes:
        assert picked(Lines(), name) == []
    assert len(notes) == 1
