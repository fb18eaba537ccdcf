"""Tests of lengths, spread and format discrepancy."""

from collections.abc import Iterable, Iterator
from statistics import mean, pstdev
from typing import Any

import pytest

from leporello import Document, Example
from leporello.analysis.datasets import (
    FormatDiscrepancy,
    analyze_examples,
    analyze_predictions,
    distribution,
)


def example(text: str, *references: str, id_: str = "x", question: str = "") -> Example:
    return Example(id_, Document(id_, text), references=references, question=question)


def test_numbers_are_summarised() -> None:
    summary = distribution([float(n) for n in range(100, -1, -1)])
    assert summary is not None
    assert (summary.count, summary.mean, summary.largest) == (101, 50, 100)
    assert (summary.low, summary.median, summary.high) == (5, 50, 95)
    assert distribution([]) is None


def test_lengths_are_words_between_blanks() -> None:
    """Inputs count document and question together; outputs count each reference."""
    document = Document("d", "one two-three  four\n")
    examples = [
        Example("a", document, question="what is it?", references=("a b c", "d")),
        Example("b", document, question="why?"),
        Example("c", Document("e", ""), fault="cannot be read", references=("x y z",)),
    ]
    analysis = analyze_examples(iter(examples))
    assert (analysis.examples, analysis.documents, analysis.faulty) == (3, 2, 1)
    assert analysis.inputs is not None
    assert analysis.outputs is not None
    assert (analysis.inputs.mean, analysis.inputs.largest) == (5, 6)
    assert (analysis.outputs.count, analysis.outputs.mean) == (2, 2)


def test_spread_is_the_deviation_of_first_occurrences() -> None:
    """It uses distinct bigrams, in words and as a share, and ignores case and punctuation."""
    text = "The cat sat. A dog ran; the cat sat, and a bird flew off"
    analysis = analyze_examples([example(text, "the cat SAT; a bird, the cat! No such thing")])
    places = [0, 1, 2, 10]  # the cat, cat sat, sat a, a bird
    assert analysis.spread.words is not None
    assert analysis.spread.shares is not None
    assert analysis.spread.words.mean == pytest.approx(pstdev(places))
    assert analysis.spread.shares.mean == pytest.approx(pstdev(places) / 14)
    assert (analysis.spread.pairs, analysis.spread.unmeasured) == (1, 0)


def test_a_text_outside_the_document_has_no_spread() -> None:
    analysis = analyze_examples(
        [example("a b c", "a b", "yes", "", "a b x b c"), example("", "a b c")]
    )
    assert (analysis.spread.pairs, analysis.spread.unmeasured) == (5, 4)
    assert analysis.spread.words is not None
    assert analysis.spread.words.mean == 0.5


@pytest.mark.integration
def test_data_are_streamed() -> None:
    alive: list[Any] = []

    def examples() -> Iterator[Example]:
        for n in range(50):
            yield example("word " * 1000, "word word", id_=str(n))

    class Watching:
        def __init__(self, source: Iterable[Example]) -> None:
            self.source = source

        def __iter__(self) -> Iterator[Example]:
            import gc

            for number, streamed in enumerate(self.source):
                yield streamed
                del streamed
                if number % 10 == 9:
                    alive.append(sum(isinstance(o, Document) for o in gc.get_objects()))

    analyze_examples(Watching(examples()))
    assert max(alive) - min(alive) <= 2


def discrepancy(*pairs: tuple[str | None, str]) -> FormatDiscrepancy:
    """Returns the discrepancy of pairs (prediction, reference); None is a failure."""
    examples = [
        Example(str(n), Document("d", ""), references=(gold,)) for n, (_, gold) in enumerate(pairs)
    ]
    answers = zip(examples, (text for text, _ in pairs), strict=True)
    return analyze_predictions("mine", "rows", answers)


def test_predictions_are_compared_in_length() -> None:
    """It has the shares outside the 5 % and 95 % quantiles of the references, and failures."""
    pairs = [("a b", "a b c")] * 10 + [("a b c", "a b c"), ("", "a b c d"), (None, "a b")]
    result = discrepancy(*pairs)
    assert result.predictions is not None
    assert result.references is not None
    assert (result.predictions.count, result.references.count) == (12, 12)
    assert (result.empty, result.missing) == (1, 1)
    assert result.shorter == pytest.approx(11 / 12)
    assert result.longer == 0
    assert result.predictions.mean == pytest.approx(mean([2] * 10 + [3, 0]))
