"""Tests of the combiners for authors of paragraphs, and of the chunker `Parts`."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import one_example
import pytest
from retrieval import joined, reversed_parts

from leporello.api import UserError
from leporello.chunkers import Parts
from leporello.combiners import AssignAuthors, ClusterAuthors
from leporello.core.calls.contracts import StageError
from leporello.core.calls.stage_calls import divide
from leporello.core.records import Document, Example, Output, Read, Span

BOTH: list[Any] = [AssignAuthors, ClusterAuthors]


def example(authors: Sequence[int]) -> Example:
    paragraphs = [f"Paragraph {n}." for n in range(len(authors))]
    parts = tuple(chunk.span for chunk in joined(paragraphs, "\n"))
    document = Document("d", "\n".join(paragraphs), parts=parts)
    return Example("e", document, references=(json.dumps(list(authors)),))


def drive(combiner: Any, example: Example, probability: Any) -> tuple[Any, list[Read]]:
    answer = lambda read: Output("", score=probability(read))  # noqa: E731 -- short
    hits = reversed_parts(example)
    value, rounds = one_example.drive(combiner, answer, example.without_gold(), hits)
    assert len(rounds) <= 1
    return value, [read for reads in rounds for read in reads]


def oracle(example: Example, high: float = 0.9) -> Any:
    """Returns the probabilities of a classifier that compares the authors of the inner ends."""
    authors = json.loads(example.references[0])
    parts = example.document.parts
    starts = {part.start: author for part, author in zip(parts, authors, strict=True)}
    ends = {part.end: author for part, author in zip(parts, authors, strict=True)}

    def probability(read: Read) -> float:
        before, after = (passage.span for passage in read.passages if not isinstance(passage, str))
        return high if ends[before.end] == starts[after.start] else 1 - high

    return probability


def table(rows: Sequence[Sequence[float]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Returns a symmetric table; row i of its lower half has the similarities to 0 … i-1."""
    full = np.full((len(rows) + 1,) * 2, np.nan)
    for later, row in enumerate(rows, 1):
        full[later, :later] = full[:later, later] = row
    return full


def authors_of(answer: Any) -> list[int]:
    authors: list[int] = answer["paragraph-authors"]
    return authors


def test_authors_are_assigned_by_the_rule_of_the_paper() -> None:
    """A paragraph similar to the previous one has the author of the most similar paragraph."""
    rows = [
        [0.8],  # similar to the previous, which is the most similar one
        [0.9, 0.2],  # not similar to the previous: a new author despite the first
        [0.9, 0.1, 0.6],  # similar to the previous, and more to the first, over the threshold
        [0.2, 0.1, 0.1, 0.55],  # similar to the previous, but none is over the threshold
    ]
    answer: Any = AssignAuthors(threshold=0.7).decide(table(rows))
    assert (answer["multi-author"], answer["changes"]) == (1, [0, 1, 0, 0])
    assert authors_of(answer) == [1, 1, 2, 1, 3]
    rows[3][3] = 0.4  # a change; with `changed`, only paragraphs after a change are compared
    combiner = AssignAuthors(threshold=0.7, compare="changed")
    assert authors_of(combiner.decide(table(rows))) == [1, 1, 1, 1, 2]


def test_smoothing_corrects_a_single_wrong_pair() -> None:
    authors = [1, 1, 1, 2, 2, 2, 1, 1, 1]
    similarity = np.array([[0.8 if a == b else 0.2 for b in authors] for a in authors])
    similarity[6, 4] = similarity[4, 6] = 0.9  # a wrong pair
    assert authors_of(AssignAuthors(compare="changed").decide(similarity))[6] == 2
    smooth = AssignAuthors(compare="changed", smoothing=1)
    assert authors_of(smooth.decide(similarity)) == authors


