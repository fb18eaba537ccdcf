"""Every hit read on its own, the answers joined, voted on, or the surest kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from leporello.combiners.stuff import Order, arranged, read_of
from leporello.core.errors import UserError
from leporello.core.protocols import Targets
from leporello.core.records import Chunk, Combination, Example, Hit, Output, Read


@dataclass(frozen=True)
class ReadEach:
    """Reads every hit on its own.

    Attributes:
        keep: Rule for the answers: `join` puts all answers one after the other (translation,
            sections' summaries); `vote` keeps the commonest answer, upper and lower case and outer
            punctuation set aside, the better-ranked hit's where two are as common; `best` keeps the
            answer that the reader is surest of (`Output.score`), the better-ranked hit's on a tie.
            For choices, `vote` counts choices and `best` compares the scores of the best choice.
        order: Order of what is joined.
        separator: Text between what is joined.
        skip: Answers that do not count as one, compared as votes are (`unanswerable`); if every
            answer is such, the first of them is returned. `join` leaves them out likewise.
    """

    keep: Literal["join", "vote", "best"] = "join"
    order: Order = "document"
    separator: str = "\n"
    skip: tuple[str, ...] = ()

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one read a hit, all in one round; without hits the question is read alone."""
        arrangement = arranged(hits, self.order if self.keep == "join" else "score")
        reads = [read_of(example, [hit]) for hit in arrangement] or [read_of(example, [])]
        outputs: list[Output] = yield reads
        skipped = {_vote(text) for text in self.skip}
        answers = [out for out in outputs if _vote(out.text) not in skipped] or outputs[:1]
        if self.keep == "join":
            return self.separator.join(output.text for output in answers)
        if self.keep == "best":
            return self._best(answers)
        votes = Counter(_vote(output.text) for output in answers)
        return max(answers, key=lambda output: votes[_vote(output.text)]).text

    def supervise(self, example: Example, reads: Sequence[Read]) -> Sequence[Targets]:
        """Returns the references for reads of what answers the question, None or `skip` for others.

        Where there are choices, all reads are to choose the right one. Otherwise evidence says
        what answers; without any, a passage does that has a reference in it. Others come to the
        first answer of `skip`, if there is one, and are left out if not.

        Raises:
            UserError: The example asks nothing: which part of a summary or of a translation each
                hit should come to is not known.
        """
        if example.choices:
            return [example.references or None for _ in reads]
        if not example.question:
            raise UserError(
                "ReadEach cannot tell which part of the reference each hit should come to, where"
                " there is no question: train with Stuff, and use the model with ReadEach"
            )
        nothing = self.skip[0] if self.skip else None
        return [_answers(example, read) or nothing for read in reads]

    def _best(self, answers: Sequence[Output]) -> str:
        if any(output.score is None for output in answers):
            raise ValueError(
                "ReadEach(keep='best') needs a reader that gives scores; this one gives none:"
                " use keep: vote"
            )
        return max(answers, key=lambda output: output.score or 0.0).text


def _answers(example: Example, read: Read) -> tuple[str, ...]:
    """Returns the references that a read can come to."""
    chunks = [passage for passage in read.passages if isinstance(passage, Chunk)]
    if example.evidence:
        overlaps = (
            chunk.start < span.end and span.start < chunk.end
            for chunk in chunks
            for span in example.evidence
        )
        return example.references if any(overlaps) else ()
    texts = [chunk.text.casefold() for chunk in chunks]
    return tuple(r for r in example.references if any(r.casefold() in text for text in texts))


def _vote(text: str) -> str:
    return text.casefold().strip(" \t\r\n.,;:!?\"'()[]")
