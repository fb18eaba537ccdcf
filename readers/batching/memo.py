"""Cache of the last texts: a prompt is tokenized first to measure it, then to read it."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Sequence
from threading import Lock


class TokenMemo:
    """Bounded cache of the tokens of texts, which drops the least recently used; thread-safe."""

    def __init__(self, most: int) -> None:
        """Creates an empty cache for `most` characters and tokens of all texts together."""
        self._most, self._size = most, 0
        self._entries: dict[tuple[Hashable, ...], array[int]] = {}
        self._lock = Lock()

    def get(
        self, key: tuple[Hashable, ...], encode: Callable[[], Sequence[int]]
    ) -> tuple[int, ...]:
        """Returns the cached tokens of a key, which contains the texts, or those of `encode`."""
        with self._lock:
            tokens = self._entries.pop(key, None)
            if tokens is not None:
                self._entries[key] = tokens  # now the most recent entry
        if tokens is None:
            tokens = array("i", encode())  # needs a ninth of a tuple's memory
            self._store(key, tokens)
        return tuple(tokens)

    def _store(self, key: tuple[Hashable, ...], tokens: array[int]) -> None:
        with self._lock:
            if key not in self._entries:
                self._entries[key] = tokens
                self._size += _weight(key, tokens)
            # Limited by size rather than by number, since one prompt may be a book.
            while self._size > self._most:
                oldest = next(iter(self._entries))
                self._size -= _weight(oldest, self._entries.pop(oldest))


def _weight(key: tuple[Hashable, ...], tokens: array[int]) -> int:
    return len(tokens) + sum(len(part) for part in key if isinstance(part, str))
