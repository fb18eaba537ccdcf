"""Which reads the budget of a question allows, one by one, before they are read."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from enum import Enum

from leporello.config import Pipeline
from leporello.core.calls.budget import Budget, Spending
from leporello.core.protocols import RendersPrompt
from leporello.core.records import Chunk, Output, Read
from leporello.engine.failures import ReadError
from leporello.engine.serialization import Reply

_NOTHING = -1e9  # the score of an answer from nothing; JSON has no infinity


class Admission(Enum):
    """What becomes of a read now."""

    READ = "read"
    WAIT = "wait"  # until it is known what this question's reads cost
    REFUSE = "refuse"


class Allowance:
    """The budget of one question while it is answered.

    Attributes:
        budget: Its limits.
        stages: Stages of the pipeline, whose readers count tokens.
        spent: What its reads have cost, those under way by what they will probably cost.
    """

    def __init__(
        self, budget: Budget, stages: Pipeline, calls: Iterable[tuple[Read, Reply]]
    ) -> None:
        """Counts what was read before."""
        self.budget, self.stages = budget, stages
        self.spent, self._known = Spending(), Spending()
        for read, reply in calls:
            self.has_read(read, reply)

    def has_read(self, read: Read, reply: Reply) -> None:
        """Counts what came of a read, as the journal has it; a failed one costs nothing."""
        if isinstance(reply, Output):
            self._known.add(reply, self._tokens(read))
        self.spent = dataclasses.replace(self._known)

    def ask(self, read: Read) -> Admission:
        """Returns what becomes of a read; counts it as under way if it is to be read."""
        tokens = self._tokens(read)
        under_way = self.spent.reads > self._known.reads
        priced = self.budget.dollars is not None or self.budget.seconds is not None
        if priced and under_way and not self._known.tokens:
            return Admission.WAIT
        each = tokens / self._known.tokens if self._known.tokens else 0.0
        after = Spending(
            self.spent.reads + 1,
            self.spent.tokens + tokens,
            self.spent.dollars + each * self._known.dollars,
            self.spent.seconds + each * self._known.seconds,
        )
        limits = self.budget.row()
        if any(getattr(after, name) > limit for name, limit in limits.items()):
            return Admission.REFUSE
        self.spent = after
        return Admission.READ

    def refusal(self, read: Read) -> Reply:
        """Returns what comes of a read that is over the budget: nothing was seen of it.

        A budget that has not room for the first read of a question is no budget: that read fails.
        """
        if self._known.reads or self.spent.reads:
            cut = sum(len(p.text if isinstance(p, Chunk) else p) for p in read.passages)
            scores = (_NOTHING,) * len(read.choices)
            return Output("", _NOTHING, scores=scores, read=(), cut=cut, over_budget=True)
        limits = ", ".join(f"{value:g} {name}" for name, value in self.budget.row().items())
        return ReadError(
            f"the budget ({limits}) is too small for one read of {self._tokens(read):,} tokens"
        )

    def _tokens(self, read: Read) -> int:
        """Returns how many tokens a read has."""
        reader = self.stages.reader_of(read.role)
        if self.budget.row().keys() <= {"reads"}:
            return 0
        if isinstance(reader, RendersPrompt):
            return int(self.stages.reader_of(read.role).count([reader.render(read)])[0])
        texts = [p.text if isinstance(p, Chunk) else p for p in read.passages]
        return sum(reader.count([*texts, read.question, read.instruction, *read.choices]))
