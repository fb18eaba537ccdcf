"""Linear classifier of short texts by TF-IDF of their words, stored as plain numbers."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import regex

from leporello.core.errors import UserError
from leporello.core.files import Stamp, stamp

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")


def word_features(text: str) -> list[str]:
    """Returns a text's words and pairs of words, and its first words with a mark."""
    words = _WORD.findall(text.casefold())
    return [*words, *map(" ".join, pairwise(words)), *(f"^ {' '.join(words[:n])}" for n in (1, 2))]


@dataclass(frozen=True, slots=True)
class WordClassifier:
    """Weights of words for each class."""

    bias: tuple[float, ...]  # value of each class for a text of unknown words
    # For each word its inverse document frequency, then its weight for each class
    words: Mapping[str, tuple[float, ...]]

    def __post_init__(self) -> None:
        numbers = (*self.bias, *(number for row in self.words.values() for number in row))
        if len(self.bias) < 2 or not all(map(math.isfinite, numbers)):  # noqa: PLR2004
            raise ValueError("a classifier needs finite weights of at least two classes")
        if any(len(row) != len(self.bias) + 1 for row in self.words.values()):
            raise ValueError("each word needs a frequency and a weight for each class")

    def class_of(self, text: str) -> int:
        """Returns the index of the most likely class; the first if several are equal."""
        counts = Counter(word for word in word_features(text) if word in self.words)
        # Sorted, since the sum of floats depends on the order.
        weights = {word: count * self.words[word][0] for word, count in sorted(counts.items())}
        length = math.sqrt(sum(value * value for value in weights.values())) or 1.0
        values = [
            bias + sum(value / length * self.words[word][n + 1] for word, value in weights.items())
            for n, bias in enumerate(self.bias)
        ]
        return max(range(len(values)), key=values.__getitem__)


def read_word_classifier(path: Path) -> WordClassifier:
    """Reads a classifier from a JSON file; raises UserError if it is missing or invalid."""
    try:
        return _read(path, stamp(path))
    except (UserError, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        text = str(error) if isinstance(error, UserError) else f"{path}: {error}"
        raise UserError(f"{text}; docs/deciding.md shows how to create the file") from None


@lru_cache
def _read(path: Path, stamp: Stamp) -> WordClassifier:  # noqa: ARG001 -- a changed file is read again
    content: Any = json.loads(path.read_text(encoding="utf-8"))
    words = {str(word): tuple(map(float, row)) for word, row in content["words"].items()}
    return WordClassifier(tuple(map(float, content["bias"])), words)
