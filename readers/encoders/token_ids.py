"""Readers that score passages by the tokens of their document."""

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
    """Base of the readers that score the likelihood of a single passage.

    The tokens of a chunk are those of its document that end within it, as its chunker counts them.
    They differ from those of its text, since a chunk may begin within a word.
    """

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output per input, in order; the text is the score.

        Raises:
            ValueError: An input has not exactly one passage, or is too long.
            UserError: `load` raised it.
        """
        passages = [self.ids(read) for read in inputs]
        scores = self._scores(dict.fromkeys(passages))
        return [Output(f"{scores[p]:.6f}", scores[p], input_tokens=len(p)) for p in passages]

    def render(self, read: Read) -> str:
        """Returns the text that is scored."""
        return passage_text(_only(read))

    def fit(self, read: Read) -> int:
        """Returns how many leading passages fit: 0 or 1, since only one is read."""
        return int(bool(read.passages) and len(self._ids(read.passages[0])) <= self._limit)

    def ids(self, read: Read) -> tuple[int, ...]:
        """Returns the tokens of an input, without special tokens.

        Raises:
            ValueError: It has not exactly one passage, no tokens, or too many.
        """
        tokens = self._ids(_only(read))
        if not tokens:
            raise ValueError("the passage has no tokens, so it cannot be scored")
        if len(tokens) > self._limit:
            raise ValueError(
                f"the passage has {len(tokens)} tokens, but max_input_tokens is {self._limit}:"
                " divide the document with the chunker Windows, with at most this size and the"
                " tokenizer of the reader's model"
            )
        return tokens

    def _scores(self, passages: Iterable[tuple[int, ...]]) -> Mapping[tuple[int, ...], float]:
        """Returns the score of each passage's tokens."""
        raise NotImplementedError

    @property
    def _limit(self) -> int:
        """Maximum number of tokens per passage, without special tokens."""
        return self.max_input_tokens

    def _ids(self, passage: Chunk | str) -> tuple[int, ...]:
        if isinstance(passage, str):
            return self.tokens.once(lambda: self._encoded(passage)[0], "passage", passage)
        # The tokens of the document: a text cut in the middle of words has others (decision 21).
        key = (PassageScorer, self.model)
        text = passage.document.text
        # Once per document: overlapping windows would tokenize most of the text several times, and
        # a window on its own may have other tokens at its ends.
        ids, ends = passage.document.memo(key, lambda: self._encoded(text))
        first = int(ends.searchsorted(passage.start, "right")) if passage.start else 0
        inside: tuple[int, ...] = ids[first : int(ends.searchsorted(passage.end, "right"))]
        return inside

    def _encoded(self, text: str) -> tuple[tuple[int, ...], NDArray[np.int64]]:
        """Returns the tokens, and the end of each in characters."""
        import numpy as np

        # In pieces, since tokenizers are slow on a whole book in one call.
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
            f"a likelihood needs exactly one passage, but the input has {len(read.passages)}:"
            " use a combiner that reads each hit separately, such as Mean"
        )
    return read.passages[0]
