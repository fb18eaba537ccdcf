"""Answers questions over several passages, by searches with words of passages found before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import TypeVar

import regex

from leporello.core.calls.contracts import run_combiner
from leporello.core.protocols import Combiner, Count, Positive
from leporello.core.records import Asking, Combination, Example, Hit, Search
from leporello.text.folding import composed
from leporello.text.sentences import sentence_spans
from leporello.text.tokens import terms

_Item = TypeVar("_Item")
# Words of scripts without capitals do not match, since all of them would look like names.
# `O'Brien` and `Ann-Marie` are one word each, since a retriever searches for both parts.
_WORD = regex.compile(
    r"(?<![\p{L}\p{M}\p{N}])[\p{Lu}\p{Lt}\p{Ll}\p{N}][\p{L}\p{M}\p{N}]*(?:['’-][\p{L}\p{M}\p{N}]+)*"
)


@dataclass(frozen=True)
class MultiHop:
    """Searches with words of the passages found before, then has another combiner read all hits.

    Each hop makes a query from each of the best passages of the previous hop, and adds the new
    hits. A query consists of the words of the question that the passage and its predecessors lack,
    and of the passage's names: its words that begin with a capital or a digit; scripts without
    capitals have few. So "the spouse of the actress who plays
    Scarlett", with a passage on Scarlett, becomes "spouse actress Vivien Leigh". The search ends
    early if a hop finds nothing new.

    The combiner reads the first hit of each hop, then the second of each hop, and so on.

    Attributes:
        combiner: Combiner that reads the hits.
        hops: Number of successive searches; 1 uses only the retriever's hits.
        beam: Number of the best passages of a hop that make queries for the next.
        new: Maximum number of passages that each query adds. The total is at most `retriever.k`,
            plus `beam` x `new` for each further hop.
        sentences: Number of a passage's sentences, the nearest to the question, that make the
            query; 0 for all.
    """

    combiner: Combiner
    # A third hop gains little more (30 points with BM25, not 28) for more hits (decision 24).
    hops: Positive = 2
    # Three paths and two sentences: best of some sixty variants tried on 90 questions, so these
    # defaults are somewhat fitted to them (decision 24).
    beam: Positive = 3
    new: Positive = 2
    # Two gained 28 points with BM25 on MuSiQue and 17 on HotpotQA, one sentence 17 on MuSiQue,
    # the whole passage 28 and 0 (decision 24).
    sentences: Count = 2

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields a round of searches per hop, then the combiner's rounds."""
        hops = [[_Path(hit, example.question) for hit in hits]]
        # A hop without new passages ends the search, since its queries would repeat.
        while len(hops) < self.hops and hops[-1]:
            hops.append((yield from self._hop(hops[-1][: self.beam])))
        gathered = [path.hit for path in interleaved(hops)]
        return (yield from run_combiner(self.combiner, example, gathered))

    def _hop(self, paths: Sequence[_Path]) -> Asking[list[_Path]]:
        """Returns the new passages that the best passages of a hop lead to."""
        searches: list[Search] = []
        reached: list[tuple[str, str]] = []
        for path in paths:
            text = path.hit.chunk.text
            # Chunks of 200 words hold several paragraphs, whose other names mislead the search.
            nearest = nearest_sentences(text, path.missing, self.sentences)
            missing = missing_terms(path.missing, nearest)
            # With BM25, names find all evidence for 68 % of MuSiQue, complete passages for 48 %.
            new = names(nearest, f"{path.missing} {path.earlier}")
            # A passage with all words of the question and without new names leads to no search.
            if query := f"{missing} {new}".strip():
                # Only new passages count, so that hits already found do not use up `new`.
                searches.append(Search(query, self.new))
                reached.append((missing, f"{text} {path.earlier}"))
        answers = yield searches
        return interleaved(
            [_Path(hit, *words) for hit in hits]
            for words, hits in zip(reached, answers, strict=True)
        )


@dataclass(frozen=True, slots=True)
class _Path:
    hit: Hit
    missing: str  # words of the question that the predecessors lack
    earlier: str = ""  # texts of the predecessors


def interleaved(lists: Iterable[Sequence[_Item]]) -> list[_Item]:
    """Returns the first item of each list, then the second of each, and so on."""
    # Sums of scores did about as well, but need comparable scores (decision 24).
    rounds = chain.from_iterable(zip_longest(*lists))
    return [item for item in rounds if item is not None]


def missing_terms(question: str, text: str) -> str:
    """Returns the terms of a question that a text lacks."""
    # Words the passage answers already would find the same passage again.
    present = set(terms(text))
    return " ".join(term for term in terms(question) if term not in present)


def names(text: str, question: str) -> str:
    """Returns the words of a text that begin with a capital or a digit, each once.

    Words of the question are left out, and words that the text also has in lower case, since these
    are first words of sentences, not names.
    """
    words = _WORD.findall(composed(text))
    # A known name finds its known passage again.
    excluded = {*terms(question), *(word for word in words if word[0].islower())}
    capitals = (word for word in words if not word[0].islower() and word.casefold() not in excluded)
    # Each once, since BM25 and TF-IDF weigh repeated words of a query higher.
    return " ".join(dict.fromkeys(capitals))


def nearest_sentences(text: str, question: str, count: int) -> str:
    """Returns the `count` sentences nearest to a question; 0 for all sentences."""
    if not count:
        return text
    question_terms = set(terms(question))

    def score(span: tuple[int, int]) -> float:
        words = terms(text[slice(*span)])
        # The root: without it the longest sentences win, with the full length the shortest.
        length: float = (1 + len(words)) ** 0.5
        return len(question_terms.intersection(words)) / length

    best = sorted(sentence_spans(text), key=score, reverse=True)[:count]
    return " ".join(text[start:end] for start, end in sorted(best))
