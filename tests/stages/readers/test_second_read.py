"""Tests of the second read, with the encoder of the package."""

from pathlib import Path

import pytest

from leporello.models.locate import locate
from leporello.readers.embedded.answers import answer_question, answers, window_of
from leporello.readers.embedded.encoder import TextPair
from leporello.readers.embedded.spans import Candidate, SpanHead

QUESTION = "Where did the man who painted the lighthouse come from?"
PASSAGES = (
    "The lighthouse was painted by Grigor Sande. It is white.",
    "Grigor Sande came from Lydd, where his father made rope.",
    "Ann Dunning came from Stroud, a town of mills.",
)


@pytest.fixture(scope="module", name="encoder")
def _encoder() -> SpanHead:
    return SpanHead(Path(locate("leporello-en")) / "answers")


def candidate(text: str, passage: int, passages: tuple[str, ...] = PASSAGES) -> Candidate:
    start = passages[passage].index(text)
    return Candidate(text, passage, start, start + len(text), 0.0)


def words(encoder: SpanHead, text: str) -> list[int]:
    return encoder.tokenize([text])[0].ids


def tokens_at(pair: TextPair, place: tuple[int, int]) -> list[int]:
    first, last = place
    return [*pair.text][first - pair.first : last + 1 - pair.first]


def test_a_passage_that_another_passage_explains_comes_first(encoder: SpanHead) -> None:
    read = encoder.read([(QUESTION, text) for text in PASSAGES])
    first = answers(QUESTION, PASSAGES, read)
    answered = answer_question(encoder, QUESTION, PASSAGES)
    assert (first[0].text, answered.candidates[0].text) == ("Grigor Sande", "Lydd")
    assert sorted(c.text for c in answered.candidates) == sorted(c.text for c in first)
    scores = [c.score for c in answered.candidates[:8]]
    assert scores == sorted(scores, reverse=True)


def test_the_window_has_the_sentences_of_the_candidates(encoder: SpanHead) -> None:
    candidates = (candidate("Lydd", 1), candidate("Grigor Sande", 0))
    pair, places = window_of(encoder, QUESTION, PASSAGES, candidates)
    separator = [encoder.separator]
    assert pair.text == words(encoder, PASSAGES[1]) + separator + words(encoder, PASSAGES[0])
    assert tokens_at(pair, places[0]) == words(encoder, "Lydd")
    assert tokens_at(pair, places[1]) == words(encoder, "Grigor Sande")


def test_a_candidate_without_room_is_left_out(encoder: SpanHead) -> None:
    candidates = (candidate("Lydd", 1), candidate("Stroud", 2))
    room = len(words(encoder, PASSAGES[1]))
    pair, places = window_of(encoder, QUESTION, PASSAGES, candidates, room=room)
    assert places.keys() == {0}
    assert pair.text == words(encoder, PASSAGES[1])


def test_a_long_sentence_is_cut_around_the_candidate(encoder: SpanHead) -> None:
    passages = (f"{'rope ' * 200}Lydd {'mill ' * 200}", PASSAGES[2])
    candidates = (candidate("Lydd", 0, passages), candidate("Stroud", 1, passages))
    pair, places = window_of(encoder, QUESTION, passages, candidates)
    around = words(encoder, "rope " * 60 + "Lydd " + "mill " * 60)
    assert pair.text == [*around, encoder.separator, *words(encoder, PASSAGES[2])]
    assert tokens_at(pair, places[1]) == words(encoder, "Stroud")


@pytest.mark.parametrize(
    ("passages", "candidates"),
    [
        ((), []),
        (PASSAGES[:1], [candidate("Grigor Sande", 0), candidate("white", 0)]),
        (PASSAGES, [candidate("Lydd", 1)]),
        (PASSAGES, [Candidate("yes", 0, 0, 0, 1.0), Candidate("no", 0, 0, 0, 0.5)]),
    ],
    ids=["no passage", "one passage", "one candidate", "no text of a passage"],
)
def test_answers_without_a_rival_elsewhere_are_not_read_again(
    encoder: SpanHead, passages: tuple[str, ...], candidates: list[Candidate]
) -> None:
    _, places = window_of(encoder, QUESTION, passages, candidates)
    assert len(places) < 2
