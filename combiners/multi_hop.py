"""Questions over several passages, each of which says what to look for next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Literal, TypeVar

import regex

from leporello.core.calls.contracts import run_combiner
from leporello.core.protocols import Combiner, Count, Positive
from leporello.core.records import Asking, Chunk, Combination, Example, Hit, Output, Read, Search
from leporello.text.sentences import sentence_spans
from leporello.text.tokens import terms

_Found = TypeVar("_Found")
# Letters of scripts without capitals begin no word here: none of theirs would be left out.
_WORD = regex.compile(
    r"(?<![\p{L}\p{M}\p{N}])[\p{Lu}\p{Lt}\p{Ll}\p{N}][\p{L}\p{M}\p{N}]*(?:['’-][\p{L}\p{M}\p{N}]+)*"
)


@dataclass(frozen=True)
class MultiHop:
    """Searches again from what was found, then has another combiner read everything.

    A hop goes on from the best passages of the hop before: each makes a query, and what it finds
    is new. A query is made of the words of the question that its passage lacks, and those before
    it, and of what it says instead: its names, or what the reader answers. So "the spouse of the
    actress who plays Scarlett", by a passage on Scarlett, becomes "spouse actress Vivien Leigh".
    It ends early where nothing new is found.

    What is found is read in this order: the first of each hop, the second of each hop, and so on.
    If a read fails, the example fails, and is tried again as others are.

    Attributes:
        combiner: Combiner that reads what was found.
        hops: Number of searches, one after the other; 1 is the retriever's hits alone.
        beam: Number of passages of a hop, the best ones, that the next goes on from.
        new: Number of passages that each of these adds at most. In all, at most `retriever.k`
            passages and `beam` x `new` a further hop.
        query: Words that are put to the question's. `names` are the passage's words that begin with
            a capital or a digit; scripts without capitals have few. `passage` is its text, beside
            the whole question. `reader` is what the reader answers to it.
        sentences: Number of sentences of a passage, those nearest to the question, that count; 0 is
            all.
        ask: Instruction under which the reader reads a passage, and those before it, with the
            question.
    """

    combiner: Combiner
    hops: Positive = 2
    beam: Positive = 3
    new: Positive = 2
    query: Literal["names", "passage", "reader"] = "names"
    sentences: Count = 2
    ask: str = (
        "The text answers only a part of the question. Answer that part with a name or a few words."
    )

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields a round of reads a hop, if the reader makes queries; then the combiner's."""
        hops = [[_Path(hit, (hit.chunk,), example.question) for hit in hits]]
        while len(hops) < self.hops and hops[-1]:
            hops.append((yield from self._hop(example, hops[-1][: self.beam])))
        gathered = [path.hit for path in by_turns(hops)]
        return (yield from run_combiner(self.combiner, example, gathered))

    def _hop(self, example: Example, paths: Sequence[_Path]) -> Asking[list[_Path]]:
        """Returns what the best passages of a hop lead to."""
        nearest = [nearest_sentences(p.hit.chunk.text, p.left, self.sentences) for p in paths]
        left = [self._left(path, text) for path, text in zip(paths, nearest, strict=True)]
        if self.query == "reader":
            outputs: list[Output] = yield [self._read(example, path) for path in paths]
            added = [output.text for output in outputs]
        elif self.query == "names":
            # With BM25 all is found for 68 % of MuSiQue, by whole passages for 48 % (decision 24).
            added = [names(text, path.known) for text, path in zip(nearest, paths, strict=True)]
        else:
            added = nearest
        queries = [f"{words} {text}".strip() for words, text in zip(left, added, strict=True)]
        indices = [index for index, query in enumerate(queries) if query]
        if not indices:
            return []
        answers = yield [Search(queries[index], self.new) for index in indices]
        return by_turns(
            [_Path(hit, (hit.chunk, *paths[index].chunks), left[index]) for hit in hits]
            for index, hits in zip(indices, answers, strict=True)
        )

    def _left(self, path: _Path, text: str) -> str:
        """Returns what of the question is still to be found; with whole passages, all of it."""
        return path.left if self.query == "passage" else without(path.left, text)

    def _read(self, example: Example, path: _Path) -> Read:
        return Read(path.chunks, example.question, self.ask, title=example.document.title)


@dataclass(frozen=True, slots=True)
class _Path:
    """A passage and how it was found.

    Attributes:
        hit: Hit of the passage.
        chunks: Chunks: its own and those that led there, the last first.
        left: Words of the question that those before it lack.
    """

    hit: Hit
    chunks: tuple[Chunk, ...]
    left: str

    @property
    def known(self) -> str:
        """What need not be searched for by name: it was, or stood in what led there."""
        return " ".join([self.left, *(chunk.text for chunk in self.chunks[1:])])


def by_turns(lists: Iterable[Sequence[_Found]]) -> list[_Found]:
    """Returns the first of each list, the second of each, and so on."""
    # Sums of scores did about as well, and need scores that compare (decision 24).
    rounds = chain.from_iterable(zip_longest(*lists))
    return [one for one in rounds if one is not None]


def without(question: str, text: str) -> str:
    """Returns the terms of a question that do not stand in a text."""
    stated = set(terms(text))
    return " ".join(term for term in terms(question) if term not in stated)


def names(text: str, question: str) -> str:
    """Returns the words of a text with a capital or a digit in front, each once.

    Left out are those of the question, and a word that the text has in lower case too: it is no
    name, it opened a sentence.
    """
    words = _WORD.findall(text)
    excluded = {*terms(question), *(word for word in words if word[0].islower())}
    left = (word for word in words if not word[0].islower() and word.lower() not in excluded)
    return " ".join(dict.fromkeys(left))


def nearest_sentences(text: str, question: str, count: int) -> str:
    """Returns so many sentences that share most with a question, in their order; 0 is all of them.

    Long ones must share more; so words shared are divided by the root of a sentence's length.
    """
    if not count:
        return text
    wanted = set(terms(question))
    scores = dict(_scored(text, wanted))
    best = sorted(scores, key=lambda span: -scores[span])[:count]
    return " ".join(text[start:end] for start, end in sorted(best))


def _scored(text: str, wanted: set[str]) -> Iterator[tuple[tuple[int, int], float]]:
    for start, end in sentence_spans(text):
        words = terms(text[start:end])
        yield (start, end), len(wanted.intersection(words)) / (1 + len(words)) ** 0.5
