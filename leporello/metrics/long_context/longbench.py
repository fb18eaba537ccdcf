"""Scores of LongBench, as in its `eval.py` and `metrics.py`, and of v2, as in its `result.py`."""

from __future__ import annotations

import logging
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, lru_cache
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from leporello.core.environment.extras import require
from leporello.core.files import cache_directory
from leporello.core.records import Example
from leporello.metrics.protocol import Averaged, GoldError, Statistics
from leporello.metrics.rouge import rouge_l
from leporello.metrics.squad import best_f1
from leporello.text.squad import normalise, token_f1

if TYPE_CHECKING:
    import jieba

_PARAGRAPH = re.compile(r"(?:Paragraph |段落)(\d+)")
_COMMENTED = re.compile(r"`|#|//")
_CACHED = 512  # texts, since references recur
_PUNCTUATION = str.maketrans(
    "",
    "",
    string.punctuation
    + "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」"
    "『』【】〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏.",
)


@dataclass(frozen=True)
class LongBenchScore(Averaged):
    """Score that LongBench gives an answer to one of its tasks, the best over references.

    `f1` is SQuAD's; `f1_zh` is the same over jieba's words, without punctuation. `rouge_l` and
    `rouge_l_zh` are the F-measure of the package `rouge`, for Chinese over jieba's words.
    `classification` is 1 over the number of labels that the answer names, if the right label is
    among them. `retrieval` and `count` are the share of the answer's numbers that are right.
    `code_similarity` compares the first line of code with the reference, in hundredths, by
    `difflib` (fuzzywuzzy's ratio without python-Levenshtein, which LongBench does not require).
    Scores for Chinese need the extra `chinese`.

    Attributes:
        score_by: Name of the score.
        first_line: Whether only the answer's first line is scored, as in trec, triviaqa, samsum
            and lsht.
    """

    score_by: Literal[
        "f1", "f1_zh", "rouge_l", "rouge_l_zh", "classification", "retrieval", "count",
        "code_similarity",
    ] = "f1"  # fmt: skip
    first_line: bool = False

    name = "longbench"

    def __post_init__(self) -> None:
        if self.score_by.endswith("_zh"):
            require(f"the metric {self.name!r} with score_by: {self.score_by}", "jieba")

    @property
    def signature(self) -> str:
        """Options of the computation."""
        lines = "first" if self.first_line else "all"
        return (
            f"longbench|score:{self.score_by}|lines:{lines}|references:max|average:mean|version:1"
        )

    def value(self, text: str, example: Example) -> float:
        """Returns the best score over references."""
        if self.first_line:
            text = text.lstrip("\n").split("\n", 1)[0]
        score = _SCORES[self.score_by]
        return 100.0 * max(score(text, gold, example) for gold in example.references)


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
    words.tmp_dir = str(folder)  # by default /tmp, where any user may have written the file
    return words


def _f1_zh(text: str, gold: str) -> float:
    answer, reference = (
        list(filter(None, map(without_punctuation, chinese_words(chinese))))
        for chinese in (text, gold)
    )
    return token_f1(answer, reference)


def _rouge_l_zh(text: str, gold: str) -> float:
    return rouge_l(*(" ".join(chinese_words(chinese)) for chinese in (text, gold))).f


def _classification(text: str, gold: str, example: Example) -> float:
    labels = [label for label in example.choices if label in text]
    # Removing from the list during iteration skips the next label, as in the authors' code.
    for label in labels:
        if label in gold and label != gold:
            labels.remove(label)
    return 1.0 / len(labels) if gold in labels else 0.0


def _retrieval(text: str, gold: str, example: Example) -> float:
    match = _PARAGRAPH.search(gold)
    if match is None:
        raise GoldError(example, f"the reference {gold!r:.80} names no `Paragraph N` or `段落N`")
    return _count(text, match[1])


def _count(text: str, gold: str) -> float:
    """Returns the share of the numbers in an answer that equal the reference."""
    numbers = re.findall(r"\d+", text)
    return numbers.count(gold) / len(numbers) if numbers else 0.0


def _code_similarity(text: str, gold: str) -> float:
    """Returns the similarity of the first line without a comment or a backtick, 0 to 1."""
    lines = text.lstrip("\n").split("\n")
    code = next((line for line in lines if not _COMMENTED.search(line)), "")
    return 1.0 if code == gold else round(100 * SequenceMatcher(None, code, gold).ratio()) / 100


_SCORES: Mapping[str, Callable[[str, str, Example], float]] = {
    "f1": lambda text, gold, _: best_f1(normalise, text, [gold]),
    "f1_zh": lambda text, gold, _: _f1_zh(text, gold),
    "rouge_l": lambda text, gold, _: rouge_l(text, gold).f,
    "rouge_l_zh": lambda text, gold, _: _rouge_l_zh(text, gold),
    "classification": _classification,
    "retrieval": _retrieval,
    "count": lambda text, gold, _: _count(text, gold),
    "code_similarity": lambda text, gold, _: _code_similarity(text, gold),
}

_ANSWER = (
    re.compile(r"The correct answer is \(([A-D])\)"),
    re.compile(r"The correct answer is ([A-D])"),
)


@dataclass(frozen=True)
class LongBenchV2Accuracy(Averaged):
    """Accuracy over letters of LongBench v2: over all examples, by difficulty and by length.

    A letter counts only in `The correct answer is (B)`, with or without the parentheses, as the
    prompt requires; asterisks are ignored.
    """

    name = "longbench_v2"
    signature = "longbench_v2|letter:the-correct-answer-is|average:mean|version:1"

    def measured(self, text: str, example: Example) -> Statistics:
        """Returns `longbench_v2`, 100 or 0, and the example's difficulty and length."""
        gold = example.references[0]
        letter = _letter(gold) or gold
        if letter not in ("A", "B", "C", "D"):
            raise GoldError(example, f"the reference {gold!r:.80} is not one of A, B, C and D")
        groups = {name: example.metadata.get(name) for name in ("difficulty", "length")}
        return {self.name: 100.0 * (_letter(text) == letter), **groups}

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns the accuracy over all examples, and for each difficulty and length."""
        by_name: dict[str, list[float]] = {}
        for row in statistics:
            for name in (self.name, row["difficulty"], row["length"]):
                if name:
                    by_name.setdefault(name, []).append(row[self.name])
        return {name: round(fmean(scores), 4) for name, scores in by_name.items()}


def _letter(text: str) -> str | None:
    text = text.replace("*", "")
    return next((match[1] for pattern in _ANSWER if (match := pattern.search(text))), None)
