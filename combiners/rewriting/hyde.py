"""A passage that would answer, to search with."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.combiners.chains.said import evidence, says_nothing
from leporello.combiners.rewriting.wording import brief, unread
from leporello.core.calls.contracts import in_role, run_combiner
from leporello.core.calls.ranks import fused
from leporello.core.notes import note
from leporello.core.protocols import ANSWER, Combiner, Positive, Role
from leporello.core.records import Asking, Combination, Example, Generates, Hit, Search

WRITE = (
    "Write a passage of three sentences that could stand in the text and answers the question. You"
    " need not know the answer: make it up."
)


@dataclass(frozen=True)
class HyDE:
    """Searches with a passage that would answer as well, and has another combiner read the best.

    Gao et al. ("Precise Zero-Shot Dense Retrieval without Relevance Labels", 2023): what the reader
    makes up, having read nothing, is wrong but worded like what is looked for. The ranks by it and
    by the question are fused; as many hits are read as the question found alone.

    Where the reader does not write, what it answers from the best hits is searched with: of an
    answer that it copied, the sentence. Where it says nothing, the question's hits are read.

    Attributes:
        combiner: Combiner that reads what was found.
        write: Instruction under which the passage is written.
        hits: Number of the best hits that a reader answers from that does not write.
        role: Role of the reader that words what is searched for.
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
            [found] = yield [Search(passage)]
            hits = fused([hits, found])[: len(hits) or None]
        return (yield from run_combiner(self.combiner, example, hits))

    def _passage(self, example: Example, hits: Sequence[Hit]) -> Asking[str]:
        [writes] = yield [Generates()]
        ask = unread(example, self.write)
        if not writes:
            note("HyDE searched with the reader's answer: the reader writes no passages")
            best = tuple(hit.chunk for hit in hits[: self.hits])
            ask = dataclasses.replace(ask, passages=best, instruction="")
        if not writes and not hits:
            return ""
        [output] = yield [ask]
        return "" if says_nothing(output.text) else brief(evidence(output, example.document))
