"""Chains of notes: notes on each hit, alone or in turn, and an answer from the notes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import regex

from leporello.combiners.chains.outputs import evidence, has_no_answer
from leporello.combiners.stuff import chunks_of, question_only, read_with
from leporello.core.protocols import ANSWER, Count, Role
from leporello.core.records import Chunk, Combination, Example, Fit, Hit, Output, Read

WORK = (
    "The text may begin with notes on what was read before it. Write notes that keep these and add"
    " what the rest of the text says. Someone who reads the notes alone has to do this:"
)


@dataclass(frozen=True)
class ChainOfAgents:
    """Reads hits in document order, each with notes on earlier hits; then answers from the notes.

    Zhang et al. ("Chain of Agents", NeurIPS 2024): workers pass on a communication unit, and a
    manager that reads only the last unit answers, also without a question. A worker without an
    answer passes the unit on unchanged; if no worker has an answer, the manager reads only the
    question.

    An extractive reader writes no notes: its unit consists of the sentences that contain the
    answers so far, or of the sentences of a summary. This loses information with every worker.

    Attributes:
        hits: Maximum number of hits per worker; 0 fills the input window with the unit and hits, or
            reads all hits with a reader without an input window.
        worker: Instruction of the workers, before the task's.
        manager: Instruction of the manager; if empty, the task's.
        worker_role: Role of the reader of the workers; the manager has the role of answers.
    """

    hits: Count = 0
    worker: str = WORK
    manager: str = ""
    worker_role: Role = ANSWER

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields rounds of one read each: the workers', then the manager's."""
        unit, remaining = "", tuple(chunks_of(hits))
        while remaining:
            chunks = remaining[: self.hits or None]
            [fits] = yield [Fit(self._work(example, unit, chunks))]
            # The notes count as a passage. At least one hit, so that the chain ends.
            chunks = chunks[: max(fits - bool(unit), 1)]
            [output] = yield [self._work(example, unit, chunks)]
            unit = _next_unit(unit, output, example)
            remaining = remaining[len(chunks) :]
        [output] = yield [read_with(example, filter(None, [unit]), self.manager)]
        return str(output.text)

    def _work(self, example: Example, unit: str, chunks: tuple[Chunk, ...]) -> Read:
        instruction = f"{self.worker} {example.instruction}".strip()
        passages: tuple[Chunk | str, ...] = (unit,) if unit else ()
        return Read(
            (*passages, *chunks),
            example.question,
            instruction,
            title=example.document.title,
            role=self.worker_role,
        )


def _next_unit(unit: str, output: Output, example: Example) -> str:
    """Returns the next unit: the worker's text, or all sentences copied so far."""
    text = evidence(output, example.document)
    if has_no_answer(output.text) or (output.span and text in unit):
        return unit
    # A generative worker repeats the earlier notes; an extractive one copies only its own sentence.
    return f"{unit}\n{text}".strip() if output.span else text


NOTE = (
    "Note in one or two sentences what the text says that helps to answer the question. If it says"
    " nothing that helps, write only: irrelevant"
)
_IRRELEVANT = regex.compile(
    r"\W*(?:irrelevant\b|(?:the|this) (?:text|passage) is (?:irrelevant|not relevant)\b)",
    regex.IGNORECASE,
)


@dataclass(frozen=True)
class ChainOfNotes:
    """Has a note written on each hit, drops irrelevant hits, and reads notes and hits.

    Yu et al. ("Chain-of-Note", 2023), but with one read per note, so that each hit can fill the
    input window. A hit is irrelevant if its note is empty, a word such as `none` or `unanswerable`,
    or states irrelevance. If all hits are irrelevant, all are read without notes. Without a
    question, no notes are written.

    An extractive reader notes the sentence that contains the answer; a reader that always answers
    (`Embedded` with `threshold: null`) drops no hits.

    Attributes:
        note: Instruction for notes.
        answer: Instruction for the answer; if empty, the task's.
    """

    note: str = NOTE
    answer: str = ""

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one round of notes, then one read of the best hits that fit."""
        notes: dict[Hit, str] = {}
        if hits and example.question:
            ask = question_only(example, self.note)
            outputs: list[Output] = yield [
                dataclasses.replace(ask, passages=(hit.chunk,)) for hit in hits
            ]
            notes = {
                hit: evidence(output, example.document)
                for hit, output in zip(hits, outputs, strict=True)
                if not has_no_answer(output.text) and not _IRRELEVANT.match(output.text)
            }
        # If the reader rejects every hit, an answer without text would be worse.
        relevant = [hit for hit in hits if hit in notes] or list(hits)
        # `Fit` counts passages, and a hit without its note, or the reverse, is of little use.
        passages_per_hit = 2 if notes else 1
        [fits] = yield [Fit(self._read(example, relevant, notes))]
        best = relevant[: max(fits // passages_per_hit, 1)]
        [output] = yield [self._read(example, best, notes)]
        return str(output.text)

    def _read(self, example: Example, hits: Sequence[Hit], notes: dict[Hit, str]) -> Read:
        passages: list[Chunk | str] = []
        for hit in hits:
            passages += [notes[hit], hit.chunk] if notes else [hit.chunk]
        return read_with(example, passages, self.answer)
