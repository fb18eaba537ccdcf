"""Compares longest common subsequences with the table that is filled cell by cell."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from leporello.text.lcs import lcs_length, lcs_union, places

SENTENCE = st.lists(st.sampled_from("abcde"), max_size=70)
SENTENCES = st.lists(SENTENCE, max_size=4)


def backtracked(first: list[str], second: list[str]) -> set[int]:
    """Returns the positions in `second` of the subsequence that backtracking finds."""
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, left_word in enumerate(first, 1):
        for j, right_word in enumerate(second, 1):
            longer = max(table[i - 1][j], table[i][j - 1])
            table[i][j] = table[i - 1][j - 1] + 1 if left_word == right_word else longer
    matched, i, j = set[int](), len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            i, j = i - 1, j - 1
            matched.add(j)
        elif table[i - 1][j] > table[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return matched


@given(SENTENCES, SENTENCES)
def test_the_union_is_that_of_backtracking(first: list[list[str]], second: list[list[str]]) -> None:
    """Ties between longest subsequences resolve equally, and lengths are equal."""
    matches = [[backtracked(words, sentence) for words in first] for sentence in second]
    unions = [set[int]().union(*matched) for matched in matches]
    pairs = zip(second, unions, strict=True)
    assert lcs_union(first, second) == Counter(s[place] for s, union in pairs for place in union)
    for sentence, matched in zip(second, matches, strict=True):
        lengths = [lcs_length(places(sentence), len(sentence), words) for words in first]
        assert lengths == [*map(len, matched)]
