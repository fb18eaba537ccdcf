"""Exact match of L-Eval's closed tasks, as in its `auto_eval.py` and `em.py`."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from typing import ClassVar, Literal

from leporello.core.records import Example
from leporello.metrics.protocol import Averaged, GoldError

_LETTERS = "ABCD"
_NOT_LETTERS = re.compile(r"[^A-D]")
_OPTION = re.compile(r"\s*[A-Z](?=[\s.)])")
_ARTICLE = re.compile(r"\b(a|an|the)\b")
_ANSWER = re.compile(r"The answer is (\S+)")
_CODE = ("will be", "of the code", "is", "would be", "the value of", "the result of", "printed")
_FINAL = "the final output"
_PARTLY = 0.25  # only right options, but not all
_MORE = 3  # words of code beyond the reference's


@dataclass(frozen=True)
class LEvalExam(Averaged):
    """Exact match of L-Eval after the rule of its task, 0 to 100.

    Right options of which some are missing score 25; an answer without an option counts as A, as in
    the official code.

    Attributes:
        task: Name of the task whose rule applies.
    """

    task: Literal["coursera", "quality", "tpo", "gsm100", "codeU", "topic_retrieval_longchat"] = (
        "quality"
    )

    name: ClassVar[str] = "leval"

    @property
    def signature(self) -> str:
        """Options of the computation."""
        return f"leval|task:{self.task}|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns the score.

        Raises:
            GoldError: The reference of a choice is blank.
        """
        gold = example.references[0]
        if not gold.strip():
            raise GoldError(example, "the reference is blank")
        return 100 * _exact_match(*self._processed(text, gold))

    def _processed(self, text: str, gold: str) -> tuple[str, str]:
        match self.task:
            case "coursera" | "quality" | "tpo":
                options = _options(text, several=self.task == "coursera")
                return options, _NOT_LETTERS.sub("", gold.split(maxsplit=1)[0]) or "A"
            case "gsm100":
                return _number(text), _number(gold)
            case "codeU":
                return _output(text, len(gold.split())), _code(gold)
        return text, gold


def _exact_match(text: str, gold: str) -> float:
    answer, right = _normalised(text), _normalised(gold)
    if {*right} <= {*_LETTERS}:
        return 1.0 if answer == right else _PARTLY * ({*answer} <= {*right})
    try:
        return float(float(text) == float(gold))
    except ValueError:
        return float(gold.lower().replace(" ", "") in text.lower().replace(" ", ""))


def _normalised(text: str) -> str:
    text = text.translate(dict.fromkeys(map(ord, string.punctuation)))
    return " ".join(_ARTICLE.sub(" ", text).split())


def _options(text: str, *, several: bool) -> str:
    """Returns the letters of the chosen options."""
    if not text.strip():
        return "None"
    if text in _LETTERS:
        return text
    if not several and (letters := _NOT_LETTERS.sub("", text)):
        return letters[0]
    remaining = text.lstrip(_LETTERS)
    leading = text[: len(text) - len(remaining)]
    if len(leading) > 1:
        return "".join(sorted({*leading}))
    remaining = remaining.partition("Question")[0]
    marked = _NOT_LETTERS.sub("", leading + "".join(_OPTION.findall(remaining)))
    first = re.search(r"[A-D]+", remaining)
    return "".join(sorted({*marked})) or (first[0] if first else "A")


def _number(text: str) -> str:
    """Returns the digits of the answer, up to a point."""
    if match := _ANSWER.search(text):
        word = match[1]
    else:
        words = reversed(text.split("\n\n", maxsplit=1)[0].split(" "))
        word = next((word for word in words if any(map(str.isdigit, word))), "")
    return "".join(filter(str.isdigit, word.partition(".")[0]))


def _code(text: str) -> str:
    text = re.sub(r"\s+", " ", text)
    for removed in (",", "'", "\\", ".0"):
        text = text.replace(removed, "")
    for spaced in ("] [", "[ [", "] ]"):
        text = text.replace(spaced, spaced.replace(" ", ""))
    return text


def _output(text: str, words: int) -> str:
    """Returns the words of an answer that are compared with the output of code."""
    text = _code(text)
    for removed in _CODE:
        text = text.replace(removed, "")
    before, _, after = text.rpartition(_FINAL)
    shown = re.split(r"\s+", after)
    return " ".join(shown[: words + _MORE] if before or _FINAL in text else shown[-words - _MORE :])
