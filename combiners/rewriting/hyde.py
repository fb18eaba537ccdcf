"""Searches with a passage that the reader invents as an answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.combiners.chains.outputs import evidence, has_no_answer
from leporello.combiners.rewriting.wording import question_only, shortened
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
        if example.question.strip() and (
            passage := (yield from in_role(self.role, self._passage(example, hits)))
        ):
            [ranking] = yield [Search(passage)]
            hits = fused([hits, ranking])[: len(hits) or None]
        return (yield from run_combiner(self.combiner, example, hits))

    def _passage(self, example: Example, hits: Sequence[Hit]) -> Asking[str]:
        [is_generative] = yield [Generates()]
        ask = question_only(example, self.write)
        if not is_generative:
            note("HyDE searched with the reader's answer: the reader writes no passages")
            best = tuple(hit.chunk for hit in hits[: self.hits])
            ask = dataclasses.replace(ask, passages=best, instruction="")
        if not is_generative and not hits:
            return ""
        [output] = yield [ask]
        return "" if has_no_answer(output.text) else shortened(evidence(output, example.document))
