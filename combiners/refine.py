"""One hit after the other, each with the answer so far."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.combiners.stuff import Order, arranged, asked, read_of
from leporello.core.records import Combination, Example, Hit


@dataclass(frozen=True)
class Refine:
    """Reads the first hit, then each further one together with the answer so far.

    Attributes:
        order: Order in which hits are read.
        refine_instruction: Instruction that replaces the task's from the second hit on, if not
            empty.
        label: Label before the answer so far, which is the first passage of every later read.
    """

    order: Order = "document"
    refine_instruction: str = ""
    label: str = "Answer so far: "

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one read a round, as many rounds as hits; choices are scored in the last.

        Without hits the question is read alone.
        """
        if not hits:
            [output] = yield [read_of(example, [])]
            return str(output.text)
        answer = ""
        queue = arranged(hits, self.order)
        for position, hit in enumerate(queue):
            read = read_of(example, [hit])
            if position < len(queue) - 1:
                read = dataclasses.replace(read, choices=())
            if answer:
                passages = (f"{self.label}{answer}", *read.passages)
                more = asked(example, passages, self.refine_instruction)
                read = dataclasses.replace(more, choices=read.choices)
            [output] = yield [read]
            answer = output.text.strip() or answer
        return answer
