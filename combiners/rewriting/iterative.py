"""Reading and searching by turns."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import regex

from leporello.combiners.chains.said import evidence, says_nothing
from leporello.combiners.multi_hop import by_turns, names, without
from leporello.combiners.rewriting.wording import brief, unread
from leporello.core.calls.contracts import in_role, run_combiner
from leporello.core.notes import note
from leporello.core.protocols import ANSWER, Combiner, Positive, Role
from leporello.core.records import Asking, Chunk, Combination, Example, Fit, Generates, Hit, Search
from leporello.text.sentences import sentence_spans

THINK = (
    "Think step by step. Write only the next step, in one sentence: what the text tells, or what"
    " has to be found out next. If all is told, write: So the answer is"
)
_ENOUGH = regex.compile(r"\banswer is\b|\benough\b", regex.IGNORECASE)


@dataclass(frozen=True)
class Iterative:
    """Searches with each step of the reader's reasoning, and has another combiner read everything.

    IRCoT (Trivedi et al., "Interleaving Retrieval with Chain-of-Thought Reasoning", 2023): the
    reader sees what was found and its steps so far, and writes a sentence, by which more is found.
    It ends when a step says that the answer is known, says nothing new, or finds nothing new.
    Where the reader does not write, its answer makes the query, of one that it copied the sentence:
    the words of the question that it lacks, and its names, as in `MultiHop`.

    What is found is read in turns: the first hit of each round, the second of each, and so on.

    Attributes:
        combiner: Combiner that reads what was found.
        rounds: Number of steps at most.
        new: Number of hits that a step adds at most.
        think: Instruction under which a step is written.
        role: Role of the reader that words what is searched for.
    """

    combiner: Combiner
    rounds: Positive = 3
    new: Positive = 2
    think: str = THINK
    role: Role = ANSWER

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields a read and a search a step; then the combiner's rounds."""
        found = [[*hits]]
        steps: list[str] = []
        while example.question.strip() and len(steps) < self.rounds:
            step = yield from in_role(self.role, self._step(example, steps, by_turns(found)))
            if not step or step in steps:
                break
            steps.append(step)
            [more] = yield [Search(step, self.new)]
            if not more:
                break
            found.append([*more])
        return (yield from run_combiner(self.combiner, example, by_turns(found)))

    def _step(self, example: Example, steps: Sequence[str], hits: Sequence[Hit]) -> Asking[str]:
        """Returns what is searched for next; nothing if enough was found."""
        [writes] = yield [Generates()]
        if not writes:
            note("Iterative searched with the reader's answers: the reader writes no steps")
        if not writes and not hits:
            return ""
        chunks: tuple[Chunk | str, ...] = tuple(hit.chunk for hit in hits)
        passages = (*steps, *chunks) if writes else chunks
        ask = dataclasses.replace(unread(example, self.think if writes else ""), passages=passages)
        [fits] = yield [Fit(ask)]
        least = len(passages) - max(len(chunks) - 1, 0)
        [output] = yield [dataclasses.replace(ask, passages=passages[: max(fits, least)])]
        if says_nothing(output.text) or (writes and _ENOUGH.search(output.text)):
            return ""
        said = evidence(output, example.document)
        return _first_sentence(said) if writes else _after(example.question, said)


def _after(question: str, said: str) -> str:
    """Returns what to search for once this is known; all of it where it has no names."""
    # On MuSiQue, the whole question with the sentence found no more than one search did.
    return brief(f"{without(question, said)} {names(said, question) or said}")


def _first_sentence(text: str) -> str:
    start, end = next(iter(sentence_spans(text)), (0, 0))
    return brief(text[start:end])
