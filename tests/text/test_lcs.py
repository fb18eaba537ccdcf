"""Longest common subsequences against the table that is filled cell by cell."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from leporello.text.lcs import lcs_length, lcs_union, places

SENTENCE = st.lists(st.sampled_from("abcde"), max_size=70)
SENTENCES = st.lists(SENTENCE, max_size=4)


def way_back(first: list[str], second: list[str]) -> set[int]:
    """Returns the second's places of the longest common subsequence that the table leads to."""
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, one in enumerate(first, 1):
        for j, other in enumerate(second, 1):
            longer = max(table[i - 1][j], table[i][j - 1])
            table[i][j] = table[i - 1][j - 1] + 1 if one == other else longer
    found, i, j = set[int](), len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            i, j = i - 1, j - 1
            found.add(j)
        elif table[i - 1][j] > table[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return found


@given(SENTENCES, SENTENCES)
def test_the_union_is_that_of_the_tables_ways_back(
    first: list[list[str]], second: list[list[str]]
) -> None:
    """Of several longest ones it is the same, sentence by sentence; and so are their lengths."""
    ways = [[way_back(words, sentence) for words in first] for sentence in second]
    unions = [set[int]().union(*each) for each in ways]
    pairs = zip(second, unions, strict=True)
    assert lcs_union(first, second) == Counter(s[place] for s, union in pairs for place in union)
    for sentence, each in zip(second, ways, strict=True):
        lengths = [lcs_length(places(sentence), len(sentence), words) for words in first]
        assert lengths == [*map(len, each)]
