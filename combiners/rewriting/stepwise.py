"""Searches with one query after the other: smaller questions, or steps of reasoning."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import regex

from leporello.combiners.chains.outputs import evidence, has_no_answer
from leporello.combiners.chains.plan_then_read import plan_by_rule, with_answers
from leporello.combiners.multi_hop import interleaved, missing_terms, names
from leporello.combiners.rewriting.fused_queries import (
    SearchesAgain,
    on_each_name,
    shortened,
    written_lines,
)
from leporello.combiners.stuff import question_only
from leporello.core.notes import note
from leporello.core.protocols import Positive
from leporello.core.records import Asking, Chunk, Example, Fit, Generates, Hit, Search
from leporello.text.sentences import sentence_spans

SPLIT = (
    "Do not answer the question. Which smaller questions have to be answered for it? Put each in a"
    " line of its own, the first one first. #1 stands for the answer to the first."
)


@dataclass(frozen=True)
class Decompose(SearchesAgain):
    """Searches for each smaller question in the question, and has another combiner read all hits.

    Press et al. ("Measuring and Narrowing the Compositionality Gap", 2023: self-ask), without
    answers to the smaller questions, which `PlanThenRead` adds. A generative reader splits the
    question. Otherwise, or if it wrote no questions, a rule for English splits it by its clauses,
    or else makes a question for each of its names.

    The combiner reads the first hit of each question, then the second of each, and so on.

    Attributes:
        steps: Maximum number of smaller questions.
        new: Maximum number of hits that each smaller question adds.
        split: Instruction for splitting the question.
    """

    steps: Positive = 4
    new: Positive = 2
    split: str = SPLIT

    def _hits(self, example: Example, hits: Sequence[Hit]) -> Asking[Sequence[Hit]]:
        questions = yield from written_lines(example, self.split, self.steps)
        if not questions:
            note("Decompose split the question by rule: the reader did not")
            by_clauses = plan_by_rule(example.question, self.steps)
            questions = by_clauses or on_each_name(example.question)[: self.steps]
        rankings = [hits]
        for number, step in enumerate(questions):
            # References such as `#1` are words that no passage has.
            rankings += yield [Search(with_answers(step, [""] * number), self.new)]
        return interleaved(rankings)


THINK = (
    "Think step by step. Write only the next step, in one sentence: what the text tells, or what"
    " has to be found out next. If all is told, write: So the answer is"
)
_ENOUGH = regex.compile(r"\banswer is\b|\benough\b", regex.IGNORECASE)


@dataclass(frozen=True)
class Iterative(SearchesAgain):
    """Searches with each step of the reader's reasoning, and has another combiner read all hits.

    IRCoT (Trivedi et al., "Interleaving Retrieval with Chain-of-Thought Reasoning", 2023): the
    reader reads the hits and its earlier steps, and writes a sentence, which becomes the query. It
    ends when a step states the answer, repeats an earlier one, or finds nothing new. With a reader
    that does not generate text, the query has the words of the question that the answer lacks, and
    the names of the answer, as in `MultiHop`; for a copied answer, its sentence is used.

    The combiner reads the first hit of each round, then the second of each, and so on.

    Attributes:
        rounds: Maximum number of steps.
        new: Maximum number of hits that a step adds.
        think: Instruction for writing a step.
    """

    rounds: Positive = 3
    new: Positive = 2
    think: str = THINK

    def _hits(self, example: Example, hits: Sequence[Hit]) -> Asking[Sequence[Hit]]:
        rankings, steps = [hits], list[str]()
        for _ in range(self.rounds):
            step = yield from self._step(example, steps, interleaved(rankings))
            if not step or step in steps:
                break
            steps.append(step)
            [ranking] = yield [Search(step, self.new)]
            if not ranking:
                break
            rankings.append(ranking)
        return interleaved(rankings)

    def _step(self, example: Example, steps: Sequence[str], hits: Sequence[Hit]) -> Asking[str]:
        """Returns the next query; empty if the reader has enough information."""
        [is_generative] = yield [Generates()]
        if not is_generative:
            note("Iterative searched with the reader's answers: the reader writes no steps")
        if not is_generative and not hits:
            return ""
        chunks: tuple[Chunk | str, ...] = tuple(hit.chunk for hit in hits)
        passages = (*steps, *chunks) if is_generative else chunks
        ask = question_only(example, self.think if is_generative else "")
        ask = dataclasses.replace(ask, passages=passages)
        [fits] = yield [Fit(ask)]
        # All earlier steps and one hit: a reader that forgets its steps would repeat them.
        least = len(passages) - max(len(chunks) - 1, 0)
        [output] = yield [dataclasses.replace(ask, passages=passages[: max(fits, least)])]
        if has_no_answer(output.text) or (is_generative and _ENOUGH.search(output.text)):
            return ""
        text = evidence(output, example.document)
        if is_generative:
            start, end = next(iter(sentence_spans(text)), (0, 0))
            return shortened(text[start:end])
        question = example.question
        # On MuSiQue, the complete question with the sentence found no more than one search.
        return shortened(f"{missing_terms(question, text)} {names(text, question) or text}")
