"""A plan of smaller questions first, each searched and answered, then the question itself.

A model writes the plan; without one, a rule divides the question.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass

import regex

from leporello.combiners.chains.said import evidence, says_nothing
from leporello.combiners.multi_hop import by_turns
from leporello.combiners.stuff import asked
from leporello.core.protocols import Positive
from leporello.core.records import (
    Asking,
    Chunk,
    Combination,
    Example,
    Fit,
    Generates,
    Hit,
    Output,
    Read,
    Search,
)
from leporello.text.english.clauses import clause_spans
from leporello.text.english.questions import Wanted, named_choices, wanted

_STEP = re.compile(r"^\W{0,4}(?:step )?\d{1,2}\s?[.):]\W{0,4}(\S.*)$", re.I | re.M)
_ANSWER = re.compile(r"#(\d{1,2})(?!\d)")
# "the spouse of", "the actress that": what must be known before the rest can be answered.
_UNKNOWN = (
    r"\bthe(?:\s[\w'’-]+){1,4}?\s"
    r"(?:that|who|whose|whom|which|where|when|of|by|in|from|with|containing)\s"
)
_BARE = re.compile(r"\W*+(?:what|who|which)\s+(?:is|are|was|were)\s*", re.IGNORECASE)
_ENDS = " \t\r\n.?!"


def written_plan(text: str, steps: int) -> list[str]:
    """Returns the numbered lines of a text, at most so many; none where it has no such."""
    return [line.strip() for line in _STEP.findall(text)][:steps]


def plan_by_rule(question: str, steps: int) -> list[str]:
    """Returns what an English question leaves open inside itself, the innermost first.

    "Who is the spouse of the actress who plays Scarlett?" becomes "What is the actress who plays
    Scarlett?" and "Who is the spouse of #1?"; one that names two things to choose from, a question
    on each; several questions, these. Empty for a question of one clause, which needs no plan.

    Args:
        question: Question.
        steps: Number of steps at most.
    """
    if names := named_choices(question):
        stem = question[: question.find(names[0])].rstrip(" ,:")
        return [f"{stem} {name}?" for name in names][:steps]
    asked = [question[start:end] for start, end in clause_spans(question)]
    asked = [clause for clause in asked if clause.endswith("?")]
    if len(asked) > 1:
        return asked[:steps]
    bare = question.strip(_ENDS)
    starts = [
        found.start() for found in regex.finditer(_UNKNOWN, bare, regex.IGNORECASE, overlapped=True)
    ]
    # What only `what is` stands before is the question itself.
    inner = [start for start in reversed(starts) if not _BARE.fullmatch(bare, 0, start)]
    tails = [bare[start:] for start in inner][: steps - 1]
    plan: list[str] = []
    for number, tail in enumerate(tails):
        plan.append(f"What is {_known(tail, tails[:number])}?")
    return [*plan, f"{_known(bare, tails)}?"] if plan else []


def _known(text: str, tails: Sequence[str]) -> str:
    """Returns a text with the answer to the last step in place of what that asked for."""
    return text.removesuffix(tails[-1]) + f"#{len(tails)}" if tails else text


def filled(step: str, answers: Sequence[str]) -> str:
    """Returns a step with the answers that it refers to; of steps without one, nothing."""

    def answer(found: re.Match[str]) -> str:
        number = int(found[1])
        return answers[number - 1] if 0 < number <= len(answers) else found[0]

    return " ".join(_ANSWER.sub(answer, step).split())


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
        gathered = by_turns(found)
        last = self._read(example, results, gathered)
        [fits] = yield [Fit(last)]
        first = len(results) + bool(gathered)
        [output] = yield [asked(example, last.passages[: max(fits, first)], self.answer)]
        return str(output.text)

    def _planned(self, example: Example) -> Asking[list[str]]:
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
        return asked(example, (*results, *chunks))


def _result(question: str, output: Output, example: Example) -> str:
    """Returns a step's result as later reads see it: with its question, or copied as it stands."""
    said = evidence(output, example.document)
    return said if output.span else f"{question} {said}"
