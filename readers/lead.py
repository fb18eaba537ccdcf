"""The simplest baseline: the beginning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leporello.records import Chunk, Output, Read
from leporello.stages import Positive
from leporello.tokens import Words
from readers.prompt import passage_text
from readers.reading import refuse_pairs

__all__ = ["Lead"]


@dataclass(frozen=True)
class Lead:
    """Answers with the first words of the passages, or with the first choice; no model.

    Attributes:
        words: The most that are taken; in scripts without spaces, characters.
    """

    words: Positive = 60

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output an input, in order."""
        refuse_pairs(inputs)
        return list(map(self._answer, inputs))

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of words of each text."""
        return [len(Words().offsets(text)) for text in texts]

    def _answer(self, read: Read) -> Output:
        text = read.choices[0] if read.choices else self._beginning(read.passages)
        return Output(text, read=tuple(p.span for p in read.passages if isinstance(p, Chunk)))

    def _beginning(self, passages: Sequence[Chunk | str]) -> str:
        taken: list[str] = []
        left = self.words
        for text in map(passage_text, passages):
            offsets = Words().offsets(text)[:left]
            if len(offsets):
                taken.append(text[offsets[0][0] : offsets[-1][1]])
            left -= len(offsets)
            if not left:
                break
        return "\n\n".join(taken)
