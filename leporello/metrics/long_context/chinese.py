"""Splits Chinese answers into words with jieba, and strips punctuation."""

from __future__ import annotations

import logging
import string
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from leporello.models.locate import cache_directory

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
