"""The simplest baseline: the beginning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from leporello.core.protocols import Positive
from leporello.core.records import Output, Read
from leporello.readers.batching.one_by_one import OneByOne, copied
from leporello.readers.prompting.template import passage_text
from leporello.text.tokens import Words


@dataclass(frozen=True)
class Lead(OneByOne):
    """Answers with the first words of the passages, or with the first choice; no model.

    Attributes:
        words: Number of words that are taken at most; in scripts without spaces, of characters.
    """

    words: Positive = 60

    def _answer(self, read: Read) -> Output:
        """Counts as seen only what it takes: the ledger shows how little that is."""
        texts = list(map(passage_text, read.passages))
        ends = [0] * len(texts) if read.choices else self._ends(texts)
        taken = copied(read, [(0, end) for end in ends], between="\n\n")
        return replace(taken, text=read.choices[0].strip()) if read.choices else taken

    def _ends(self, texts: Sequence[str]) -> list[int]:
        """Returns how many characters of each text the first words take."""
        ends, left = [], self.words
        for text in texts:
            offsets = Words().offsets(text)[:left]
            ends.append(int(offsets[-1][1]) if len(offsets) else 0)
            left -= len(offsets)
        return ends
