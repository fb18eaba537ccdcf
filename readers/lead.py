"""The simplest baseline: the beginning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from leporello.core.protocols import Positive
from leporello.core.records import Chunk, Output, Read, Span
from leporello.readers.prompting.template import passage_text, refuse_pairs
from leporello.text.tokens import Words


@dataclass(frozen=True)
class Lead:
    """Answers with the first words of the passages, or with the first choice; no model.

    Attributes:
        words: Number of words that are taken at most; in scripts without spaces, of characters.
    """

    depends_on_batch: ClassVar[bool] = False

    words: Positive = 60

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output an input, in order."""
        refuse_pairs(inputs)
        return list(map(self._answer, inputs))

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of words of each text."""
        return [len(Words().offsets(text)) for text in texts]

    def _answer(self, read: Read) -> Output:
        """Counts as seen only what it takes: the ledger shows how little that is."""
        texts = list(map(passage_text, read.passages))
        ends = [0] * len(texts) if read.choices else self._ends(texts)
        taken = [text[:end] for text, end in zip(texts, ends, strict=True)]
        spans = [
            Span(passage.start, passage.start + end)
            for passage, end in zip(read.passages, ends, strict=True)
            if isinstance(passage, Chunk) and end
        ]
        answer = read.choices[0] if read.choices else "\n\n".join(filter(None, taken))
        return Output(answer.strip(), read=tuple(spans), cut=sum(map(len, texts)) - sum(ends))

    def _ends(self, texts: Sequence[str]) -> list[int]:
        """Returns how many characters of each text the first words take."""
        ends, left = [], self.words
        for text in texts:
            offsets = Words().offsets(text)[:left]
            ends.append(int(offsets[-1][1]) if len(offsets) else 0)
            left -= len(offsets)
        return ends
