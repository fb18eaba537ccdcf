"""Every hit read into fields, which are brought together; where they differ, confidence decides."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from leporello.combiners.chains.findings import Finding, finding, most_trusted
from leporello.combiners.chains.said import asks_shortly
from leporello.combiners.map_reduce import groups_that_fit
from leporello.combiners.stuff import chunks_of, read_of
from leporello.core.records import Combination, Example, Hit, Output, Read

_FIELDS = (
    " Write four lines:\nExtracted information: what the text says that matters for it\n"
    "Rationale: how the answer follows\nAnswer: the answer, or none\n"
    "Confidence: a number from 1 (a guess) to 5 (the text says so)"
)
MAP = "The text is a part of a longer one. Do the following as far as this part allows." + _FIELDS
COLLAPSE = (
    "These were found in several parts of a text. Bring them into one; where they contradict each"
    " other, follow the one with the higher confidence." + _FIELDS
)
REDUCE = (
    "These were found in several parts of a text, each with its confidence from 1 to 5. Answer from"
    " them; where they contradict each other, follow the one with the higher confidence."
)


@dataclass(frozen=True)
class StructuredMapReduce:
    """Reads every hit into fields, collapses them in groups that fit, and resolves conflicts.

    As Zhou et al. describe ("LLM×MapReduce", 2024): of each hit its information, a rationale, an
    answer and a confidence from 1 to 5 go on, by which the last read tells which answer to trust.
    A field that a reader does not write is empty; a confidence is then that of `Output.score`. What
    says nothing goes no further; if all is such, the first answer is returned, or with choices the
    question read alone.

    Where a reader writes no field at all, as those do that copy their answers, there is nothing to
    collapse: equal answers sum up their confidence, and the greatest sum wins. For summaries, and
    with choices, the sentences that answers were copied from are read together instead.

    Attributes:
        map: Instruction under which hits are read, in front of the task's.
        collapse: Instruction under which groups are brought together, likewise.
        reduce: Instruction of the last read, likewise.
    """

    map: str = MAP
    collapse: str = COLLAPSE
    reduce: str = REDUCE

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields a round for the hits, one a level of collapsing, each of fewer, and the last.

        Without hits the question is read alone.
        """
        reads = [self._read(example, self.map, (chunk,)) for chunk in chunks_of(hits)]
        outputs: list[Output] = (yield reads) if reads else []
        findings = [each for one in outputs if (each := finding(one, example.document))]
        if outputs and not findings and not example.choices:
            return outputs[0].text
        if not findings:
            [output] = yield [read_of(example, [])]
            return str(output.text)
        if asks_shortly(example) and not any(each.written for each in findings):
            return most_trusted(findings)
        texts = yield from self._collapsed(example, findings)
        [output] = yield [
            dataclasses.replace(self._read(example, self.reduce, texts), choices=example.choices)
        ]
        last = finding(output, example.document)
        return last.answer if last.written and last.answer else str(output.text)

    def _collapsed(
        self, example: Example, findings: Sequence[Finding]
    ) -> Generator[Sequence[Any], list[Any], tuple[str, ...]]:
        """Returns as few texts as fit one window."""
        texts = tuple(map(str, findings))
        read = self._read(example, self.collapse, ())
        while len(groups := (yield from groups_that_fit(read, texts))) > 1:
            outputs = yield [dataclasses.replace(read, passages=group) for group in groups]
            found = (finding(output, example.document) for output in outputs)
            texts = tuple(str(each) for each in found if each) or groups[0]
        return texts

    def _read(self, example: Example, instruction: str, passages: tuple[Any, ...]) -> Read:
        return dataclasses.replace(
            read_of(example, []),
            passages=passages,
            instruction=f"{instruction} {example.instruction}".strip(),
            choices=(),
        )
