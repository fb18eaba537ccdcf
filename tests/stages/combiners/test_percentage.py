"""Tests of the percentage of hits for which a question is answered positively."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_example import drive, texts_of
from retrieval import joined

from leporello.combiners import Percentage
from leporello.core.errors import ReadError
from leporello.core.notes import collect_notes
from leporello.core.records import Document, Example, Hit, Output, Read

PARTS = ("Review 1:\nlovely", "Review 2:\ndull", "Review 3:\nlovely too")
ODDS = st.floats(-20, 20)


def _example(parts: Sequence[str] = PARTS) -> tuple[Example, list[Hit]]:
    chunks = joined(parts, "\n", title="Films")
    document = chunks[0].document if chunks else Document("d", "")
    example = Example("e", document, question="Is it good?", instruction="Count.")
    return example, [Hit(chunk, 0.0) for chunk in chunks]


def _drive(
    combiner: Percentage, answer: Callable[[Read], Output], parts: Sequence[str] = PARTS
) -> tuple[Any, list[Read]]:
    value, rounds = drive(combiner, answer, *_example(parts))
    return value, [read for reads in rounds for read in reads]


def _text(read: Read) -> str:
    [text] = texts_of(read)
    return text


def _judge(read: Read) -> Output:
    """Scores `yes` with probability 0.8 for lovely reviews, and 0.4 for others."""
    probability = 0.8 if "lovely" in _text(read) else 0.4
    return Output("", scores=(math.log(probability), math.log(1 - probability)))


def _scored(odds: Sequence[float]) -> tuple[list[str], Callable[[Read], Output]]:
    """Returns texts, and a function that returns the scores of reads with these log odds."""
    texts = [f"hit {place}" for place in range(len(odds))]
    odds_of = dict(zip(texts, odds, strict=True))

    def answer(read: Read) -> Output:
        value = odds_of[_text(read)]
        total = max(value, 0.0) + math.log1p(math.exp(-abs(value)))
        return Output("", scores=(value - total, -total))

    return texts, answer


def test_each_hit_is_read_separately_with_the_same_question() -> None:
    _, reads = _drive(Percentage(), _judge)
    assert [_text(read) for read in reads] == [*PARTS]
    requests = {(r.question, r.instruction, r.choices, r.title) for r in reads}
    assert requests == {("Is it good?", "", ("yes", "no"), "Films")}
    assert _drive(Percentage(), _judge, []) == (None, [])


@pytest.mark.parametrize(
    ("combiner", "expected"),
    [
        (Percentage(), "67%"),
        (Percentage(positive="no", negative="yes"), "67%"),
        (Percentage(share="pooled"), "69%"),
        (Percentage(share="likeliest"), "100%"),
    ],
)
def test_the_answer_is_a_percentage(combiner: Percentage, expected: str) -> None:
    value, _ = _drive(combiner, _judge)
    assert value == expected


def test_texts_without_scores_count_as_decisions() -> None:
    outputs = {PARTS[0]: "Yes.", PARTS[1]: "no", PARTS[2]: "I cannot tell"}
    with collect_notes() as notes:
        value, _ = _drive(Percentage(), lambda read: Output(outputs[_text(read)]))
    assert value == "50%"
    assert notes == ["some hits abstained: the percentage is of the other hits"]
    with pytest.raises(ValueError, match="use share: decisions"):
        _drive(Percentage(share="pooled"), lambda _: Output("yes"))


def test_hits_that_abstain_are_left_out_with_a_note() -> None:
    with collect_notes() as notes:
        value, _ = _drive(Percentage(), lambda _: Output("", scores=(-1.0, -1.0)))
    assert (value, notes) == (None, ["all hits abstained: there is no percentage"])
    in_doubt, _ = _drive(Percentage(share="pooled"), lambda _: Output("", scores=(-1.0, -1.0)))
    assert in_doubt == "50%"


def test_a_failed_read_abstains() -> None:
    def failing(read: Read) -> Output:
        if "dull" in _text(read):
            raise ReadError("too dull")
        return _judge(read)

    with collect_notes() as notes:
        value, reads = _drive(Percentage(), failing)
    assert (value, len(reads), len(notes)) == ("100%", 3, 1)
    for parts in (["dull"], ["dull", "very dull"]):
        with pytest.raises(ReadError, match="too dull"):
            _drive(Percentage(), failing, parts)


@given(st.lists(ODDS, min_size=1, max_size=20), st.randoms(), st.data())
def test_the_percentage_rises_with_the_odds_of_a_hit(
    odds: list[float], chance: Any, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(odds) - 1))
    raised = [*odds]
    raised[place] += data.draw(st.floats(0, 20))
    shuffled = [*odds]
    chance.shuffle(shuffled)
    for share in ("decisions", "pooled", "likeliest"):
        combiner = replace(Percentage(), share=share)
        with collect_notes():  # hits may abstain
            low, same, high = (
                _drive(combiner, answer, texts)[0]
                for texts, answer in map(_scored, (odds, shuffled, raised))
            )
        assert low == same
        if low and high:  # otherwise all abstain
            assert 0 <= float(low[:-1]) <= float(high[:-1]) + 2e-6 <= 100 + 2e-6


def test_the_target_of_each_read_is_the_percentage_of_the_example() -> None:
    example, hits = _example()
    combination: Any = Percentage().combine(example, hits)
    reads = next(combination)
    labelled = replace(example, references=("67%",))
    assert Percentage().supervise(labelled, reads) == ["67%"] * 3
    assert Percentage().supervise(example, reads) == [None] * 3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"negative": "Yes"}, "must differ"),
        ({"positive": ""}, "must differ"),
        ({"heading": "("}, "not a valid regular expression"),
    ],
)
def test_faulty_parameters_are_refused(parameters: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Percentage(**parameters)  # type: ignore[arg-type]  # texts
