"""Tests of chunks around mentions, and of the retriever of the first, last and densest chunk."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

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


@pytest.fixture(scope="session")
def byte_level(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Folder of a tokenizer with several tokens per emoji."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=280, initial_alphabet=alphabet, show_progress=False)
    trained.train_from_iterator(["Jack Sparrow said some words. "] * 9, trainer)
    folder = tmp_path_factory.mktemp("bytes")
    trained.save(str(folder / "tokenizer.json"))
    return str(folder)


def windows(chunker: MentionWindows, text: str, name: str) -> list[str]:
    document = Document("d", text)
    with collect_notes():
        return [chunk.text for chunk in divide(chunker, document, name)]


def tokens_in(document: Document, model: str, start: int, end: int) -> list[int]:
    """Returns the starts of tokens that start in a span."""
    return [int(s) for s, _ in document.tokens(tokenizer(model)) if start <= s < end]


@pytest.mark.parametrize("model", ["words", "byte_level"])
def test_properties_of_chunks_around_mentions(model: str, byte_level: str) -> None:
    """Chunks do not overlap or exceed the size, contain all mentions, and are reproducible."""
    model = byte_level if model == "byte_level" else model

    @settings(max_examples=150, suppress_health_check=list(HealthCheck))
    @given(
        text=st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=50).map(" ".join),
        size=st.integers(1, 14),
    )
    def holds(text: str, size: int) -> None:
        document, chunker = Document("d", text), MentionWindows(size, model)
        names = mentions(ComposedText.of(text), "Jack Sparrow")
        with collect_notes() as notes:
            chunks = divide(chunker, document, "Jack Sparrow")
            again = divide(chunker, Document("d", text), "Jack Sparrow")
        assert [c.span for c in chunks] == [c.span for c in again]
        assert bool(notes) == (not chunks) == (not names)
        assert all(chunk.text and chunk.text == chunk.text.strip() for chunk in chunks)
        assert all(before.end <= after.start for before, after in pairwise(chunks))
        for chunk in chunks:
            tokens = tokens_in(document, model, chunk.start, chunk.end)
            assert len(tokens) <= max(
                size, 12 if model == byte_level else 0
            )  # an emoji has up to 12 tokens
            assert any(chunk.start <= mention.start < chunk.end for mention in names)
        for mention in names:
            assert sum(c.start <= mention.start < c.end for c in chunks) == 1

    holds()


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
    assert windows(MentionWindows(size), text, "Captain Jack Sparrow") == expected


def test_a_name_that_is_never_mentioned_is_reported_by_a_note() -> None:
    document = Document("d", "Nobody is here.")
    for question, reason in (("Harry", "never mentioned"), (" ", "is empty")):
        with collect_notes() as notes:
            assert divide(MentionWindows(), document, question) == ()
        assert reason in notes[0]


STORY = (
    "The rain fell. Harry came.\nHe sat.\nSo Harry saw Harry's boat.\nHe left.\n"
    "We saw Harry at the gate.\nNobody came.\n"
)


def picked(retriever: Mentions, chunker: Any, name: str, text: str = STORY) -> list[Hit]:
    document = Document("d", text)
    return retrieve(retriever, [Example("e", document, name)], divide(chunker, document, name))[0]


def texts_and_scores(hits: Sequence[Hit]) -> list[tuple[str, float]]:
    return [(hit.chunk.text, hit.score) for hit in hits]


def test_the_first_last_and_densest_chunks_are_hits() -> None:
    first, most = "The rain fell. Harry came.", "So Harry saw Harry's boat."
    last = "We saw Harry at the gate."
    assert len(picked(Mentions(), FixedTokens(4), "HARRY")) == 3
    assert texts_and_scores(picked(Mentions(), Lines(6), "HARRY")) == [
        (most, 2.0),
        (first, 1.0),
        (last, 1.0),
    ]


def test_without_mentions_there_are_no_hits() -> None:
    with collect_notes() as notes:
        assert picked(Mentions(), Lines(), "Sally") == []
    assert len(notes) == 1
    with collect_notes() as notes:
        assert retrieve(Mentions(), [Example("e", Document("d", ""), "Sally")], []) == [[]]
    assert notes == []
