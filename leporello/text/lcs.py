"""Longest common subsequences, a machine word at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence


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


def lcs_union(first: Iterable[Sequence[str]], second: Iterable[Sequence[str]]) -> Counter[str]:
    """Returns words of sentences that are in a longest common subsequence with any of others.

    Of several longest ones it is that which a table's usual way back finds: from the end, equal
    words are taken; else a word of the first's sentence is passed where the table is larger
    without it than without the second's, and one of the second's everywhere else. All sentences
    of the second are gone through at once, each in bits of its own.

    Args:
        first: Words of each of the other sentences.
        second: Words of each sentence whose words are counted, each place once.
    """
    positions, full, place = dict[str, int](), 0, 0
    for words in second:
        for word in words:
            positions[word] = positions.get(word, 0) | 1 << place
            full |= 1 << place
            place += 1
        place += 1  # a bit in between, where a carry ends
    found = 0
    runs = [*_runs(full)]
    for words in first:
        row, steps = full, list[tuple[int, int]]()
        for word in words:
            here = positions.get(word, 0)
            if matches := row & here:
                row = ((row + matches) | (row - matches)) & full
            steps.append((here, here | ~row))  # bits at which no word of the second is passed
        left = full
        for here, stops in reversed(steps):
            left &= stops
            for shift, run in runs:  # all bits below the highest one of each sentence
                left |= (left >> shift) & run
            matched = left & here & ~((left >> 1) & full & (full >> 1))
            found |= matched
            left ^= matched
            if not left:
                break
    return +Counter({word: (bits & found).bit_count() for word, bits in positions.items()})


def _runs(full: int) -> Iterator[tuple[int, int]]:
    """Yields powers of two, each with the bits above which as many more are of the sentence."""
    shift, run = 1, full & (full >> 1)
    while run:
        yield shift, run
        shift, run = 2 * shift, run & (run >> shift)