def test_there_are_at_most_max_authors() -> None:
    """Instead of a further author, a paragraph has the author of the most similar one."""
    similarity = table([[0.1], [0.1, 0.2], [0.1, 0.3, 0.2]])
    assert authors_of(AssignAuthors(max_authors=2).decide(similarity)) == [1, 2, 2, 2]
    assert authors_of(AssignAuthors(max_authors=None).decide(similarity)) == [1, 2, 3, 4]
    blocks = example([n // 4 for n in range(24)])
    for cap, expected in ((3, 3), (None, 6)):
        answer, _ = drive(ClusterAuthors(max_authors=cap, smoothing=0), blocks, oracle(blocks))
        assert max(authors_of(answer)) == expected


@pytest.mark.parametrize("kind", BOTH)
def test_authors_are_numbered_by_first_appearance(kind: Any) -> None:
    four = example([7] * 6 + [2] * 6 + [7] * 6 + [5] * 6)
    expected = [1] * 6 + [2] * 6 + [1] * 6 + [3] * 6
    combiner = kind(compare="changed") if kind is AssignAuthors else kind(smoothing=0)
    answer, _ = drive(combiner, four, oracle(four))
    assert authors_of(answer) == expected
    changes = [int(a != b) for a, b in pairwise(expected)]
    assert (answer["changes"], answer["multi-author"]) == (changes, 1)


def test_clusters_correct_wrong_pairs() -> None:
    """A quarter of all outputs is wrong, so that assigning paragraphs one by one fails."""
    blocks = example([1] * 20 + [2] * 20 + [1] * 20)
    correct, chance = oracle(blocks, 0.8), np.random.default_rng(0)
    is_wrong = {
        read.pair: chance.random() < 0.25 for read in drive(ClusterAuthors(), blocks, correct)[1]
    }
    noisy = lambda read: 1 - correct(read) if is_wrong[read.pair] else correct(read)  # noqa: E731 -- untyped
    clustered, _ = drive(ClusterAuthors(), blocks, noisy)
    assert authors_of(clustered) == json.loads(blocks.references[0])
    assigned, _ = drive(AssignAuthors(context=3), blocks, noisy)
    assert authors_of(assigned) != authors_of(clustered)


def test_a_change_of_author_must_outweigh_its_penalty() -> None:
    """A single paragraph has another author only if its pairs have high probabilities."""
    odd = example([1] * 8 + [2] + [1] * 8)
    combiner = ClusterAuthors(smoothing=0, change_penalty=2.0)
    mild, clear = (drive(combiner, odd, oracle(odd, p))[0] for p in (0.7, 0.99))
    assert mild == {"multi-author": 0, "changes": [0] * 16, "paragraph-authors": [1] * 17}
    assert authors_of(clear) == json.loads(odd.references[0])


@pytest.mark.parametrize("kind", BOTH)
def test_the_texts_of_a_pair_do_not_overlap(kind: Any) -> None:
    single = example([1] * 7)
    _, reads = drive(kind(context=3), single, oracle(single))
    assert len(reads) == 21
    spans = [[p.span for p in read.passages if not isinstance(p, str)] for read in reads]
    assert all(before.end < after.start for before, after in spans)
    texts = {read.pair for read in reads}
    line = single.document.text.split("\n")
    assert ("\n".join(line[1:4]), "\n".join(line[4:7])) in texts
    assert (line[0], line[6]) in texts
    for read in reads:
        assert read.pair == tuple(p if isinstance(p, str) else p.text for p in read.passages)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("score", [None, -0.7, 1.5, float("nan")])
def test_a_reader_without_probabilities_is_refused(kind: Any, score: float | None) -> None:
    with pytest.raises(ValueError, match="use the reader PairClassifier"):
        drive(kind(), example([1, 2]), lambda _: score)


@pytest.mark.parametrize("kind", BOTH)
def test_training_pairs_are_balanced_between_the_labels(kind: Any) -> None:
    unbalanced = example([1] * 10 + [2] * 3)
    combiner = kind(training_pairs=12, context=2)
    _, reads = drive(combiner, unbalanced, oracle(unbalanced))
    targets = combiner.supervise(unbalanced, reads)
    assert (targets.count("same"), targets.count("different"), len(targets)) == (12, 12, 78)
    correct = oracle(unbalanced)
    for read, target in zip(reads, targets, strict=True):
        assert target in {None, "same" if correct(read) > 0.5 else "different"}
    assert combiner.supervise(unbalanced, reads) == targets


@pytest.mark.parametrize("kind", BOTH)
def test_invalid_training_examples_are_skipped_or_reported(kind: Any) -> None:
    single = example([1, 1, 1])
    _, reads = drive(kind(), single, oracle(single))
    assert kind().supervise(single, reads) == [None] * 3
    assert kind().supervise(example([1]), []) == []
    for reference in ("Paris", "[1, 2]"):
        with pytest.raises(UserError, match="not a list of the authors of its chunks"):
            kind().supervise(Example("e", single.document, references=(reference,)), reads)
    chunk = single.document.chunk(1, 4)
    shifted = [Read((chunk, chunk), pair=("", ""))]
    with pytest.raises(UserError, match="the chunker Parts and the retriever All"):
        kind().supervise(example([1, 1, 2]), shifted)


def test_the_chunker_parts_returns_the_parts_of_a_document() -> None:
    parts = (Span(4, 7), Span(0, 3))
    chunks = divide(Parts(), Document("d", "one two three", parts=parts))
    assert [chunk.text for chunk in chunks] == ["one", "two"]
    assert divide(Parts(), Document("d", " \n")) == ()
    with pytest.raises(ValueError, match="use Paragraphs"):
        divide(Parts(), Document("d", "one two"))
    with pytest.raises(StageError, match="outside document"):
        divide(Parts(), Document("d", "one", parts=(Span(0, 9),)))
