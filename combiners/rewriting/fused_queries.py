"""Searches also with queries that the reader writes, and fuses the ranks."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.combiners.chains.outputs import evidence, has_no_answer
from leporello.combiners.rewriting.wording import rewordings, shortened, written_lines
from leporello.combiners.stuff import question_only
from leporello.core.calls.contracts import in_role, run_combiner
from leporello.core.notes import note
from leporello.core.passages import fused
from leporello.core.protocols import ANSWER, Combiner, Positive, Role
from leporello.core.records import Asking, Combination, Example, Generates, Hit, Search

WRITE = (
    "Write a passage of three sentences that could stand in the text and answers the question. You"
    " need not know the answer: make it up."
)


@dataclass(frozen=True)
class HyDE:
    """Searches also with an invented answer, and has another combiner read the best hits.

    Gao et al. ("Precise Zero-Shot Dense Retrieval without Relevance Labels", 2023): a passage that
    the reader invents without reading is wrong, but has the wording of the right passages. The
    ranks by the passage and by the question are fused, and cut to the number of the question's
    hits.

    A reader that does not generate text answers from the best hits, and its answer, or the sentence
    with a copied answer, becomes the query. If the answer is empty, only the question's hits are
    read.

    Attributes:
        combiner: Combiner that reads the hits.
        write: Instruction for writing the passage.
        hits: Number of the best hits that a non-generative reader answers from.
        role: Role of the reader that writes the passage.
    """

    combiner: Combiner
    write: str = WRITE
    hits: Positive = 3
    role: Role = ANSWER

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one read and one search; then the combiner's rounds."""
        return (yield from _fused(self, self._passage(example, hits), example, hits))

    def _passage(self, example: Example, hits: Sequence[Hit]) -> Asking[list[str]]:
        [is_generative] = yield [Generates()]
        ask = question_only(example, self.write)
        if not is_generative:
            note("HyDE searched with the reader's answer: the reader writes no passages")
            best = tuple(hit.chunk for hit in hits[: self.hits])
            ask = dataclasses.replace(ask, passages=best, instruction="")
        if not is_generative and not hits:
            return []
        [output] = yield [ask]
        text = shortened(evidence(output, example.document))
        return [] if has_no_answer(output.text) else [text]


REWORD = (
    "Do not answer the question. Put it in {queries} other ways, with other words for the same"
    " things, each in a line of its own."
)


@dataclass(frozen=True)
class MultiQuery:
    """Searches also with other wordings of the question, and has another combiner read the best.

    RAG-Fusion (Rackauckas, 2024): a generative reader writes the wordings. The ranks by the
    wordings and by the question are fused, and cut to the number of the question's hits. Without a
    generative reader, or if it wrote none, rules for English make three wordings: the question
    without function words, as a statement, and only its names and numbers.

    Attributes:
        combiner: Combiner that reads the hits.
        queries: Maximum number of other wordings; the rules make three.
        reword: Instruction for writing the wordings; `{queries}` is their number.
        role: Role of the reader that writes the wordings.
    """

    combiner: Combiner
    queries: Positive = 3
    reword: str = REWORD
    role: Role = ANSWER

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one read and one round of searches; then the combiner's rounds."""
        return (yield from _fused(self, self._wordings(example), example, hits))

    def _wordings(self, example: Example) -> Asking[list[str]]:
        instruction = self.reword.replace("{queries}", str(self.queries))
        if wordings := (yield from written_lines(example, instruction, self.queries)):
            return wordings
        note("MultiQuery made other wordings by rule: the reader wrote none")
        return rewordings(example.question)[: self.queries]


def _fused(
    settings: HyDE | MultiQuery,
    asking: Asking[list[str]],
    example: Example,
    hits: Sequence[Hit],
) -> Combination:
    """Runs the combiner on the best hits of the question and of the queries that are asked for."""
    queries: list[str] = []
    if example.question.strip():
        queries = yield from in_role(settings.role, asking)
    if queries:
        rankings = yield [Search(query) for query in queries]
        hits = fused([hits, *rankings])[: len(hits) or None]
    return (yield from run_combiner(settings.combiner, example, hits))
