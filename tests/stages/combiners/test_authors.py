"""Authors of paragraphs: the combiners driven by hand, what they teach, and the chunker `Parts`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import one_example
import pytest

from leporello.api import UserError
from leporello.chunkers import Parts
from leporello.combiners import AssignAuthors, ClusterAuthors
from leporello.core.calls.contracts import StageError
from leporello.core.calls.stage_calls import divide
from leporello.core.records import Document, Example, Hit, Output, Read, Span

BOTH: list[Any] = [AssignAuthors, ClusterAuthors]


def document(count: int) -> Document:
    """Returns a document of so many paragraphs, which are its parts."""
    text = "\n".join(f"Paragraph {n}." for n in range(count))
    starts = [0, *(place + 1 for place, mark in enumerate(text) if mark == "\n")]
    ends = [start - 1 for start in starts[1:]] + [len(text)]
    spans = tuple(Span(*pair) for pair in zip(starts, ends, strict=True))
    return Document("d", text, parts=spans if count else ())


def example(authors: Sequence[int]) -> Example:
    """Returns an example whose paragraphs are by these authors."""
    return Example("e", document(len(authors)), references=(json.dumps(list(authors)),))


def hits(of: Example) -> list[Hit]:
    """Returns its paragraphs, the last one first: order is no rank here."""
    return [Hit(chunk, 0.0) for chunk in reversed(divide(Parts(), of.document))]


def drive(combiner: Any, of: Example, likely: Any) -> tuple[Any, list[Read]]:
    """Runs a combiner to its end; `likely` gives the probability of each read's pair."""
    answer = lambda read: Output("", score=likely(read))  # noqa: E731 -- as short as it is
    value, rounds = one_example.drive(combiner, of.without_gold(), hits(of), answer)
    assert len(rounds) <= 1
    return value, [read for reads in rounds for read in reads]


def oracle(of: Example, sure: float = 0.9) -> Any:
    """Returns what a classifier says that knows the authors: whose are the two inner ends."""
    authors = json.loads(of.references[0])
    starts = {part.start: a for part, a in zip(of.document.parts, authors, strict=True)}
    ends = {part.end: a for part, a in zip(of.document.parts, authors, strict=True)}

    def likely(read: Read) -> float:
        one, other = (passage.span for passage in read.passages if not isinstance(passage, str))
        return sure if ends[one.end] == starts[other.start] else 1 - sure

    return likely


