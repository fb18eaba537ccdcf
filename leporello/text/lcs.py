"""Longest common subsequences, computed bit-parallel."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence


def places(words: Sequence[str]) -> dict[str, int]:
    """Returns the positions of each word as bits: bit n is set if word n is this word."""
    bits: dict[str, int] = {}
    for index, word in enumerate(words):
        bits[word] = bits.get(word, 0) | 1 << index
    return bits


def lcs_length(positions: Mapping[str, int], size: int, words: Iterable[str]) -> int:
    """Returns the length of the longest common subsequence of two texts.

    The bit-parallel form of the usual table (Hyyrö 2004), exact. `positions` are the `places` of
    the first text, which has `size` words.
    """
    all_bits = row = (1 << size) - 1
    for word in words:
        if matches := row & positions.get(word, 0):
            row = ((row + matches) | (row - matches)) & all_bits
    return size - row.bit_count()


def lcs_union(first: Iterable[Sequence[str]], second: Iterable[Sequence[str]]) -> Counter[str]:
    """Counts the words of sentences that are in a longest common subsequence with other sentences.

    Among several longest subsequences the usual backtracking through the table decides: from the
    end, equal words match; otherwise it skips a word of the first sentence if the table has a
    larger value without it than without the word of the second, and a word of the second in all
    other cases. All second sentences are processed at once, in separate bits.
    """
    positions, full, place = dict[str, int](), 0, 0
    for words in second:
        for word in words:
            positions[word] = positions.get(word, 0) | 1 << place
            full |= 1 << place
            place += 1
        place += 1  # a bit between sentences stops the carry
    matched_bits = 0
    masks = [*_runs(full)]
    for words in first:
        row, steps = full, list[tuple[int, int]]()
        for word in words:
            word_bits = positions.get(word, 0)
            if matches := row & word_bits:
                row = ((row + matches) | (row - matches)) & full
            # Second: bits at which the backtracking skips no word of the second.
            steps.append((word_bits, word_bits | ~row))
        remaining = full
        for word_bits, stops in reversed(steps):
            remaining &= stops
            for shift, mask in masks:  # fills all bits below the highest of each sentence
                remaining |= (remaining >> shift) & mask
            matched = remaining & word_bits & ~((remaining >> 1) & full & (full >> 1))
            matched_bits |= matched
            remaining ^= matched
            if not remaining:
                break
    return +Counter({word: (bits & matched_bits).bit_count() for word, bits in positions.items()})


def _runs(full: int) -> Iterator[tuple[int, int]]:
    """Yields powers of two, each with the bits that have that many bits of their sentence above."""
    shift, run = 1, full & (full >> 1)
    while run:
        yield shift, run
        shift, run = 2 * shift, run & (run >> shift)
