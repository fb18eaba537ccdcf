"""Reads hits one after the other, or in a tree: each read has the answers of earlier ones."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.combiners.stuff import arranged, read_of, read_with
from leporello.core.calls.contracts import in_role
from leporello.core.protocols import ANSWER, Count, Role
from leporello.core.records import Asking, Combination, Example, Fit, Hit, Read


@dataclass(frozen=True)
class MapReduce:
    """Reads every hit, then the answers in groups that fit the input window, until one is left.

    Answers are read together in document order.

    Attributes:
        map_instruction: Instruction for reading hits; if empty, the task's.
        reduce_instruction: Instruction for reading answers; if empty, the task's.
        target_words: Number of words to stop at: answers that have at most this number together are
            joined by line breaks. A single longer answer is read again while it gets shorter. 0
            stops with one answer of any length. With choices, answers are not joined.
        map_role: Role of the reader of hits; the role of answers reads the answers.
    """

    map_instruction: str = ""
    reduce_instruction: str = ""
    target_words: Count = 0
    map_role: Role = ANSWER

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one round for the hits, then one round for each level of the tree.

        The rounds end for every reader: each has fewer answers than the one before, or one answer
        with fewer words.
        """
        texts = (yield from in_role(self.map_role, self._map(example, hits))) if hits else []
        is_undecided = bool(example.choices) and len(hits) > 1
        if not hits or (is_undecided and not texts):
            [output] = yield [read_of(example, [])]
            return str(output.text)
        reduce = read_with(example, (), self.reduce_instruction)
        target, before = 0 if example.choices else self.target_words, math.inf
        while _must_reduce(texts, target, before) or (texts and is_undecided):
            # A small model may lengthen its input, so a lone text must shrink in each round.
            before = _words(texts) if len(texts) == 1 else math.inf
            groups = yield from groups_that_fit(reduce, texts)
            is_undecided = is_undecided and len(groups) > 1
            # As in the reads of hits: a choice from some of the answers would hide the others.
            choices = () if len(groups) > 1 else example.choices
            outputs = yield [
                dataclasses.replace(reduce, passages=group, choices=choices) for group in groups
            ]
            texts = [output.text for output in outputs]
        return "\n".join(texts)

    def _map(self, example: Example, hits: Sequence[Hit]) -> Asking[list[str]]:
        # The choice is made once, from all answers together.
        choices = () if len(hits) > 1 else example.choices
        reads = [
            read_with(example, [hit.chunk], self.map_instruction)
            for hit in arranged(hits, "document")
        ]
        outputs = yield [dataclasses.replace(read, choices=choices) for read in reads]
        return [output.text for output in outputs if output.text.strip()]


def _must_reduce(texts: Sequence[str], target: int, before: float) -> bool:
    """Returns whether answers, or the only one, which was made of `before` words, are too long."""
    if not target:
        return len(texts) > 1
    return _words(texts) > target and (len(texts) > 1 or _words(texts) < before)


def _words(texts: Sequence[str]) -> int:
    return sum(len(text.split()) for text in texts)


def groups_that_fit(read: Read, texts: Sequence[str]) -> Asking[list[tuple[str, ...]]]:
    """Splits texts into groups of two or more that fit the input window."""
    groups: list[tuple[str, ...]] = []
    remaining = tuple(texts)
    while remaining:
        [fits] = yield [Fit(dataclasses.replace(read, passages=remaining))]
        # Two even if only one fits: with groups of one the number of texts would never fall.
        size = max(int(fits), 2)
        groups.append(remaining[:size])
        remaining = remaining[size:]
    return groups


@dataclass(frozen=True)
class Refine:
    """Reads the first hit, then each further one in document order, after the answer so far.

    Attributes:
        refine_instruction: Instruction from the second hit on; if empty, the task's.
    """

    refine_instruction: str = ""

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one round per hit, with one read; choices are scored in the last round."""
        if not hits:
            [output] = yield [read_of(example, [])]
            return str(output.text)
        answer = ""
        queue = arranged(hits, "document")
        for position, hit in enumerate(queue, 1):
            read = read_of(example, [hit])
            if answer:
                passages = (f"Answer so far: {answer}", hit.chunk)
                read = read_with(example, passages, self.refine_instruction)
            # Choices only at the end: the reader could not change an early choice.
            choices = example.choices if position == len(queue) else ()
            [output] = yield [dataclasses.replace(read, choices=choices)]
            # A blank output, from a hit without news, must not erase the answer so far.
            answer = output.text.strip() or answer
        return answer
