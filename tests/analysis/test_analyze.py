"""Lengths, spread and format discrepancy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import mean, pstdev
from typing import Any

import pytest

from leporello import Document, Example
from leporello.analysis.datasets.distributions import distribution
from leporello.analysis.datasets.statistics import (
    FormatDiscrepancy,
    analyze_examples,
    analyze_predictions,
)
from leporello.config.metrics import metrics_of


def example(text: str, *references: str, id_: str = "x", question: str = "") -> Example:
    """Returns an example on a document of its own."""
    return Example(id_, Document(id_, text), references=references, question=question)


# -- distributions -----------------------------------------------------------------------------


def test_numbers_are_summed_up() -> None:
    """Mean, median, extremes, and the twentieth on either side."""
    found = distribution([float(n) for n in range(100, -1, -1)])
    assert found is not None
    assert (found.count, found.mean, found.smallest, found.largest) == (101, 50, 0, 100)
    assert (found.low, found.median, found.high) == (5, 50, 95)
    assert found.histogram.edges[:3] == (0, 10, 20)
    assert found.histogram.counts == (10,) * 10 + (1,)
    assert distribution([]) is None


# -- a task ------------------------------------------------------------------------------------


def test_lengths_are_words_between_blanks() -> None:
    """Of document and question together, and of each reference."""
    one = Document("d", "one two-three  four\n")
    examples = [
        Example("a", one, question="what is it?", references=("a b c", "d")),
        Example("b", one, question="why?"),
        Example("c", Document("e", ""), fault="cannot be read", references=("x y z",)),
    ]
    found = analyze_examples(iter(examples))
    assert (found.examples, found.documents, found.faulty) == (3, 2, 1)
    assert found.inputs is not None
    assert found.outputs is not None
    assert (found.inputs.smallest, found.inputs.largest) == (4, 6)
    assert (found.outputs.count, found.outputs.mean) == (2, 2)


def test_spread_is_the_deviation_of_first_occurrences() -> None:
    """Of distinct bigrams, in words and as a share; case and punctuation do not count."""
    text = "The cat sat. A dog ran; the cat sat, and a bird flew off"
    found = analyze_examples([example(text, "the cat SAT; a bird, the cat! No such thing")])
    places = [0, 1, 2, 10]  # the cat, cat sat, sat a, a bird
    assert found.spread.words is not None
    assert found.spread.shares is not None
    assert found.spread.words.mean == pytest.approx(pstdev(places))
    assert found.spread.shares.mean == pytest.approx(pstdev(places) / 14)
    assert (found.spread.pairs, found.spread.unmeasured) == (1, 0)


def test_what_is_not_in_the_document_has_no_spread() -> None:
    """Fewer than two bigrams found make no distance; such pairs are counted."""
    found = analyze_examples(
        [example("a b c", "a b", "yes", "", "a b x b c"), example("", "a b c")]
    )
    assert (found.spread.pairs, found.spread.unmeasured) == (5, 4)
    assert found.spread.words is not None
    assert found.spread.words.mean == 0.5


@pytest.mark.integration
def test_data_are_streamed() -> None:
    """A document can go as soon as the next one is there."""
    alive: list[Any] = []

    def examples() -> Iterator[Example]:
        for n in range(50):
            yield example("word " * 1000, "word word", id_=str(n))

    class Watching:
        def __init__(self, source: Iterable[Example]) -> None:
            self.source = source

        def __iter__(self) -> Iterator[Example]:
            import gc

            for number, one in enumerate(self.source):
                yield one
                del one
                if number % 10 == 9:
                    alive.append(sum(isinstance(o, Document) for o in gc.get_objects()))

    analyze_examples(Watching(examples()))
    assert max(alive) - min(alive) <= 2


# -- predictions -------------------------------------------------------------------------------


def discrepancy(
    metric: str, *given: tuple[str | None, str], choices: tuple[str, ...] = ()
) -> FormatDiscrepancy:
    """Returns what is found of (prediction, reference); None is a failure."""
    examples = [
        Example(str(n), Document("d", ""), references=(gold,) if gold else (), choices=choices)
        for n, (_, gold) in enumerate(given)
    ]
    answers = zip(examples, (text for text, _ in given), strict=True)
    return analyze_predictions(answers, metrics_of([metric]))


def test_predictions_are_compared_in_length() -> None:
    """Shares outside all but a twentieth of the references on either side; failures are told."""
    pairs = [("a b", "a b c")] * 10 + [("a b c", "a b c"), ("", "a b c d"), (None, "a b")]
    found = discrepancy("f1", *pairs)
    assert found.predictions is not None
    assert found.references is not None
    assert (found.predictions.count, found.references.count) == (12, 12)
    assert (found.empty, found.missing) == (1, 1)
    assert found.shorter == pytest.approx(11 / 12)
    assert found.longer == 0
    assert found.unparsed == {}
    assert found.predictions.mean == pytest.approx(mean([2] * 10 + [3, 0]))


@pytest.mark.parametrize(
    ("metric", "pairs", "choices", "share"),
    [
        ("option_letter", [("A", "A"), ("none of them", "B"), ("b", "B"), (None, "B")], (), 2 / 3),
        ("exponential_similarity", [("60", "60%"), ("60%", "60%")], (), 0.5),
        ("concordance_index", [("2, 1", "1, 2"), ("1, 2, 3", "1, 2")], (), 0.5),
        ("f1_macro", [("Hero", "Hero"), ("hero", "Hero")], ("Hero",), 0.5),
        ("pan21", [("[1, 2]", "[1, 1]"), ("[1]", "[1, 1]"), ("?", "[1]"), ("1", "[1]")], (), 0.5),
        ("exponential_similarity", [("5%", "no percentage"), ("?", "6%")], (), 0.5),
        ("concordance_index", [("1, 2", "no order"), ("?", "1, 2")], (), 1),
    ],
)
def test_answers_that_a_metric_cannot_read_are_counted(
    metric: str, pairs: list[tuple[str | None, str]], choices: tuple[str, ...], share: float
) -> None:
    """As shares of the predictions that there are; what gold forbids to judge is left out."""
    assert discrepancy(metric, *pairs, choices=choices).unparsed == {metric: pytest.approx(share)}
