"""Searches with several wordings of a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leporello.combiners.rewriting.wording import lines, question_only, rewordings
from leporello.core.calls.contracts import in_role, run_combiner
from leporello.core.notes import note
from leporello.core.passages import fused
from leporello.core.protocols import ANSWER, Combiner, Positive, Role
from leporello.core.records import Asking, Combination, Example, Generates, Hit, Search

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
        wordings = (
            (yield from in_role(self.role, self._wordings(example)))
            if example.question.strip()
            else []
        )
        if wordings:
            rankings = yield [Search(wording) for wording in wordings]
            hits = fused([hits, *rankings])[: len(hits) or None]
        return (yield from run_combiner(self.combiner, example, hits))

    def _wordings(self, example: Example) -> Asking[list[str]]:
        [is_generative] = yield [Generates()]
        if is_generative:
            instruction = self.reword.replace("{queries}", str(self.queries))
            [output] = yield [question_only(example, instruction)]
            if wordings := lines(output.text, self.queries):
                return wordings
        note("MultiQuery made other wordings by rule: the reader wrote none")
        return rewordings(example.question)[: self.queries]
