"""Workers read one after the other, each with what the one before handed on; a manager answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leporello.combiners.chains.said import evidence, says_nothing
from leporello.combiners.stuff import asked, chunks_of
from leporello.core.protocols import ANSWER, Count, Role
from leporello.core.records import Chunk, Combination, Example, Fit, Hit, Output, Read

WORK = (
    "The text may begin with notes on what was read before it. Write notes that keep these and add"
    " what the rest of the text says. Someone who reads the notes alone has to do this:"
)


@dataclass(frozen=True)
class ChainOfAgents:
    """Reads hits in document order, each with notes on those before it; then answers.

    As Zhang et al. describe ("Chain of Agents", NeurIPS 2024): workers hand a communication unit
    on, and a manager who sees the last unit alone answers, also where there is no question. A
    worker that says nothing hands on what it was given; if none says anything, the question is
    read alone.

    A reader that copies its answers writes no notes: its unit has the sentences that the answers so
    far stand in, and of a summary, its sentences. It loses by that, the more the more workers.

    Attributes:
        hits: Number of hits that a worker reads at most; 0 is as many as fit the window with the
            unit, which are all for a reader without one.
        worker: Instruction of the workers, in front of the task's.
        manager: Instruction of the manager, if not empty; else the task's.
        worker_role: Role of the reader that the workers are; the manager is the one of answers.
    """

    hits: Count = 0
    worker: str = WORK
    manager: str = ""
    worker_role: Role = ANSWER

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields a read a worker, one a round, then the manager's; at most one more than hits."""
        unit, rest = "", tuple(chunks_of(hits))
        while rest:
            part = rest[: self.hits or None]
            [fits] = yield [Fit(self._work(example, unit, part))]
            part = part[: max(fits - bool(unit), 1)]
            [output] = yield [self._work(example, unit, part)]
            unit = _handed_on(unit, output, example)
            rest = rest[len(part) :]
        [output] = yield [asked(example, filter(None, [unit]), self.manager)]
        return str(output.text)

    def _work(self, example: Example, unit: str, chunks: tuple[Chunk, ...]) -> Read:
        instruction = f"{self.worker} {example.instruction}".strip()
        passages: tuple[Chunk | str, ...] = (unit,) if unit else ()
        return Read(
            (*passages, *chunks),
            example.question,
            instruction,
            title=example.document.title,
            role=self.worker_role,
        )


def _handed_on(unit: str, output: Output, example: Example) -> str:
    """Returns the next unit: what was written, or the sentences copied so far."""
    said = evidence(output, example.document)
    if says_nothing(output.text) or (output.span and said in unit):
        return unit
    return f"{unit}\n{said}".strip() if output.span else said
