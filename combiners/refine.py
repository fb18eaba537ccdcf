"""Reads one hit after the other, each with the answer so far."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.combiners.stuff import Order, arranged, read_of, read_with
from leporello.core.records import Combination, Example, Hit


@dataclass(frozen=True)
class Refine:
    """Reads the first hit, then each further one together with the answer so far.

    Attributes:
        order: Order in which hits are read.
        refine_instruction: Instruction from the second hit on; if empty, the task's.
        label: Label before the answer so far, which is the first passage of every later read.
    """

    order: Order = "document"
    refine_instruction: str = ""
    label: str = "Answer so far: "

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one round per hit, with one read; choices are scored in the last round.

        Without hits, the read has only the question.
        """
        if not hits:
            [output] = yield [read_of(example, [])]
            return str(output.text)
        answer = ""
        queue = arranged(hits, self.order)
        for position, hit in enumerate(queue):
            read = read_of(example, [hit])
            if position < len(queue) - 1:
                # Choices only at the end: the reader could not change a choice made from the first
                # hits.
                read = dataclasses.replace(read, choices=())
            if answer:
                passages = (f"{self.label}{answer}", *read.passages)
                refined = read_with(example, passages, self.refine_instruction)
                read = dataclasses.replace(refined, choices=read.choices)
            [output] = yield [read]
            # A blank output, from a hit without news, must not erase the answer so far.
            answer = output.text.strip() or answer
        return answer
