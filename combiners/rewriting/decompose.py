"""A question as several smaller ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leporello.combiners.chains.plan_then_read import STEP, filled, plan_by_rule
from leporello.combiners.chains.said import says_nothing
from leporello.combiners.multi_hop import by_turns
from leporello.combiners.rewriting.wording import brief, lines, on_each_name, unread
from leporello.core.calls.contracts import in_role, run_combiner
from leporello.core.notes import note
from leporello.core.passages import Passage
from leporello.core.protocols import ANSWER, Combiner, Positive, Role
from leporello.core.records import (
    Asking,
    Combination,
    Example,
    Generates,
    Hit,
    Output,
    Read,
    Search,
)

SPLIT = (
    "Do not answer the question. Which smaller questions have to be answered for it? Put each in a"
    " line of its own, the first one first. #1 stands for the answer to the first."
)


@dataclass(frozen=True)
class Decompose:
    """Searches for each smaller question within the question, and has another combiner read all.

    Press et al. ("Measuring and Narrowing the Compositionality Gap", 2023: self-ask) have each
    follow-up question searched and answered before the next. The reader splits the question; where
    it does not write, or wrote none, this is done by rule, in English: by its clauses, else a
    question on each of its names.

    What is found is read in turns: the first hit of each question, the second of each, and so on.
    An answer that was not copied is a passage of its own; it stands for what it was answered from.

    Attributes:
        combiner: Combiner that reads what was found.
        steps: Number of smaller questions at most.
        new: Number of hits that each of them adds at most.
        answered: Whether each is answered from its own hits, so that later ones can name it.
        split: Instruction under which the question is split.
        step: Instruction under which a smaller question is answered.
        role: Role of the reader that words what is searched for.
    """

    combiner: Combiner
    steps: Positive = 4
    new: Positive = 2
    answered: bool = False
    split: str = SPLIT
    step: str = STEP
    role: Role = ANSWER

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields a read to split, a search a step, a read a step if answered; then the rest."""
        found = [[*hits]]
        told: list[Hit] = []
        answers: list[str] = []
        for step in (
            (yield from in_role(self.role, self._split(example)))
            if example.question.strip()
            else ()
        ):
            question = filled(step, answers)
            [more] = yield [Search(question, None if self.answered else self.new)]
            known = {hit.chunk for one in found for hit in one}
            found.append([hit for hit in more if hit.chunk not in known][: self.new])
            answers.append("")
            if self.answered and more:
                read = Read(tuple(hit.chunk for hit in more), question, self.step)
                [output] = yield [read]
                if not says_nothing(output.text):
                    answers[-1] = brief(output.text)
                    told += _told(question, output, more)
        return (yield from run_combiner(self.combiner, example, [*told, *by_turns(found)]))

    def _split(self, example: Example) -> Asking[list[str]]:
        [writes] = yield [Generates()]
        if writes:
            [output] = yield [unread(example, self.split)]
            if written := lines(output.text, self.steps):
                return written
        note("Decompose split the question by rule: the reader did not")
        by_clauses = plan_by_rule(example.question, self.steps)
        return by_clauses or on_each_name(example.question)[: self.steps]


def _told(question: str, output: Output, hits: Sequence[Hit]) -> list[Hit]:
    """Returns a passage of the answer to a question; none if it was copied from one."""
    if output.span:
        return []
    text = f"{question} {brief(output.text)}"
    return [Hit(Passage.of("answer", [text], [hit.chunk for hit in hits]), hits[0].score)]
