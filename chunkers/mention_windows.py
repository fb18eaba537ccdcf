"""Chunks around the mentions of a character."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leporello import Document, Span
from leporello.chunkers.packing import Units, token_units
from leporello.core.notes import note
from leporello.core.protocols import ModelSource, Positive
from leporello.text.mentions import mentions_in

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class MentionWindows:
    """Chunks of `size` tokens around the mentions of a name; the name is the question.

    A chunk is centred on a mention and those after it that fit with it. The next chunk is centred
    on the next mention, but begins where the previous one ends at the earliest, so chunks never
    overlap. docs/decisions/0014-mentions.md defines a mention.

    At most `size` of the document's tokens start within a chunk, unless a single character has
    more tokens.

    Attributes:
        size: Maximum number of tokens per chunk.
        tokenizer: Tokenizer that counts: `words`, or a Hugging Face tokenizer by path or hub id.
    """

    size: Positive = 200
    tokenizer: ModelSource = "words"

    def chunk(self, document: Document, question: str = "") -> Iterator[Span]:
        """Returns the chunks in document order; adds a note if the name is never mentioned."""
        import numpy as np

        mentions = mentions_in(document, question)
        if not mentions:
            why = "the name is never mentioned" if question.strip() else "the question is empty"
            note(f"{why}: no chunk of the document is read")
            # Any other chunk would be taken for evidence (decision 14).
            return iter(())
        units = token_units(document, self.tokenizer)
        starts = np.array([mention.start for mention in mentions])
        ends = np.array([mention.end for mention in mentions])
        firsts = np.maximum(np.searchsorted(units.starts, starts, side="right") - 1, 0)
        lasts = np.maximum(np.searchsorted(units.starts, ends, side="left") - 1, firsts)
        return self._centred_spans(units, firsts, lasts)

    def _centred_spans(
        self, units: Units, firsts: NDArray[np.int64], lasts: NDArray[np.int64]
    ) -> Iterator[Span]:
        """Yields the chunks around mentions, which begin and end in these units."""
        end = mention = 0
        while mention < len(firsts):
            first = int(firsts[mention])
            # Half of the size before the mention, since a passage needs context on both sides.
            reach = units.end_of_run(max(end, units.back(first, self.size // 2)), self.size)
            following = max(mention + 1, int(firsts.searchsorted(reach)))
            last = max(first, min(int(lasts[following - 1]), reach - 1))
            # Never before the previous end: shared text would fill the reader's window twice.
            start = max(end, self._centred_start(units, first, last))
            end = units.end_of_run(start, self.size)
            yield units.run(start, end)
            # At least one mention further, so that the loop ends for a name longer than a chunk.
            mention = max(following, int(firsts.searchsorted(end)))

    def _centred_start(self, units: Units, first: int, last: int) -> int:
        """Returns the first unit of a chunk that has the units `first` to `last` in its middle."""
        size = int(units.through[last] - units.before[first])
        start = units.back(first, max(self.size - size, 0) // 2)
        # Near the document's end the chunk moves back, so that it has its full size.
        return min(start, units.start_of_run(len(units) - 1, self.size))
