"""The share of hits of which something is so: what is asked, counted, left out and written."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_example import drive, texts_of

from leporello.combiners import Percentage
from leporello.config.metrics import metrics_of
from leporello.core.errors import ReadError
from leporello.core.notes import collect_notes
from leporello.core.records import Document, Example, Hit, Output, Read

PARTS = ("Review 1:\nlovely", "Review 2:\ndull", "Review 3:\nlovely too")
ODDS = st.floats(-20, 20)


def _example(parts: Sequence[str] = PARTS) -> tuple[Example, list[Hit]]:
    document = Document("d", "\n".join(parts), title="Films")
    example = Example("e", document, question="Is it good?", instruction="Count.")
    starts = [sum(len(part) + 1 for part in parts[:place]) for place in range(len(parts))]
    hits = [
        Hit(document.chunk(start, start + len(part)), 0.0)
        for start, part in zip(starts, parts, strict=True)
    ]
    return example, hits


def _drive(
    combiner: Percentage, answer: Callable[[Read], Output], parts: Sequence[str] = PARTS
) -> tuple[Any, list[Read]]:
    """Runs a combiner to its end; returns its value and all reads."""
    value, rounds = drive(combiner, *_example(parts), answer)
    return value, [read for reads in rounds for read in reads]


def _text(read: Read) -> str:
    [text] = texts_of(read)
    return text


def _judge(read: Read) -> Output:
    """Scores `yes` at 0.8 for what is lovely, 0.4 for the rest."""
    likely = 0.8 if "lovely" in _text(read) else 0.4
    return Output("", scores=(math.log(likely), math.log(1 - likely)))


def _scored(odds: Sequence[float]) -> tuple[list[str], Callable[[Read], Output]]:
    """Returns texts, and a reader that has these log odds for them."""
    texts = [f"hit {place}" for place in range(len(odds))]
    known = dict(zip(texts, odds, strict=True))

    def answer(read: Read) -> Output:
        value = known[_text(read)]
        sure = max(value, 0.0) + math.log1p(math.exp(-abs(value)))
        return Output("", scores=(value - sure, -sure))

    return texts, answer


def test_each_hit_is_asked_the_same_on_its_own() -> None:
    """The task's instruction, which is about all of them, is not read; no hits, no reads."""
    value, reads = _drive(Percentage(), _judge)
    assert value == "67%"
    assert [_text(read) for read in reads] == [*PARTS]
    asked = {(r.question, r.instruction, r.choices, r.title) for r in reads}
    assert asked == {("Is it good?", "", ("yes", "no"), "Films")}
    _, reads = _drive(Percentage(question="Lovely?"), _judge)
    assert reads[0].question == "Lovely?"
    assert _drive(Percentage(neutral_texts=3), _judge, []) == (None, [])


@pytest.mark.parametrize(
    ("combiner", "wanted"),
    [
        (Percentage(), "67%"),
        (Percentage(digits=1), "66.7%"),
        (Percentage(positive="no", negative="yes"), "67%"),
        (Percentage(share="probabilities", digits=2), "66.67%"),
        (Percentage(share="pooled", digits=2), "68.76%"),
        (Percentage(share="likeliest"), "100%"),
    ],
)
def test_the_answer_is_a_percentage_as_the_metric_reads_it(
    combiner: Percentage, wanted: str
) -> None:
    """Digits and a `%` directly behind them, of decisions, of probabilities or of log odds."""
    value, _ = _drive(combiner, _judge)
    metric: Any = metrics_of(["exponential_similarity"])["exponential_similarity"]
    assert value == wanted
    assert metric.parses(value, _example()[0])


def test_a_reader_that_only_writes_decides() -> None:
    """Case and stops do not matter; what names no choice, or both, abstains."""
    said = {PARTS[0]: "Yes.", PARTS[1]: "no", PARTS[2]: "I cannot tell"}
    with collect_notes() as notes:
        value, _ = _drive(Percentage(), lambda read: Output(said[_text(read)]))
    assert value == "50%"
    assert notes == ["some hits abstained: the percentage is of the other hits"]
    with pytest.raises(ValueError, match="use share: decisions"):
        _drive(Percentage(share="pooled"), lambda _: Output("yes"))
    with pytest.raises(ValueError, match="neutral_texts calibrate by scores"):
        _drive(Percentage(neutral_texts=2), lambda _: Output("yes"))


