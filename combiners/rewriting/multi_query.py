"""A question in several wordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leporello.combiners.rewriting.wording import lines, rewordings, unread
from leporello.core.calls.contracts import in_role, run_combiner
from leporello.core.calls.ranks import fused
from leporello.core.notes import note
from leporello.core.protocols import ANSWER, Combiner, Positive, Role
from leporello.core.records import Asking, Combination, Example, Generates, Hit, Search

REWORD = (
    "Do not answer the question. Put it in {queries} other ways, with other words for the same"
    " things, each in a line of its own."
)


@dataclass(frozen=True)
class MultiQuery:
    """Searches with other wordings of the question too, and has another combiner read the best.

    RAG-Fusion (Rackauckas, 2024): the reader writes the wordings, and the ranks by them and by the
    question are fused; as many hits are read as the question found alone. Where the reader does not
    write, or wrote none, they are made by rule, in English: the question without function words, as
    a statement, its names and numbers alone.

    Attributes:
        combiner: Combiner that reads what was found.
        queries: Number of other wordings at most; by rule there are three.
        reword: Instruction under which they are written; `{queries}` is their number.
        role: Role of the reader that words what is searched for.
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
            found = yield [Search(wording) for wording in wordings]
            hits = fused([hits, *found])[: len(hits) or None]
        return (yield from run_combiner(self.combiner, example, hits))

    def _wordings(self, example: Example) -> Asking[list[str]]:
        [writes] = yield [Generates()]
        if writes:
            instruction = self.reword.replace("{queries}", str(self.queries))
            [output] = yield [unread(example, instruction)]
            if written := lines(output.text, self.queries):
                return written
        note("MultiQuery made other wordings by rule: the reader wrote none")
        return rewordings(example.question)[: self.queries]
