"""Tokens: what chunk sizes are counted in, and what lexical retrieval compares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import regex

from leporello.records import Tokenizer
from leporello.stages import ModelSource

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Words", "terms", "tokenizer"]

# Scripts written without spaces: each character (with its marks) counts as one word.
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_WORD = regex.compile(rf"(?:(?={_UNSPACED})\S\p{{M}}*+|(?:(?!{_UNSPACED})\S)++)")
_TERM = regex.compile(rf"(?P<unspaced>(?:{_UNSPACED}\p{{M}}*+)++)|[\p{{L}}\p{{N}}\p{{M}}_]++")


@dataclass(frozen=True)
class Words:
    """Words: runs of non-blank characters; where a script has no spaces, single characters."""

    def offsets(self, text: str) -> NDArray[np.int64]:
        """Returns the words' offsets, shape (words, 2)."""
        import numpy as np

        spans = [match.span() for match in _WORD.finditer(text)]
        return np.array(spans, dtype=np.int64).reshape(-1, 2)


@dataclass(frozen=True)
class HuggingFace:
    """The tokens of a Hugging Face tokenizer, by path or hub id."""

    model: ModelSource

    @cached_property
    def _backend(self) -> object:
        raise NotImplementedError

    def offsets(self, text: str) -> NDArray[np.int64]:
        """Returns the tokens' offsets, shape (tokens, 2), special tokens left out."""
        raise NotImplementedError


def tokenizer(name: str) -> Tokenizer:
    """Returns the tokenizer that a pipeline names: `words`, or a model's path or hub id."""
    return Words() if name == "words" else HuggingFace(name)


def terms(text: str) -> list[str]:
    """Returns the case-folded terms that lexical retrieval compares.

    Runs of letters, digits and marks; in scripts without spaces overlapping pairs of characters
    (the usual choice for Chinese and Japanese), or the character itself where it stands alone.
    """
    found: list[str] = []
    for match in _TERM.finditer(text.casefold()):
        run = match.group()
        if match.lastgroup and len(run) > 1:
            found.extend(run[i : i + 2] for i in range(len(run) - 1))
        else:
            found.append(run)
    return found
