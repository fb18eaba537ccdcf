"""A note on every hit, then an answer from notes and hits together."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import regex

from leporello.combiners.chains.said import evidence, says_nothing
from leporello.combiners.stuff import Order, arranged, asked
from leporello.core.records import Chunk, Combination, Example, Fit, Hit, Output, Read

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
    """Has a note written on each hit, drops those noted as irrelevant, and reads notes and hits.

    As Yu et al. describe ("Chain-of-Note", 2023), but a read a note, so that each hit has the whole
    window. Irrelevant is a hit whose note is empty, says so, or says nothing (`none`,
    `unanswerable`); where all are, all hits are read without notes. Without a question, nothing is
    noted.

    A reader that copies its answers notes the sentence that has the answer; one that answers
    whatever it is given (`Embedded` with `threshold: null`) drops no hit.

    Attributes:
        note: Instruction under which notes are written.
        answer: Instruction for the answer, if not empty; else the task's.
        order: Order in which hits are read, each behind its note.
    """

    note: str = NOTE
    answer: str = ""
    order: Order = "score"

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one round of notes, then one read; of what does not fit, the worst are left out.

        Without hits the question is read alone.
        """
        notes: dict[Hit, str] = {}
        if hits and example.question:
            ask = Read((), example.question, self.note, title=example.document.title)
            outputs: list[Output] = yield [
                dataclasses.replace(ask, passages=(hit.chunk,)) for hit in hits
            ]
            notes = {
                hit: evidence(output, example.document)
                for hit, output in zip(hits, outputs, strict=True)
                if not says_nothing(output.text) and not _IRRELEVANT.match(output.text)
            }
        relevant = [hit for hit in hits if hit in notes] or list(hits)
        each = 2 if notes else 1
        [fits] = yield [Fit(self._read(example, relevant, notes))]
        kept = relevant[: max(fits // each, 1)]
        [output] = yield [self._read(example, arranged(kept, self.order), notes)]
        return str(output.text)

    def _read(self, example: Example, hits: Sequence[Hit], notes: dict[Hit, str]) -> Read:
        passages: list[Chunk | str] = []
        for hit in hits:
            passages += [notes[hit], hit.chunk] if notes else [hit.chunk]
        return asked(example, passages, self.answer)
