"""Longest common subsequences, a machine word at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def places(words: Sequence[str]) -> dict[str, int]:
    """Returns where each word stands, as bits: bit n is set where word n is this one."""
    bits: dict[str, int] = {}
    for index, word in enumerate(words):
        bits[word] = bits.get(word, 0) | 1 << index
    return bits


def lcs_length(positions: Mapping[str, int], size: int, words: Iterable[str]) -> int:
    """Returns the length of the longest common subsequence of two texts.

    This is the bit-parallel form of the table that is filled row by row (Hyyrö 2004): exact, and
    one operation on a large integer replaces a row.

    Args:
        positions: The `places` of one text.
        size: Its number of words.
        words: The words of the other.
    """
    full = row = (1 << size) - 1
    for word in words:
        if matches := row & positions.get(word, 0):
            row = ((row + matches) | (row - matches)) & full
    return size - row.bit_count()


def lcs_places(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    """Returns where a longest common subsequence stands in both texts, from the last word on.

    Of several it is that which a table's usual way back finds: from the end, equal words are
    taken; else a word of the first text is passed where the table is larger without it than
    without the second's, and one of the second text everywhere else.
    """
    full = row = (1 << len(second)) - 1
    positions, rows = places(second), list[int]()
    for word in first:
        if matches := row & positions.get(word, 0):
            row = ((row + matches) | (row - matches)) & full
        rows.append(row)
    found, i, j = list[tuple[int, int]](), len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            i, j = i - 1, j - 1
            found.append((i, j))
        elif rows[i - 1] >> (j - 1) & 1:  # the second's last word adds nothing
            j -= 1
        else:
            i -= 1
    return found
