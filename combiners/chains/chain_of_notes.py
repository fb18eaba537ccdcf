"""Chain of notes: writes a note on every hit, then answers from notes and hits together."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import regex

from leporello.combiners.chains.outputs import evidence, has_no_answer
from leporello.combiners.stuff import Order, arranged, read_with
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
        order: Order in which hits are read, each after its note.
    """

    note: str = NOTE
    answer: str = ""
    order: Order = "score"

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one round of notes, then one read of the best hits that fit.

        Without hits, the read has only the question.
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
                if not has_no_answer(output.text) and not _IRRELEVANT.match(output.text)
            }
        # If the reader rejects every hit, its judgement is doubtful: an answer without text is
        # worse.
        relevant = [hit for hit in hits if hit in notes] or list(hits)
        # `Fit` counts passages, and a hit without its note, or the reverse, is of little use.
        passages_per_hit = 2 if notes else 1
        [fits] = yield [Fit(self._read(example, relevant, notes))]
        best = relevant[: max(fits // passages_per_hit, 1)]
        [output] = yield [self._read(example, arranged(best, self.order), notes)]
        return str(output.text)

    def _read(self, example: Example, hits: Sequence[Hit], notes: dict[Hit, str]) -> Read:
        passages: list[Chunk | str] = []
        for hit in hits:
            passages += [notes[hit], hit.chunk] if notes else [hit.chunk]
        return read_with(example, passages, self.answer)
