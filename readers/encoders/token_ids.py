"""Passages as the tokens that their document has there, and readers that score them one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from leporello.core.records import Chunk, Output, Read
from leporello.readers.encoders.batched_model import BatchedModel
from leporello.readers.prompting.template import encodable, passage_text, refuse_pairs
from leporello.text.tokens import pieces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class PassageScorer(BatchedModel):
    """Base of the readers that score how likely a model finds one passage, and read nothing else.

    A chunk has the tokens of its document that end within it, as its chunker counts them, and not
    those that its text would have alone: a window may begin in the middle of a word.
    """

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output an input, in order: its score, as text too.

        Raises:
            ValueError: An input is no single passage, or too long.
            UserError: As `load`.
        """
        passages = [self.ids(read) for read in inputs]
        scores = self._scores(dict.fromkeys(passages))
        return [Output(f"{scores[p]:.6f}", scores[p], input_tokens=len(p)) for p in passages]

    def render(self, read: Read) -> str:
        """Returns the text that is scored."""
        return passage_text(_only(read))

    def fit(self, read: Read) -> int:
        """Returns how many leading passages fit: none or one, for only one is ever read."""
        return int(bool(read.passages) and len(self._ids(read.passages[0])) <= self._limit)

    def ids(self, read: Read) -> tuple[int, ...]:
        """Returns the tokens of an input, special ones left out.

        Raises:
            ValueError: It has several passages or none, no tokens, or too many.
        """
        tokens = self._ids(_only(read))
        if not tokens:
            raise ValueError("the passage has no tokens: there is nothing to score")
        if len(tokens) > self._limit:
            raise ValueError(
                f"the passage has {len(tokens)} tokens and max_input_tokens is {self._limit}:"
                " divide the document with the chunker Windows, its size no more than that and its"
                " tokenizer the reader's model"
            )
        return tokens

    def _scores(self, passages: Iterable[tuple[int, ...]]) -> Mapping[tuple[int, ...], float]:
        """Returns the score of each passage's tokens."""
        raise NotImplementedError

    @property
    def _limit(self) -> int:
        """Number of tokens of a passage at most, special ones left out."""
        return self.max_input_tokens

    def _ids(self, passage: Chunk | str) -> tuple[int, ...]:
        if isinstance(passage, str):
            return self.tokens.once(lambda: self._encoded(passage)[0], "passage", passage)
        key = (PassageScorer, self.model)
        text = passage.document.text
        ids, ends = passage.document.memo(key, lambda: self._encoded(text))
        first = int(ends.searchsorted(passage.start, "right")) if passage.start else 0
        inside: tuple[int, ...] = ids[first : int(ends.searchsorted(passage.end, "right"))]
        return inside

    def _encoded(self, text: str) -> tuple[tuple[int, ...], NDArray[np.int64]]:
        """Returns the tokens and where each ends, in characters."""
        import numpy as np

        cuts = pieces(text)
        options = {"add_special_tokens": False, "return_offsets_mapping": True, "verbose": False}
        parts = [encodable(text[start:end]) for start, end in pairwise(cuts)]
        encoded = [self.tokens.tokenizer(piece, **options) for piece in parts]
        ids = tuple(chain.from_iterable(piece["input_ids"] for piece in encoded))
        ends = [
            start + end
            for start, piece in zip(cuts[:-1], encoded, strict=True)
            for _, end in piece["offset_mapping"]
        ]
        return ids, np.maximum.accumulate(np.asarray(ends, dtype=np.int64))


def _only(read: Read) -> Chunk | str:
    refuse_pairs([read])
    if len(read.passages) != 1:
        raise ValueError(
            f"a likelihood is that of one passage, and the input has {len(read.passages)}:"
            " take a combiner that reads each hit on its own, such as Mean"
        )
    return read.passages[0]
