"""Searches also with queries that the reader or rules write, and fuses the ranks."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import regex

from leporello.combiners.chains.outputs import evidence, has_no_answer
from leporello.combiners.stuff import question_only
from leporello.core.calls.contracts import in_role, run_combiner
from leporello.core.notes import note
from leporello.core.passages import fused
from leporello.core.protocols import ANSWER, Combiner, Positive, Role
from leporello.core.records import Asking, Combination, Example, Generates, Hit, Search
from leporello.text.english.terms import EMPTY_TERMS
from leporello.text.tokens import terms

_LONGEST = 200  # words of a query; some readers never stop repeating themselves
_MARK = regex.compile(r"^\W*(?:(?:step|question|q)\s?)?(?:\d{1,2}\s?[.):]\s*|[-*•–]\s+)?", regex.I)
_ENDS = " \t\r\n\"'“”*_`"
_CAPITALS = regex.compile(r"\p{Lu}[\p{L}\p{M}\p{N}.'’-]*(?:\s+\p{Lu}[\p{L}\p{M}\p{N}.'’-]*)*")
_AUXILIARY = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|might)"
_OPENING = regex.compile(
    r"\W*(?:(?:in|on|at|by|from|to|of|for|with)\s+)?"
    rf"(?:(?:who|whom|whose|what|when|where|which|why|how(?:\s+(?:many|much))?)\b\s*)?"
    rf"(?:{_AUXILIARY}\s+)?",
    regex.IGNORECASE,
)


def shortened(text: str) -> str:
    """Returns a text in one line, cut to the longest query."""
    return " ".join(text.split()[:_LONGEST])


def written_lines(example: Example, instruction: str, count: int) -> Asking[list[str]]:
    """Returns the first lines of a list that a generative reader writes; empty for others."""
    [is_generative] = yield [Generates()]
    if not is_generative:
        return []
    [output] = yield [question_only(example, instruction)]
    lines = (_MARK.sub("", line, count=1) for line in output.text.splitlines())
    bare = (shortened(line).strip(_ENDS) for line in lines)
    return [*dict.fromkeys(line for line in bare if terms(line) and not line.endswith(":"))][:count]


def rewordings(question: str) -> list[str]:
    """Returns an English question without function words, as a statement, and only its names."""
    words = [word.strip(_ENDS + "?.,;:!()") for word in question.split()]
    content = [word for word in words if not EMPTY_TERMS.issuperset(terms(word))]
    names = [word for word in content if word[0].isupper() or word[0].isdigit()]
    statement = _OPENING.sub("", question.strip(_ENDS + "?"), count=1)
    wordings = dict.fromkeys([" ".join(content), statement, " ".join(names)])
    return [text for text in wordings if terms(text) and terms(text) != terms(question)]


def on_each_name(question: str) -> list[str]:
    """Returns the question once per name, without its other names; empty with fewer than two."""
    names = [*dict.fromkeys(filter(None, map(_name, _CAPITALS.findall(question))))]
    questions: list[str] = []
    for name in names if len(names) > 1 else ():
        text = question
        for removed in names:
            text = text if removed in name else text.replace(removed, "")
        questions.append(" ".join(text.split()))
    return questions


def _name(capitals: str) -> str:
    """Returns capitalised words without function words at the beginning."""
    words = capitals.split()
    while words and EMPTY_TERMS.issuperset(terms(words[0])):
        del words[0]
    return " ".join(words)


@dataclass(frozen=True)
class SearchesAgain:
    """A combiner that searches again with rewritten questions, and has another one read all hits.

    Attributes:
        combiner: Combiner that reads the hits.
        role: Role of the reader that rewrites the question.
    """

    combiner: Combiner
    role: Role = ANSWER

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields reads and searches, unless the question is blank; then the combiner's rounds."""
        if example.question.strip():
            hits = yield from in_role(self.role, self._hits(example, hits))
        return (yield from run_combiner(self.combiner, example, hits))

    def _hits(self, example: Example, hits: Sequence[Hit]) -> Asking[Sequence[Hit]]:
        """Returns the hits to read, from those of the question and of further searches."""
        raise NotImplementedError


WRITE = (
    "Write a passage of three sentences that could stand in the text and answers the question. You"
    " need not know the answer: make it up."
)


@dataclass(frozen=True)
class HyDE(SearchesAgain):
    """Searches also with an invented answer, and has another combiner read the best hits.

    Gao et al. ("Precise Zero-Shot Dense Retrieval without Relevance Labels", 2023): a passage that
    the reader invents without reading is wrong, but has the wording of the right passages. The
    ranks by the passage and by the question are fused, and cut to the number of the question's
    hits.

    A reader that does not generate text answers from the best hits, and its answer, or the sentence
    with a copied answer, becomes the query. If the answer is empty, only the question's hits are
    read.

    Attributes:
        write: Instruction for writing the passage.
        hits: Number of the best hits that a non-generative reader answers from.
    """

    write: str = WRITE
    hits: Positive = 3

    def _hits(self, example: Example, hits: Sequence[Hit]) -> Asking[Sequence[Hit]]:
        [is_generative] = yield [Generates()]
        ask = question_only(example, self.write)
        if not is_generative:
            note("HyDE searched with the reader's answer: the reader writes no passages")
            best = tuple(hit.chunk for hit in hits[: self.hits])
            ask = dataclasses.replace(ask, passages=best, instruction="")
        if not is_generative and not hits:
            return hits
        [output] = yield [ask]
        text = shortened(evidence(output, example.document))
        return (yield from _fused([] if has_no_answer(output.text) else [text], hits))


REWORD = (
    "Do not answer the question. Put it in {queries} other ways, with other words for the same"
    " things, each in a line of its own."
)


@dataclass(frozen=True)
class MultiQuery(SearchesAgain):
    """Searches also with other wordings of the question, and has another combiner read the best.

    RAG-Fusion (Rackauckas, 2024): a generative reader writes the wordings. The ranks by the
    wordings and by the question are fused, and cut to the number of the question's hits. Without a
    generative reader, or if it wrote none, rules for English make three wordings: the question
    without function words, as a statement, and only its names and numbers.

    Attributes:
        queries: Maximum number of other wordings; the rules make three.
        reword: Instruction for writing the wordings; `{queries}` is their number.
    """

    queries: Positive = 3
    reword: str = REWORD

    def _hits(self, example: Example, hits: Sequence[Hit]) -> Asking[Sequence[Hit]]:
        instruction = self.reword.replace("{queries}", str(self.queries))
        wordings = yield from written_lines(example, instruction, self.queries)
        if not wordings:
            note("MultiQuery made other wordings by rule: the reader wrote none")
            wordings = rewordings(example.question)[: self.queries]
        return (yield from _fused(wordings, hits))


def _fused(queries: Sequence[str], hits: Sequence[Hit]) -> Asking[Sequence[Hit]]:
    """Returns the best hits of all queries, in the number of the question's hits."""
    if not queries:
        return hits
    rankings = yield [Search(query) for query in queries]
    return fused([hits, *rankings])[: len(hits) or None]
