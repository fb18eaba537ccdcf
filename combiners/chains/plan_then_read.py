"""Plans smaller questions, searches and answers each, and then answers the question itself."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.combiners.chains.outputs import evidence, has_no_answer
from leporello.combiners.multi_hop import interleaved
from leporello.combiners.stuff import question_only, read_with
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
from leporello.text.english.questions import Nested, Wanted, named_choices, wanted
from leporello.text.english.terms import clause_spans

_STEP = re.compile(r"^\W{0,4}(?:step )?\d{1,2}\s?[.):]\W{0,4}(\S.*)$", re.I | re.M)
_ANSWER = re.compile(r"#(\d{1,2})(?!\d)")


def plan_by_rule(question: str, steps: int) -> list[str]:
    """Returns the questions nested in an English question, the innermost first.

    "Who is the spouse of the actress who plays Scarlett?" becomes "Which actress plays Scarlett?"
    and "Who is the spouse of #1?". A choice between two names becomes two questions, and several
    questions are split. A question that contains no other needs no plan: empty.
    """
    if names := named_choices(question):
        stem = question[: question.find(names[0])].rstrip(" ,:")
        return [f"{stem} {name}?" for name in names][:steps]
    clauses = [question[start:end] for start, end in clause_spans(question)]
    questions = [clause for clause in clauses if clause.endswith("?")]
    if len(questions) > 1:
        return questions[:steps]
    plan: list[str] = []
    while len(plan) < steps - 1 and (nested := Nested.of(question)):
        plan.append(nested.inner)
        question = nested.outer.replace("{}", f"#{len(plan)}")
    return [*plan, question] if plan else []


def with_answers(step: str, answers: Sequence[str]) -> str:
    """Returns a step whose references (`#1`) are replaced by answers, which may be empty."""

    def answer(reference: re.Match[str]) -> str:
        number = int(reference[1])
        return answers[number - 1] if 0 < number <= len(answers) else reference[0]

    return " ".join(_ANSWER.sub(answer, step).split())


PLAN = (
    "Do not answer yet. Which smaller questions have to be answered first, one after the other? Put"
    " one in a line with its number: 1. 2. 3. In later ones, #1 stands for the answer to the first."
)
STEP = "Answer with a name or a few words. If the text does not tell, write only: none"


@dataclass(frozen=True)
class PlanThenRead:
    """Plans smaller questions, searches and answers each, and answers from their results.

    Sun et al. ("PEARL", 2023), with questions instead of actions. A generative reader writes the
    plan; otherwise, or without numbered lines, a rule for English makes it from the clauses of the
    question, but not for a summary. Without a plan, only the hits are read. The last read contains
    no empty answers of steps, but the hits of these steps. Each search returns the retriever's `k`
    hits.

    Attributes:
        steps: Maximum number of steps.
        plan: Instruction for the plan.
        step: Instruction for the steps, which read the results of earlier steps.
        answer: Instruction for the last read; if empty, the task's.
    """

    steps: Positive = 4
    plan: str = PLAN
    step: str = STEP
    answer: str = ""

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields a read for the plan, a search and a read for each step, and the last read."""
        answers: list[str] = []
        results: list[str] = []
        rankings: list[Sequence[Hit]] = [hits]
        for step in (yield from self._steps(example)) if hits and example.question else ():
            question = with_answers(step, answers)
            [ranking] = yield [Search(question)]
            rankings.append(ranking)
            read = self._read(example, results, ranking)
            [output] = yield [
                dataclasses.replace(read, question=question, instruction=self.step, choices=())
            ]
            answers.append("" if has_no_answer(output.text) else output.text.strip())
            results += [_result(question, output, example)] if answers[-1] else []
        gathered = interleaved(rankings)
        last = self._read(example, results, gathered)
        [fits] = yield [Fit(last)]
        # The results of all steps are the purpose of the plan, so hits give way to them.
        least = len(results) + bool(gathered)
        [output] = yield [read_with(example, last.passages[: max(fits, least)], self.answer)]
        return str(output.text)

    def _steps(self, example: Example) -> Asking[list[str]]:
        plan: list[str] = []
        [is_generative] = yield [Generates()]
        if is_generative:
            [output] = yield [question_only(example, self.plan)]
            plan = [line.strip() for line in _STEP.findall(output.text)][: self.steps]
        short = wanted(example.question, example.instruction) is Wanted.SHORT
        return plan or (plan_by_rule(example.question, self.steps) if short else [])

    def _read(self, example: Example, results: Sequence[str], hits: Sequence[Hit]) -> Read:
        chunks: tuple[Chunk | str, ...] = tuple(dict.fromkeys(hit.chunk for hit in hits))
        return read_with(example, (*results, *chunks))


def _result(question: str, output: Output, example: Example) -> str:
    """Returns a step's result for later reads: a copied sentence, or the question and answer."""
    text = evidence(output, example.document)
    return text if output.span else f"{question} {text}"
