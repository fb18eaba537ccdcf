"""A plan of smaller questions first, each searched and answered, then the question itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

from leporello.combiners.chains.plans import filled, plan_by_rule, written_plan
from leporello.combiners.chains.said import evidence, says_nothing
from leporello.combiners.stuff import read_of
from leporello.core.protocols import Positive
from leporello.core.records import (
    Chunk,
    Combination,
    Example,
    Fit,
    Generates,
    Hit,
    Output,
    Read,
    Request,
    Search,
)
from leporello.text.english.summary_requests import Wanted, wanted

PLAN = (
    "Do not answer yet. Which smaller questions have to be answered first, one after the other? Put"
    " one in a line with its number: 1. 2. 3. In later ones, #1 stands for the answer to the first."
)
STEP = "Answer with a name or a few words. If the text does not tell, write only: none"


@dataclass(frozen=True)
class PlanThenRead:
    """Plans smaller questions, searches and answers each, and answers from what came of them.

    As Sun et al. describe ("PEARL", 2023), with questions for actions. A reader that generates
    writes the plan; of one that does not, or that wrote no numbered lines, it is made by rule from
    the clauses of the question, in English; none for a summary. Without a plan, the hits are read.
    The answer to a step that says nothing is left out of the last read; what it found is not. Each
    search finds as many hits as the retriever gives, which are few if its `k` is.

    Attributes:
        steps: Number of steps at most.
        plan: Instruction for the plan.
        step: Instruction for the steps, which see the results of those before.
        answer: Instruction for the last read, if not empty; else the task's.
    """

    steps: Positive = 4
    plan: str = PLAN
    step: str = STEP
    answer: str = ""

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields a read for the plan, a search and a read a step, and the last read.

        That has the results, then the first hit of the question and of each step, the second of
        each, and so on, as many as fit. Without hits the question is read alone.
        """
        answers: list[str] = []
        results: list[str] = []
        found: list[Sequence[Hit]] = [hits]
        for step in (yield from self._planned(example)) if hits and example.question else ():
            question = filled(step, answers)
            [new] = yield [Search(question)]
            found.append(new)
            read = self._read(example, results, found[-1])
            [output] = yield [
                dataclasses.replace(read, question=question, instruction=self.step, choices=())
            ]
            answers.append("" if says_nothing(output.text) else output.text.strip())
            results += [_result(question, output, example)] if answers[-1] else []
        by_turns = [hit for hit in chain.from_iterable(zip_longest(*found)) if hit is not None]
        last = self._read(example, results, by_turns)
        [fits] = yield [Fit(last)]
        first = len(results) + bool(by_turns)
        passages = last.passages[: max(fits, first)]
        instruction = self.answer or example.instruction
        [output] = yield [dataclasses.replace(last, passages=passages, instruction=instruction)]
        return str(output.text)

    def _planned(self, example: Example) -> Generator[Sequence[Request], list[Any], list[str]]:
        plan: list[str] = []
        [writes] = yield [Generates()]
        if writes:
            ask = Read((), example.question, self.plan, title=example.document.title)
            [output] = yield [ask]
            plan = written_plan(output.text, self.steps)
        short = wanted(example.question, example.instruction) is Wanted.SHORT
        return plan or (plan_by_rule(example.question, self.steps) if short else [])

    def _read(self, example: Example, results: Sequence[str], hits: Sequence[Hit]) -> Read:
        chunks: tuple[Chunk | str, ...] = tuple(dict.fromkeys(hit.chunk for hit in hits))
        return dataclasses.replace(read_of(example, []), passages=(*results, *chunks))


def _result(question: str, output: Output, example: Example) -> str:
    """Returns a step's result as later reads see it: with its question, or copied as it stands."""
    said = evidence(output, example.document)
    return said if output.span else f"{question} {said}"
