"""Splits a question into smaller questions, and searches for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leporello.combiners.chains.outputs import has_no_answer
from leporello.combiners.chains.plan_then_read import STEP, plan_by_rule, with_answers
from leporello.combiners.multi_hop import interleaved
from leporello.combiners.rewriting.wording import lines, on_each_name, question_only, shortened
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
    """Searches for each smaller question in the question, and has another combiner read all hits.

    Press et al. ("Measuring and Narrowing the Compositionality Gap", 2023: self-ask): each
    follow-up question is searched and answered before the next. A generative reader splits the
    question. Otherwise, or if it wrote no questions, a rule for English splits it by its clauses,
    or else makes a question for each of its names.

    The combiner reads the first hit of each question, then the second of each, and so on. A
    generated answer becomes a passage, which represents the hits that it was read from.

    Attributes:
        combiner: Combiner that reads the hits.
        steps: Maximum number of smaller questions.
        new: Maximum number of hits that each smaller question adds.
        answered: Whether each smaller question is answered from its hits, so that later ones can
            refer to the answer.
        split: Instruction for splitting the question.
        step: Instruction for answering a smaller question.
        role: Role of the reader that splits the question.
    """

    combiner: Combiner
    steps: Positive = 4
    new: Positive = 2
    answered: bool = False
    split: str = SPLIT
    step: str = STEP
    role: Role = ANSWER

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields a read to split, a search and perhaps a read per step; then the combiner's."""
        rankings = [[*hits]]
        results: list[Hit] = []
        answers: list[str] = []
        for step in (
            (yield from in_role(self.role, self._split(example)))
            if example.question.strip()
            else ()
        ):
            question = with_answers(step, answers)
            [ranking] = yield [Search(question, None if self.answered else self.new)]
            chunks = {hit.chunk for earlier in rankings for hit in earlier}
            rankings.append([hit for hit in ranking if hit.chunk not in chunks][: self.new])
            answers.append("")
            if self.answered and ranking:
                read = Read(tuple(hit.chunk for hit in ranking), question, self.step)
                [output] = yield [read]
                if not has_no_answer(output.text):
                    answers[-1] = shortened(output.text)
                    results += _as_passage(question, output, ranking)
        return (yield from run_combiner(self.combiner, example, [*results, *interleaved(rankings)]))

    def _split(self, example: Example) -> Asking[list[str]]:
        [is_generative] = yield [Generates()]
        if is_generative:
            [output] = yield [question_only(example, self.split)]
            if questions := lines(output.text, self.steps):
                return questions
        note("Decompose split the question by rule: the reader did not")
        by_clauses = plan_by_rule(example.question, self.steps)
        return by_clauses or on_each_name(example.question)[: self.steps]


def _as_passage(question: str, output: Output, hits: Sequence[Hit]) -> list[Hit]:
    """Returns a passage with the answer to a question; empty for a copied answer."""
    # A copied answer is part of its chunk, which the combiner reads anyway.
    if output.span:
        return []
    text = f"{question} {shortened(output.text)}"
    return [Hit(Passage.of("answer", [text], [hit.chunk for hit in hits]), hits[0].score)]
