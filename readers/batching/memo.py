"""Tokens of the last texts, remembered: a prompt is measured before it is read."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from threading import Lock
from typing import TypeVar

T = TypeVar("T")


class TokenMemo:
    """Remembers tokens of texts up to a bound, the last used ones longest; threads may share it."""

    def __init__(self, most: int) -> None:
        """Remembers nothing yet.

        Args:
            most: Number of characters and tokens that are kept, all texts together.
        """
        self._most, self._size = most, 0
        self._entries: dict[tuple[Hashable, ...], array[int]] = {}
        self._lock = Lock()

    def get(
        self, key: tuple[Hashable, ...], encode: Callable[[], Sequence[int]]
    ) -> tuple[int, ...]:
        """Returns what is known by a key, the texts among it, or else what `encode` gives."""
        with self._lock:
            tokens = self._entries.pop(key, None)
            if tokens is not None:
                self._entries[key] = tokens  # the latest now
        if tokens is None:
            tokens = array("i", encode())  # a ninth of a tuple's memory
            self._keep(key, tokens)
        return tuple(tokens)

    def _keep(self, key: tuple[Hashable, ...], tokens: array[int]) -> None:
        with self._lock:
            if key not in self._entries:
                self._entries[key] = tokens
                self._size += _weight(key, tokens)
            while self._size > self._most:
                oldest = next(iter(self._entries))
                self._size -= _weight(oldest, self._entries.pop(oldest))


def _weight(key: tuple[Hashable, ...], tokens: array[int]) -> int:
    return len(tokens) + sum(len(part) for part in key if isinstance(part, str))


def remembered(
    values: OrderedDict[str, T],
    texts: Sequence[str],
    compute: Callable[[list[str]], Iterable[T]],
    most: int,
) -> list[T]:
    """Returns the value of each text, of the last texts without computing it again.

    Args:
        values: Values that are known, the last used ones at the end.
        texts: Texts, some of them equal.
        compute: A function that returns the values of different texts, in order.
        most: Number of texts whose values are kept.
    """
    fresh = [text for text in dict.fromkeys(texts) if text not in values]
    if fresh:
        values.update(zip(fresh, compute(fresh), strict=True))
    result = [values[text] for text in texts]
    for text in dict.fromkeys(texts):
        values.move_to_end(text)
    while len(values) > most:
        values.popitem(last=False)
    return result