def table(rows: Sequence[Sequence[float]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Returns a symmetric table from its lower half: row i has the likeness to 0 … i-1."""
    found = np.full((len(rows) + 1,) * 2, np.nan)
    for later, row in enumerate(rows, 1):
        found[later, :later] = found[:later, later] = row
    return found


def authors_of(answer: Any) -> list[int]:
    """Returns the third task's answer."""
    listed: list[int] = answer["paragraph-authors"]
    return listed


def test_the_papers_rule_word_by_word() -> None:
    """Similar to the previous: the most similar one's author, if over the threshold; else new."""
    likeness = table(
        [
            [0.8],  # similar to the previous, which is the most similar one
            [0.9, 0.2],  # not similar to the previous: a new author, whatever the first says
            [0.9, 0.1, 0.6],  # similar to the previous, more so to the first, and over
            [0.2, 0.1, 0.1, 0.55],  # similar to the previous, but nobody is over the threshold
        ]
    )
    combiner = AssignAuthors(threshold=0.7)
    assert combiner.decide(likeness) == {
        "multi-author": 1,
        "changes": [0, 1, 0, 0],
        "paragraph-authors": [1, 1, 2, 1, 3],
    }


def test_what_changed_can_be_compared_instead() -> None:
    """Similar to the previous: its author; else the most similar one's, if over, or a new one."""
    likeness = table([[0.8], [0.9, 0.2], [0.9, 0.1, 0.6], [0.2, 0.1, 0.1, 0.4]])
    combiner = AssignAuthors(threshold=0.7, compare="changed")
    assert authors_of(combiner.decide(likeness)) == [1, 1, 1, 1, 2]


def test_smoothing_finds_the_author_whom_the_single_pair_hides() -> None:
    """The most similar paragraph is that whose neighbours are similar too."""
    authors = [1, 1, 1, 2, 2, 2, 1, 1, 1]
    likeness = np.array([[0.8 if a == b else 0.2 for b in authors] for a in authors])
    likeness[6, 4] = likeness[4, 6] = 0.9  # one pair misleads
    assert authors_of(AssignAuthors(compare="changed").decide(likeness))[6] == 2
    smooth = AssignAuthors(compare="changed", smoothing=1)
    assert authors_of(smooth.decide(likeness)) == authors


def test_no_more_authors_than_allowed() -> None:
    """Who would be one more is the most similar paragraph's author."""
    likeness = table([[0.1], [0.1, 0.2], [0.1, 0.3, 0.2]])
    assert authors_of(AssignAuthors(max_authors=2).decide(likeness)) == [1, 2, 2, 2]
    assert authors_of(AssignAuthors(max_authors=None).decide(likeness)) == [1, 2, 3, 4]
    blocks = example([n // 4 for n in range(24)])
    for cap, wanted in ((3, 3), (None, 6)):
        answer, _ = drive(ClusterAuthors(max_authors=cap, smoothing=0), blocks, oracle(blocks))
        assert max(authors_of(answer)) == wanted


@pytest.mark.parametrize("kind", BOTH)
def test_authors_are_numbered_as_they_appear(kind: Any) -> None:
    """Whatever the gold calls them; they come back under their number."""
    of = example([7] * 6 + [2] * 6 + [7] * 6 + [5] * 6)
    wanted = [1] * 6 + [2] * 6 + [1] * 6 + [3] * 6
    combiner = kind(compare="changed") if kind is AssignAuthors else kind(smoothing=0)
    answer, _ = drive(combiner, of, oracle(of))
    assert authors_of(answer) == wanted
    changes = [int(a != b) for a, b in pairwise(wanted)]
    assert (answer["changes"], answer["multi-author"]) == (changes, 1)


def test_clusters_outweigh_pairs_that_err() -> None:
    """A quarter of all answers are wrong, so that going one by one is lost."""
    of = example([1] * 20 + [2] * 20 + [1] * 20)
    knows, chance = oracle(of, 0.8), np.random.default_rng(0)
    errs = {read.pair: chance.random() < 0.25 for read in drive(ClusterAuthors(), of, knows)[1]}
    said = lambda read: 1 - knows(read) if errs[read.pair] else knows(read)  # noqa: E731 -- typed by its use
    clustered, _ = drive(ClusterAuthors(), of, said)
    assert authors_of(clustered) == json.loads(of.references[0])
    assigned, _ = drive(AssignAuthors(context=3), of, said)
    assert authors_of(assigned) != authors_of(clustered)


def test_a_change_must_be_worth_its_penalty() -> None:
    """One paragraph that is somewhat unlike its neighbours is none; a sure one is."""
    of = example([1] * 8 + [2] + [1] * 8)
    mild, sure = (
        drive(ClusterAuthors(smoothing=0, change_penalty=2.0), of, oracle(of, p))[0]
        for p in (0.7, 0.99)
    )
    assert mild == {"multi-author": 0, "changes": [0] * 16, "paragraph-authors": [1] * 17}
    assert authors_of(sure) == json.loads(of.references[0])


@pytest.mark.parametrize("kind", BOTH)
def test_pairs_never_overlap_and_meet_between_neighbours(kind: Any) -> None:
    """The earlier paragraph is read with those before it, the later one with those behind it."""
    of = example([1] * 7)
    _, reads = drive(kind(context=3), of, oracle(of))
    assert len(reads) == 21
    spans = [[p.span for p in read.passages if not isinstance(p, str)] for read in reads]
    assert all(one.end < other.start for one, other in spans)
    texts = {read.pair for read in reads}
    line = of.document.text.split("\n")
    assert ("\n".join(line[1:4]), "\n".join(line[4:7])) in texts
    assert (line[0], line[6]) in texts
    for read in reads:
        assert read.pair == tuple(p if isinstance(p, str) else p.text for p in read.passages)


@pytest.mark.integration
@pytest.mark.parametrize("kind", BOTH)
def test_hundreds_of_paragraphs_can_be_compared_in_part(kind: Any) -> None:
    """All neighbours and so many drawn ones each: the same ones every time, by the seed."""
    of = example([1] * 150 + [2] * 150)
    combiner = kind(neighbours=10, samples=5, context=1)
    answer, reads = drive(combiner, of, oracle(of))
    assert len(reads) == sum(min(10, n) + min(5, max(0, n - 10)) for n in range(300))
    assert drive(combiner, of, oracle(of))[1] == reads
    assert drive(kind(neighbours=10, samples=5, context=1, seed=1), of, oracle(of))[1] != reads
    assert authors_of(answer) == json.loads(of.references[0])


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("score", [None, -0.7, 1.5, float("nan")])
def test_a_reader_without_probabilities_is_refused(kind: Any, score: float | None) -> None:
    """With the reader to use."""
    with pytest.raises(ValueError, match="use the reader PairClassifier"):
        drive(kind(), example([1, 2]), lambda _: score)


@pytest.mark.parametrize("kind", BOTH)
def test_as_many_pairs_of_either_kind_teach(kind: Any) -> None:
    """What is drawn is right, and is the same again; the rest is left out."""
    of = example([1] * 10 + [2] * 3)
    combiner = kind(training_pairs=12, context=2)
    _, reads = drive(combiner, of, oracle(of))
    wanted = combiner.supervise(of, reads)
    assert (wanted.count("same"), wanted.count("different"), len(wanted)) == (12, 12, 78)
    knows = oracle(of)
    for read, said in zip(reads, wanted, strict=True):
        assert said in {None, "same" if knows(read) > 0.5 else "different"}
    assert combiner.supervise(of, reads) == wanted
    assert kind(training_pairs=12, context=2, seed=1).supervise(of, reads) != wanted


@pytest.mark.parametrize("kind", BOTH)
def test_what_cannot_teach_is_left_out_or_told(kind: Any) -> None:
    """One author alone; gold that is none; chunks that are not the paragraphs."""
    single = example([1, 1, 1])
    _, reads = drive(kind(), single, oracle(single))
    assert kind().supervise(single, reads) == [None] * 3
    assert kind().supervise(example([1]), []) == []
    other = Example("e", single.document, references=("Paris",))
    with pytest.raises(UserError, match="the reference 'Paris'"):
        kind().supervise(other, reads)
    fewer = Example("e", single.document, references=("[1, 2]",))
    with pytest.raises(UserError, match="2 authors of paragraphs and its document 3 parts"):
        kind().supervise(fewer, reads)
    chunk = single.document.chunk(1, 4)
    shifted = [Read((chunk, chunk), pair=("", ""))]
    with pytest.raises(UserError, match="use the chunker Parts"):
        kind().supervise(example([1, 1, 2]), shifted)


def test_parts_are_a_documents_own() -> None:
    """In document order and exactly as the data has them; without any there is an error."""
    parts = (Span(4, 7), Span(0, 3))
    chunks = divide(Parts(), Document("d", "one two three", parts=parts))
    assert [chunk.text for chunk in chunks] == ["one", "two"]
    assert divide(Parts(), Document("d", " \n")) == ()
    with pytest.raises(ValueError, match="use Paragraphs"):
        divide(Parts(), Document("d", "one two"))
    with pytest.raises(StageError, match="outside document"):
        divide(Parts(), Document("d", "one", parts=(Span(0, 9),)))
