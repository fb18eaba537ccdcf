"""A walk down a tree of passages, on which the reader says where to go."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.combiners.chains.said import confidence
from leporello.core.calls.contracts import run_combiner
from leporello.core.passages import Passage, identity, reading_text
from leporello.core.protocols import Combiner, Positive
from leporello.core.records import Asking, Chunk, Combination, Example, Generates, Hit, Output, Read

ASK = "Which of these summaries most likely leads to the answer? Say its number alone."


@dataclass(frozen=True)
class Walk:
    """Walks from the roots of a tree to chunks, then has another combiner read those it came to.

    MemWalker (Chen et al., "Walking Down the Memory Maze", 2023): the reader sees the summaries
    below where it stands, and chooses; from where nothing is left it goes back. A reader that
    writes says a number; with any other, each summary is read with the question, and the surest
    answer leads. Of hits that make no tree, each is a root.

    Let the retriever be `All`, and the enricher one that makes a tree. Of `leaves` that are not
    reached in so many steps, the walk's last stand is read.

    Attributes:
        combiner: Combiner that reads the chunks.
        steps: Number of choices at most.
        leaves: Number of chunks that it goes to.
        width: Number of summaries that are looked at in one choice, the first ones.
        ask: Instruction under which a reader that writes chooses.
    """

    combiner: Combiner
    steps: Positive = 12
    leaves: Positive = 4
    width: Positive = 24
    ask: str = ASK

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields a round of reads a step, then the combiner's."""
        [writes] = yield [Generates()]
        given = [hit.chunk for hit in hits]
        below = {id(one) for chunk in given if isinstance(chunk, Passage) for one in chunk.sources}
        waiting = yield from self._ranked(example, [c for c in given if id(c) not in below], writes)
        reached: dict[object, Chunk] = {}
        for _ in range(self.steps):
            while waiting and not isinstance(waiting[0], Passage) and len(reached) < self.leaves:
                reached.setdefault(identity(waiting[0]), waiting[0])
                waiting = waiting[1:]
            if not waiting or len(reached) >= self.leaves:
                break
            node, *rest = waiting
            children = list(node.sources) if isinstance(node, Passage) else []
            waiting = [*(yield from self._ranked(example, children, writes)), *rest]
        if not reached and waiting:
            reached[identity(waiting[0])] = waiting[0]
        found = [Hit(chunk, -float(rank)) for rank, chunk in enumerate(reached.values())]
        return (yield from run_combiner(self.combiner, example, found))

    def _ranked(
        self, example: Example, nodes: Sequence[Chunk], writes: bool
    ) -> Asking[list[Chunk]]:
        """Returns the nodes, the one to go to first; those that were not looked at last."""
        seen, rest = nodes[: self.width], nodes[self.width :]
        if len(seen) < 2 or not (example.question or writes):  # noqa: PLR2004 -- a choice of one
            return [*nodes]
        if writes:
            texts = tuple(f"[{n}] {reading_text(node)}" for n, node in enumerate(seen, 1))
            [output] = yield [Read(texts, example.question, self.ask, title=example.document.title)]
            chosen = _number(output.text, len(seen))
            return [seen[chosen], *seen[:chosen], *seen[chosen + 1 :], *rest]
        outputs: list[Output] = yield [Read((node,), example.question) for node in seen]
        sure = [confidence(output.score) if output.text.strip() else 0.0 for output in outputs]
        order = sorted(range(len(seen)), key=lambda n: -sure[n])
        return [*(seen[n] for n in order), *rest]


def _number(text: str, most: int) -> int:
    """Returns the index that a reader named, 0 if it named none."""
    numbers = (int(found) for found in re.findall(r"\d{1,4}", text))
    return next((n - 1 for n in numbers if 1 <= n <= most), 0)
