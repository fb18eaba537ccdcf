"""Tests of several hops: their queries, hits and coverage."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from one_example import run_example, texts_of

from leporello.chunkers import Paragraphs
from leporello.combiners import MultiHop, Stuff
from leporello.combiners.multi_hop import missing_terms, names, nearest_sentences
from leporello.config import Pipeline
from leporello.core.records import Combination, Document, Example, Hit, Output, Read, Search
from leporello.engine.active_example import ActiveExample
from leporello.engine.shard_rows import rows_of
from leporello.retrievers import BM25

TEXT = """\
Scarlett was played on the screen by Vivien Leigh, an actress from Darjeeling.

Vivien Leigh had one famous spouse, whose name was Laurence Olivier.

Laurence Olivier was born in Dorking, a town in Surrey.

A spouse of a farmer sells eggs on the market.

An actress of the town sold tickets on the market.

The screen of the cinema was torn in the storm."""
DOCUMENT = Document("d", TEXT)
QUESTION = "Who is the spouse of the actress that played Scarlett on the screen?"
EXAMPLE = Example("e", DOCUMENT, question=QUESTION)


@dataclass(frozen=True)
class Copy:
    """Reader that copies the passages, or returns a text."""

    text: str = ""

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        return [Output(self.text or " | ".join(texts_of(read))) for read in inputs]

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


@dataclass(frozen=True)
class FirstWords:
    """Combiner that answers with the first words of the hits, without a read."""

    def combine(self, example: Example, hits: Sequence[Hit]) -> str:
        return _first_words(hits)


def _first_words(hits: Sequence[Hit]) -> str:
    return " ".join(hit.chunk.text.split()[0] for hit in hits)


def _finished(
    combiner: Any, k: int = 2, output: str = ""
) -> tuple[ActiveExample, list[list[Read]]]:
    return run_example(Pipeline(Paragraphs(), BM25(k=k), Copy(output), combiner), EXAMPLE)


def _starts(active: ActiveExample) -> list[str]:
    return [" ".join(hit.chunk.text.split()[:2]) for hit in active.hits]


def test_the_next_query_contains_missing_words_and_new_names() -> None:
    passage = "Scarlett was played by Vivien Leigh in 1939. She won; then she left. Then all left."
    terms = missing_terms("the spouse of the one that played Scarlett", passage)
    assert terms == "the spouse of the one that"
    assert names(passage, "Who played Scarlett?") == "Vivien Leigh 1939"
    assert names("郝思嘉由费雯·丽饰演", "谁") == ""


def test_a_second_hop_finds_a_passage_about_a_name_in_the_first() -> None:
    single, _ = _finished(MultiHop(Stuff(), hops=1))
    double, [[read]] = _finished(MultiHop(Stuff(), hops=2, beam=1, new=1))
    assert _starts(single) == ["Scarlett was", "An actress"]
    assert _starts(double) == ["Scarlett was", "An actress", "Vivien Leigh"]
    assert [text.split()[0] for text in texts_of(read)] == ["Scarlett", "Vivien", "An"]
    assert read.question == QUESTION


def test_the_first_hits_of_all_hops_are_read_before_the_second_ones() -> None:
    """A short input window therefore cuts the worst hits of each hop."""
    active, _ = _finished(MultiHop(FirstWords(), beam=1, new=2), k=2)
    first, second = active.hits[:2], active.hits[2:]
    assert second
    ordered = [first[0], second[0], first[1], *second[1:]]
    assert active.value == _first_words(ordered)


def test_hits_of_later_hops_are_in_the_prediction_and_the_coverage() -> None:
    stages = Pipeline(Paragraphs(), BM25(k=2), Copy(), MultiHop(Stuff(), beam=1, new=1))
    [row] = rows_of(None, [EXAMPLE], stages)
    prediction = row["prediction"]
    starts = [TEXT.index(name) for name in ("Scarlett was", "An actress", "Vivien Leigh had")]
    assert [start for start, _, _ in prediction["hits"]] == starts
    coverage = prediction["coverage"]
    characters = sum(end - start for start, end, _ in prediction["hits"])
    assert coverage["selected"] == coverage["read"] == characters
    assert coverage["cut"] == 0


@dataclass(frozen=True)
class TwoSearches:
    """Combiner that searches twice, and returns the starts of the hits."""

    question: str
    new: int | None

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        once = yield [Search(self.question, self.new)]
        again = yield [Search(self.question, self.new)]
        return json.dumps([[hit.chunk.start for hit in hits] for hits in (*once, *again)])


def test_a_search_for_new_hits_returns_no_hit_twice() -> None:
    repeated, _ = _finished(TwoSearches("market", None), k=3)
    fresh, _ = _finished(TwoSearches("market", 1), k=3)
    once, again = json.loads(str(repeated.value))
    assert once == again
    first, second = json.loads(str(fresh.value))
    assert len(first) == 1
    assert first != second
    assert len({hit.chunk.span for hit in fresh.hits}) == len(fresh.hits)


def test_the_sentences_nearest_to_the_question_are_returned() -> None:
    text = "Rome is old. Oslo is cold. Nobody counts. Oslo has a harbour."
    assert nearest_sentences(text, "Oslo harbour", 2) == "Oslo is cold. Oslo has a harbour."
    assert nearest_sentences(text, "Oslo harbour", 0) == text
