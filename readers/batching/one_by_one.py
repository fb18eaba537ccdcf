"""Base of the readers that read each input separately."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from leporello.core.records import Output, Read
from leporello.readers.prompting.template import refuse_pairs
from leporello.text.tokens import Words


class OneByOne:
    """A reader whose answer to an input depends only on that input; its tokens are words."""

    depends_on_batch: ClassVar[bool] = False

    def _answer(self, read: Read) -> Output:
        raise NotImplementedError

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output per input, in order."""
        refuse_pairs(inputs)
        return list(map(self._answer, inputs))

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of words of each text."""
        return [len(Words().offsets(text)) for text in texts]
