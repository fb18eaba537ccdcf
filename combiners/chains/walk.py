"""Walks down a tree of passages; the reader chooses the branches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.combiners.chains.outputs import confidence
from leporello.core.calls.contracts import run_combiner
from leporello.core.passages import Passage, identity, reading_text
from leporello.core.protocols import Combiner, Positive
from leporello.core.records import Asking, Chunk, Combination, Example, Generates, Hit, Output, Read

_WIDTH = 24  # summaries in one choice, which must fit one input window
ASK = "Which of these summaries most likely leads to the answer? Say its number alone."


@dataclass(frozen=True)
class Walk:
    """Walks from the roots of a tree to chunks, then has another combiner read these chunks.

    MemWalker (Chen et al., "Walking Down the Memory Maze", 2023): the reader chooses among the
    summaries below the current node, and the walk goes back where no summaries are left. A
    generative reader chooses by a number. With other readers, each summary is read with the
    question, and the most confident answer wins. Hits that are not part of a tree are roots.

    Use the retriever `All`, and an enricher that makes a tree. If the walk reaches no chunk in
    `steps` choices, the combiner reads the current node.

    Attributes:
        combiner: Combiner that reads the chunks.
        steps: Maximum number of choices.
        leaves: Number of chunks to reach.
        ask: Instruction for the choice of a generative reader.
    """

    combiner: Combiner
    steps: Positive = 12
    leaves: Positive = 4
    ask: str = ASK

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields a round of reads per step, then the combiner's rounds."""
        [is_generative] = yield [Generates()]
        nodes = [hit.chunk for hit in hits]
        parents = (node for node in nodes if isinstance(node, Passage))
        below = {id(source) for parent in parents for source in parent.sources}
        roots = [node for node in nodes if id(node) not in below]
        waiting = yield from self._ranked(example, roots, is_generative)
        reached: dict[object, Chunk] = {}
        for _ in range(self.steps):
            while waiting and not isinstance(waiting[0], Passage) and len(reached) < self.leaves:
                reached.setdefault(identity(waiting[0]), waiting[0])
                waiting = waiting[1:]
            if not waiting or len(reached) >= self.leaves:
                break
            node, *later = waiting
            children = list(node.sources) if isinstance(node, Passage) else []
            waiting = [*(yield from self._ranked(example, children, is_generative)), *later]
        if not reached and waiting:
            reached[identity(waiting[0])] = waiting[0]
        chunks = [Hit(chunk, -float(rank)) for rank, chunk in enumerate(reached.values())]
        return (yield from run_combiner(self.combiner, example, chunks))

    def _ranked(
        self, example: Example, nodes: Sequence[Chunk], is_generative: bool
    ) -> Asking[list[Chunk]]:
        """Returns the nodes, the best first; nodes beyond the first 24 come last."""
        first, further = nodes[:_WIDTH], nodes[_WIDTH:]
        if len(first) < 2 or not (example.question or is_generative):  # noqa: PLR2004 -- no choice
            return [*nodes]
        if is_generative:
            texts = tuple(f"[{n}] {reading_text(node)}" for n, node in enumerate(first, 1))
            [output] = yield [Read(texts, example.question, self.ask, title=example.document.title)]
            chosen = _number(output.text, len(first))
            return [first[chosen], *first[:chosen], *first[chosen + 1 :], *further]
        outputs: list[Output] = yield [Read((node,), example.question) for node in first]
        scores = [confidence(output.score) if output.text.strip() else 0.0 for output in outputs]
        order = sorted(range(len(first)), key=lambda n: -scores[n])
        return [*(first[n] for n in order), *further]


def _number(text: str, most: int) -> int:
    """Returns the index of the first valid number in a text; 0 without one."""
    numbers = (int(digits) for digits in re.findall(r"\d{1,4}", text))
    return next((n - 1 for n in numbers if 1 <= n <= most), 0)
