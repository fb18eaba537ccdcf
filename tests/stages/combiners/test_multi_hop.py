"""Several hops: what is searched next, what is found, and what the ledger says of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from one_example import run_example

from leporello.combiners import MultiHop, Stuff
from leporello.combiners.multi_hop import missing_terms, names, nearest_sentences
from leporello.config import Pipeline
from leporello.core.records import (
    Chunk,
    Combination,
    Document,
    Example,
    Hit,
    Output,
    Read,
    Search,
    Span,
)
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
class Blocks:
    """What blank lines part."""

    def chunk(self, document: Document) -> Iterator[Span]:
        for found in re.finditer(r"\S(?:.|\n(?!\n))*", document.text):
            yield Span(*found.span())


@dataclass(frozen=True)
class Copy:
    """Reads what it gets; the instruction `fail` cannot be read."""

    said: str = ""

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        if any(one.instruction == "fail" for one in inputs):
            raise RuntimeError("cannot read this")
        return [Output(self.said or " | ".join(map(_text, one.passages))) for one in inputs]

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


@dataclass(frozen=True)
class Given:
    """Answers at once with what it was given."""

    def combine(self, example: Example, hits: Sequence[Hit]) -> str:
        return _given(hits)


def _given(hits: Sequence[Hit]) -> str:
    return " ".join(hit.chunk.text.split()[0] for hit in hits)


def _text(passage: Chunk | str) -> str:
    return passage if isinstance(passage, str) else passage.text


def _finished(
    combiner: Any, k: int = 2, said: str = "", example: Example = EXAMPLE
) -> tuple[ActiveExample, list[list[Read]]]:
    """Returns a finished example, and what was read in each round."""
    stages = Pipeline(Blocks(), BM25(k=k), Copy(said), combiner)
    return run_example(stages, example)


def _starts(active: ActiveExample) -> list[str]:
    return [" ".join(hit.chunk.text.split()[:2]) for hit in active.hits]


def test_the_next_query_has_what_the_passage_lacks_and_what_it_names() -> None:
    """What the passage says already is not searched again, nor a word that opened a sentence."""
    passage = "Scarlett was played by Vivien Leigh in 1939. She won; then she left. Then all left."
    assert missing_terms("the spouse of the one that played Scarlett", passage) == (
        "the spouse of the one that"
    )
    assert names(passage, "Who played Scarlett?") == "Vivien Leigh 1939"
    assert names("郝思嘉由费雯·丽饰演", "谁") == ""


def test_a_second_hop_finds_what_the_first_passage_names() -> None:
    """One hop finds the film, two the spouse; the passages are read in that order."""
    one, _ = _finished(MultiHop(Stuff(), hops=1))
    two, [[read]] = _finished(MultiHop(Stuff(), hops=2, beam=1, new=1))
    assert _starts(one) == ["Scarlett was", "The screen"]
    assert _starts(two) == ["Scarlett was", "The screen", "Vivien Leigh"]
    firsts = [_text(passage).split()[0] for passage in read.passages]
    assert firsts == ["Scarlett", "Vivien", "The"]
    assert read.question == QUESTION


def test_the_first_of_every_hop_is_read_before_the_second_of_any() -> None:
    """What a short window cuts is the least that any hop found."""
    active, _ = _finished(MultiHop(Given(), beam=1, new=2), k=2)
    first, second = active.hits[:2], active.hits[2:]
    assert second
    ordered = [first[0], second[0], first[1], *second[1:]]
    assert active.value == _given(ordered)


def test_a_reader_may_say_what_is_searched_next() -> None:
    """It reads each passage with those that led there, the last first, in one round a hop."""
    combiner = MultiHop(Stuff(), hops=3, beam=1, new=1, query="reader", ask="Go on.")
    active, rounds = _finished(combiner, said="Laurence Olivier, Dorking, Surrey")
    assert [[read.instruction for read in reads] for reads in rounds] == [
        ["Go on."],
        ["Go on."],
        [""],
    ]
    assert [len(reads[0].passages) for reads in rounds] == [1, 2, 4]
    assert _starts(active)[2] == "Laurence Olivier"
    assert rounds[1][0].passages == (active.hits[2].chunk, active.hits[0].chunk)


def test_hits_of_later_hops_are_in_the_prediction_and_the_ledger() -> None:
    """What was found is what was selected; nothing is read that was not."""
    stages = Pipeline(Blocks(), BM25(k=2), Copy(), MultiHop(Stuff(), beam=1, new=1))
    [row] = rows_of(None, [EXAMPLE], stages)
    found = row["prediction"]
    starts = [TEXT.index(name) for name in ("Scarlett was", "The screen", "Vivien Leigh had")]
    assert [start for start, _, _ in found["hits"]] == starts
    ledger = found["coverage"]
    assert ledger["selected"] == ledger["read"] == sum(e - s for s, e, _ in found["hits"])
    assert ledger["cut"] == 0


@dataclass(frozen=True)
class Asks:
    """Searches as it is told, and returns what it was sent."""

    question: str
    new: int | None

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        once = yield [Search(self.question, self.new)]
        again = yield [Search(self.question, self.new)]
        return json.dumps([[hit.chunk.start for hit in found] for found in (*once, *again)])


def test_a_search_for_what_is_new_gets_no_hit_twice() -> None:
    """Without `new` the same hits come again; with it, those not found before, and no more."""
    every, _ = _finished(Asks("market", None), k=3)
    fresh, _ = _finished(Asks("market", 1), k=3)
    once, again = json.loads(str(every.value))
    assert once == again
    first, second = json.loads(str(fresh.value))
    assert len(first) == 1
    assert first != second
    assert len({hit.chunk.span for hit in fresh.hits}) == len(fresh.hits)


def test_only_the_sentences_nearest_to_the_question_count() -> None:
    """In their own order; none asked for is all of them."""
    text = "Rome is old. Oslo is cold in winter. Nobody counts. Oslo has a harbour."
    assert (
        nearest_sentences(text, "Oslo harbour", 2) == "Oslo is cold in winter. Oslo has a harbour."
    )
    assert nearest_sentences(text, "Oslo harbour", 0) == text
