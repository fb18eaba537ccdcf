"""Every hit read on its own, then the answers read together, in as many rounds as it takes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.combiners.stuff import Order, arranged, asked, read_of
from leporello.core.calls.contracts import in_role
from leporello.core.protocols import ANSWER, Count, Role
from leporello.core.records import Asking, Combination, Example, Fit, Hit, Read


@dataclass(frozen=True)
class MapReduce:
    """Reads every hit, then reads the answers in groups that fit the window, until one is left.

    Attributes:
        order: Order in which answers are read together.
        map_instruction: Instruction that replaces the task's while hits are read, if not empty.
        reduce_instruction: Instruction that replaces it while answers are read, if not empty.
        ask: Whether the question is asked when hits are read; without it they are summarised.
        target_words: Number of words at or below which it ends: as soon as the answers left, joined
            by line breaks, have no more; the last one is read again while that makes it shorter. 0
            ends with one answer, however long. An answer that is one of the choices is not joined.
        map_role: Role of the reader of hits; answers are read by the one of answers.
    """

    order: Order = "document"
    map_instruction: str = ""
    reduce_instruction: str = ""
    ask: bool = True
    target_words: Count = 0
    map_role: Role = ANSWER

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one round for the hits, then one round a level of the tree.

        Without hits the question is read alone; and where every answer is blank, if it has choices.
        Rounds come to an end whatever a reader says: each has fewer answers than the one before,
        or, of one answer, fewer words.
        """
        texts = (yield from in_role(self.map_role, self._map(example, hits))) if hits else []
        undecided = bool(example.choices) and len(hits) > 1
        if not hits or (undecided and not texts):
            [output] = yield [read_of(example, [])]
            return str(output.text)
        reduce = asked(example, (), self.reduce_instruction)
        target, before = 0 if example.choices else self.target_words, math.inf
        while _goes_on(texts, target, before) or (texts and undecided):
            before = _words(texts) if len(texts) == 1 else math.inf
            groups = yield from groups_that_fit(reduce, texts)
            undecided = undecided and len(groups) > 1
            choices = () if len(groups) > 1 else example.choices
            outputs = yield [
                dataclasses.replace(reduce, passages=group, choices=choices) for group in groups
            ]
            texts = [output.text for output in outputs]
        return "\n".join(texts)

    def _map(self, example: Example, hits: Sequence[Hit]) -> Asking[list[str]]:
        instruction = self.map_instruction or example.instruction
        question = example.question if self.ask else ""
        several = len(hits) > 1
        reads = [
            dataclasses.replace(
                read_of(example, [hit]),
                instruction=instruction,
                question=question,
                # Choices are chosen from once, when everything has been brought together.
                choices=() if several else example.choices,
            )
            for hit in arranged(hits, self.order)
        ]
        outputs = yield reads
        return [output.text for output in outputs if output.text.strip()]


def _goes_on(texts: Sequence[str], target: int, before: float) -> bool:
    """Returns whether answers are to be combined further, or one shortened to the target.

    `before` is the number of words that the only answer was made from.
    """
    if not target:
        return len(texts) > 1
    return _words(texts) > target and (len(texts) > 1 or _words(texts) < before)


def _words(texts: Sequence[str]) -> int:
    return sum(len(text.split()) for text in texts)


def groups_that_fit(read: Read, texts: Sequence[str]) -> Asking[list[tuple[str, ...]]]:
    """Cuts texts into runs that fit the window, at least two a run: rounds come to an end."""
    groups: list[tuple[str, ...]] = []
    rest = tuple(texts)
    while rest:
        [fits] = yield [Fit(dataclasses.replace(read, passages=rest))]
        taken = max(int(fits), 2)
        groups.append(rest[:taken])
        rest = rest[taken:]
    return groups
