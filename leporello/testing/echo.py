"""A reader for tests of what stands around one: it needs no model, and scores anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
from zlib import crc32

from leporello.core.records import Output, Read

__all__ = ["Echo"]

_FITS = 3


@dataclass(frozen=True)
class Echo:
    """Answers with first words or a choice, and scores that only look like probabilities.

    Attributes:
        words: Number of words of an answer.
    """

    depends_on_batch: ClassVar[bool] = False

    words: int = 4

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output an input, in order."""
        return [self._answer(read) for read in inputs]

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of words of each text."""
        return [len(text.split()) for text in texts]

    def fit(self, read: Read) -> int:
        """Returns how many leading passages fit: three."""
        return min(_FITS, len(read.passages))

    def render(self, read: Read) -> str:
        """Returns all parts as lines."""
        texts = (p if isinstance(p, str) else p.text for p in read.passages)
        return "\n".join([read.instruction, *texts, *(read.pair or ()), read.question])

    def _answer(self, read: Read) -> Output:
        text = self.render(read)
        weights = [crc32(f"{text}{c}".encode("utf-8", "replace")) + 1 for c in read.choices]
        scores = tuple(weight / sum(weights) for weight in weights)
        likeliest = read.choices[scores.index(max(scores))] if scores else ""
        said = likeliest or " ".join(text.split()[: self.words])
        score = max(scores, default=(crc32(text.encode("utf-8", "replace")) % 98 + 1) / 100)
        return Output(said, score=score, scores=scores)
