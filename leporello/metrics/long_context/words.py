"""Words and ROUGE as in the packages `jieba` and `rouge` 1.0.1, which LongBench and LooGLE use."""

from __future__ import annotations

import logging
import string
from collections.abc import Hashable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from leporello.core.files import cache_directory
from leporello.text.lcs import lcs_union

if TYPE_CHECKING:
    import jieba

_CACHED = 512  # texts, since references recur
_PUNCTUATION = str.maketrans(
    "",
    "",
    string.punctuation
    + "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」"
    "『』【】〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏.",
)


@lru_cache(maxsize=_CACHED)
def chinese_words(text: str) -> tuple[str, ...]:
    """Splits a text into words, including blanks and punctuation."""
    return tuple(_jieba().cut(text, cut_all=False))


def without_punctuation(text: str) -> str:
    """Returns a text in small letters, without punctuation and blanks."""
    return "".join(text.lower().translate(_PUNCTUATION).split())


@cache
def _jieba() -> jieba.Tokenizer:
    """Returns jieba with its dictionary, cached in a folder that only this user writes to."""
    import jieba

    jieba.setLogLevel(logging.WARNING)  # it reports its start on stderr
    folder = cache_directory() / "jieba"
    folder.mkdir(parents=True, exist_ok=True)
    words = jieba.Tokenizer()
    words.tmp_dir = str(
        folder
    )  # by default it reads /tmp, where any user may have written the file
    return words


_CACHED = 512  # texts, since several pipelines have the same references


class RougeParts(NamedTuple):
    """Sizes of two sets of words, and of their intersection."""

    guess: int  # number of distinct words, or pairs of words, in the answer
    reference: int  # number of distinct words, or pairs of words, in the reference
    shared: int  # number of words, or pairs of words, in both

    @property
    def recall(self) -> float:
        """Share of the reference that is in the answer, 0 to 1."""
        return self.shared / self.reference if self.reference else 0.0

    @property
    def f(self) -> float:
        """F-measure, 0 to 1, with 1e-8 added to the denominator as in the package."""
        precision = self.shared / self.guess if self.guess else 0.0
        return 2.0 * ((precision * self.recall) / (precision + self.recall + 1e-8))


@lru_cache(maxsize=_CACHED)
def _sentences(text: str) -> list[list[str]]:
    """Returns the words of each sentence; a blank sentence is one empty word, as in the package."""
    return [" ".join(part.split()).split(" ") for part in text.split(".") if part]


def rouge_n(guess: str, reference: str, n: int) -> RougeParts:
    """Returns the overlap of two texts in words (n = 1) or pairs of words (n = 2)."""
    grams = _grams(_sentences(guess), n), _grams(_sentences(reference), n)
    return RougeParts(len(grams[0]), len(grams[1]), len(grams[0] & grams[1]))


def rouge_l(guess: str, reference: str) -> RougeParts:
    """Returns the overlap in the union of all sentences' longest common subsequences."""
    answer, gold = _sentences(guess), _sentences(reference)
    return RougeParts(len(_grams(answer, 1)), len(_grams(gold, 1)), len(lcs_union(gold, answer)))


def _grams(sentences: Sequence[Sequence[str]], n: int) -> set[Hashable]:
    words = [word for sentence in sentences for word in sentence]
    return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}