def test_hits_without_an_opinion_are_left_out_and_told() -> None:
    """`neither` where it fits best; both choices as likely; if all abstain, no answer."""
    scores = {PARTS[0]: (-1.0, -3.0, -2.0), PARTS[1]: (-2.0, -3.0, -1.0)}
    with collect_notes() as notes:
        value, reads = _drive(
            Percentage(neither="mixed"),
            lambda read: Output("", scores=scores.get(_text(read), (-1.0, -1.0, -2.0))),
        )
    assert reads[0].choices == ("yes", "no", "mixed")
    assert value == "100%"
    assert len(notes) == 1
    with collect_notes() as notes:
        value, _ = _drive(Percentage(), lambda _: Output("", scores=(-1.0, -1.0)))
    assert (value, notes) == (None, ["all hits abstained: there is no percentage"])
    in_doubt, _ = _drive(
        Percentage(share="probabilities"), lambda _: Output("", scores=(-1.0, -1.0))
    )
    assert in_doubt == "50%"


def test_a_read_that_fails_abstains() -> None:
    """The other hits are counted; if all fail, the example does."""

    def failing(read: Read) -> Output:
        if "dull" in _text(read):
            raise ReadError("too dull")
        return _judge(read)

    with collect_notes() as notes:
        value, reads = _drive(Percentage(), failing)
    assert (value, len(reads), len(notes)) == ("100%", 3, 1)
    with pytest.raises(ReadError, match="too dull"):
        _drive(Percentage(), failing, ["dull", "very dull"])
    with pytest.raises(ReadError):
        _drive(Percentage(), failing, ["dull"])


def test_neutral_texts_tell_where_the_reader_stands() -> None:
    """They are made of the hits' words; a reader that is fond of one choice is set right."""

    def fond(read: Read) -> Output:
        odds = 2.0 + ("lovely" in _text(read)) - ("dull" in _text(read))
        return Output("", scores=(-1.0, -1.0 - odds))

    parts = ["lovely film here", "dull film here", "dull film again", "dull film indeed"]
    assert _drive(Percentage(), fond, parts)[0] == "100%"
    value, reads = _drive(Percentage(neutral_texts=30), fond, parts)
    drawn = [_text(read) for read in reads[4:]]
    assert value == "25%"
    assert len(drawn) == 30
    assert {word for text in drawn for word in text.split()} <= set(" ".join(parts).split())
    assert {len(text.split()) for text in drawn} == {3}
    turned = _drive(Percentage(neutral_texts=30), fond, parts[::-1])[1][4:]
    assert [_text(read) for read in turned] == drawn
    other = _drive(Percentage(neutral_texts=30, seed=1), fond, parts)[1][4:]
    assert [_text(read) for read in other] != drawn


@given(st.lists(ODDS, min_size=1, max_size=20), st.randoms(), st.data())
def test_the_share_is_one_and_rises_with_what_is_said(
    odds: list[float], chance: Any, data: st.DataObject
) -> None:
    """Between 0 and 100, the same in any order of the hits, never lower where a hit says more."""
    place = data.draw(st.integers(0, len(odds) - 1))
    raised = [*odds]
    raised[place] += data.draw(st.floats(0, 20))
    turned = [*odds]
    chance.shuffle(turned)
    for share in ("decisions", "probabilities", "pooled"):
        combiner = replace(Percentage(digits=6), share=share)
        with collect_notes():  # that hits abstain
            low, same, high = (
                _drive(combiner, answer, texts)[0]
                for texts, answer in map(_scored, (odds, turned, raised))
            )
        assert low == same
        if low and high:  # else all abstain
            assert 0 <= float(low[:-1]) <= float(high[:-1]) + 2e-6 <= 100 + 2e-6


def test_supervision_is_the_percentage_of_the_whole() -> None:
    """For each hit; without references there is none."""
    example, hits = _example()
    combination: Any = Percentage().combine(example, hits)
    reads = next(combination)
    known = replace(example, references=("67%",))
    assert Percentage().supervise(known, reads) == ["67%"] * 3
    assert Percentage().supervise(example, reads) == [None] * 3


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"negative": "Yes"}, "must differ"),
        ({"neither": "no"}, "must differ"),
        ({"positive": ""}, "must differ"),
        ({"heading": "("}, "not a valid regular expression"),
    ],
)
def test_faulty_parameters_are_refused(parameters: dict[str, str], told: str) -> None:
    """Before anything is read."""
    with pytest.raises(ValueError, match=told):
        Percentage(**parameters)  # type: ignore[arg-type]  # texts
