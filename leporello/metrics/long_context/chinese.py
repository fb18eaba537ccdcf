"""Chinese answers in words, as jieba divides them, and without punctuation."""

from __future__ import annotations

import logging
import string
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from leporello.models.locate import cache_directory

if TYPE_CHECKING:
    import jieba

_KEPT = 512  # texts, as references recur
_PUNCTUATION = str.maketrans(
    "",
    "",
    string.punctuation
    + "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」"
    "『』【】〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏.",
)


@lru_cache(maxsize=_KEPT)
def chinese_words(text: str) -> tuple[str, ...]:
    """Returns the words of a text, blanks and punctuation too: together they are the text."""
    return tuple(_jieba().cut(text, cut_all=False))


def bare(text: str) -> str:
    """Returns a text in small letters, without punctuation and blanks."""
    return "".join(text.lower().translate(_PUNCTUATION).split())


@cache
def _jieba() -> jieba.Tokenizer:
    """Returns jieba with its dictionary, whose copy lies where nobody else writes."""
    import jieba

    jieba.setLogLevel(logging.WARNING)  # it tells on stderr how it begins
    folder = cache_directory() / "jieba"
    folder.mkdir(parents=True, exist_ok=True)
    words = jieba.Tokenizer()
    words.tmp_dir = str(folder)  # else a file in /tmp, which it trusts, whoever wrote it
    return words
