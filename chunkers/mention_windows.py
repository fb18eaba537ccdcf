"""Windows around the mentions of a character."""

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
    """Windows of `size` tokens around the mentions of a name, which is the question.

    A window has the mentions in it in its middle, as many as its first one reaches; the next window
    is around the next mention, and begins no earlier than where the last one ends. So windows that
    would overlap lie side by side. What counts as a mention: docs/decisions/0014-mentions.md.

    No more than `size` of the document's tokens start inside a window, except where a single
    character has more tokens than that.

    Attributes:
        size: Number of tokens a window at most.
        tokenizer: Tokenizer that counts: `words`, or a Hugging Face tokenizer by path or hub id.
    """

    size: Positive = 200
    tokenizer: ModelSource = "words"

    def chunk(self, document: Document, question: str = "") -> Iterator[Span]:
        """Yields the windows in document order; none, and a note, for who is never mentioned."""
        import numpy as np

        mentions = mentions_in(document, question)
        if not mentions:
            why = "the name is never mentioned" if question.strip() else "the question is no name"
            note(f"{why}: there is no window of the document to read")
            # Any chunk instead would pass for evidence (decision 14).
            return iter(())
        units = token_units(document, self.tokenizer)
        starts = np.array([mention.start for mention in mentions])
        ends = np.array([mention.end for mention in mentions])
        firsts = np.maximum(np.searchsorted(units.starts, starts, side="right") - 1, 0)
        lasts = np.maximum(np.searchsorted(units.starts, ends, side="left") - 1, firsts)
        return self._windows(units, firsts, lasts)

    def _windows(
        self, units: Units, firsts: NDArray[np.int64], lasts: NDArray[np.int64]
    ) -> Iterator[Span]:
        """Yields the windows of mentions, given by the units of their first and last character."""
        end = mention = 0
        while mention < len(firsts):
            first = int(firsts[mention])
            reach = units.end_of_run(max(end, units.back(first, self.size // 2)), self.size)
            following = max(mention + 1, int(firsts.searchsorted(reach)))
            last = max(first, min(int(lasts[following - 1]), reach - 1))
            start = max(end, self._centred(units, first, last))
            end = units.end_of_run(start, self.size)
            yield units.run(start, end)
            mention = max(following, int(firsts.searchsorted(end)))

    def _centred(self, units: Units, first: int, last: int) -> int:
        """Returns the first unit of a window in whose middle these units are."""
        taken = int(units.through[last] - units.before[first])
        start = units.back(first, max(self.size - taken, 0) // 2)
        return min(start, units.start_of_run(len(units) - 1, self.size))
