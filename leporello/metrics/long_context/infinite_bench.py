"""Scores of InfiniteBench, as in its `compute_scores.py`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Literal

from leporello.core.protocols import Count
from leporello.core.records import Example
from leporello.metrics.long_context.longbench import without_punctuation
from leporello.metrics.protocol import Averaged, GoldError
from leporello.metrics.rouge import rouge_l_sum
from leporello.metrics.squad import best_f1
from leporello.text.squad import normalise, token_f1

_NUMBER = re.compile(r"[0-9]+")
_DECIMAL = re.compile(r"\d+\.\d+|\d+")
_SEPARATORS = "\n:\"'.,?!{}"
_LABELLED = 2  # references: a text and its letter

Gold = Sequence[str]


@dataclass(frozen=True)
class InfiniteBenchScore(Averaged):
    """Score that InfiniteBench gives an answer to one of its tasks.

    References have the form of its tasks: numbers and lists of numbers as JSON; the option's text
    and letter for a choice. If a dialogue has several names, only the first counts, in capitals and
    only as a single word.

    Attributes:
        task: Name of the task whose rule applies.
        skip: Number of numbers at the start of the answer that `math_calc` skips; the authors skip
            one for GPT-4.
    """

    task: Literal[
        "passkey", "number_string", "kv_retrieval", "longdialogue_qa_eng", "longbook_sum_eng",
        "longbook_choice_eng", "longbook_qa_eng", "longbook_qa_chn", "math_find", "math_calc",
        "code_run", "code_debug",
    ] = "longbook_qa_eng"  # fmt: skip
    skip: Count = 0

    name = "infinite_bench"

    @property
    def signature(self) -> str:
        """Options of the computation."""
        return f"infinite_bench|task:{self.task}|skip:{self.skip}|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns the score by the task's rule."""
        score = self._math_calc if self.task == "math_calc" else _SCORES[self.task]
        try:
            return 100.0 * score(text, example.references)
        except (ValueError, TypeError, LookupError):
            fault = f"the references {list(example.references)!r:.80} are not valid for {self.task}"
            raise GoldError(example, fault) from None

    def _math_calc(self, text: str, gold: Gold) -> float:
        expected = [str(int(number)) for number in json.loads(gold[0])]
        numbers = [number.lstrip("0") or "0" for number in _NUMBER.findall(text)[self.skip :]]
        pairs = zip(expected, numbers, strict=False)
        return len([*takewhile(lambda pair: pair[0] == pair[1], pairs)]) / len(expected)


def _words(text: str, separators: str) -> list[str]:
    return text.translate(dict.fromkeys(map(ord, separators), " ")).split()


def _first_number(text: str, gold: Gold) -> float:
    match = _NUMBER.search(text)
    return gold[0] == (match.group() if match else "")


def _longbook_qa_chn(text: str, gold: Gold) -> float:
    answer = without_punctuation(text)
    return max(token_f1(answer, without_punctuation(reference)) for reference in gold)


def _math_find(text: str, gold: Gold) -> float:
    expected = json.loads(gold[0])
    match = _DECIMAL.search(text)
    if match is None:
        return 0.0
    # The authors compare with `int`, and fail on an answer with a fraction.
    return bool(float(match.group()) == expected)


def _code_run(text: str, gold: Gold) -> float:
    words = _words(text, "\n.`'\":")
    try:
        return bool(words) and int(words[-1]) == int(gold[0])
    except ValueError:
        int(gold[0])  # raises for a fault of the reference
        return False


def _code_debug(text: str, gold: Gold) -> float:
    name, letter = gold[:_LABELLED]
    text = text.strip()
    if text[:2] in (f"{letter}.", f"{letter}:"):
        return True
    text = _squeezed(re.sub(r"[\n`'\"*-]|[Oo]ption", " ", text))
    remainder = _after(text, ("answer is:", "is:", "answer:", "correct option is:"))
    return remainder is not None and remainder.startswith((letter, name))


def _longbook_choice_eng(text: str, gold: Gold) -> float:
    if not (text := text.strip()):
        return False
    if text[0] in "ABCD":
        return text[0] in gold
    if text in gold:
        return True
    text = _squeezed(re.sub(r"[\n\"'.,?!{}]", " ", text))
    remainder = _after(text, ("answer is:", "answer:", "answer is", "option is"))
    if remainder is not None:
        return remainder.startswith(tuple(gold))
    # A substring test like the authors': `AB` is in `ABCD` too.
    return next((word for word in text.split() if word in "ABCD"), None) in gold


def _squeezed(text: str) -> str:
    return re.sub(" {2,}", " ", text)


def _after(text: str, prefixes: Sequence[str]) -> str | None:
    """Returns the text after the first prefix that it contains and one more character."""
    prefix = next((prefix for prefix in prefixes if prefix in text), None)
    return None if prefix is None else text[text.index(prefix) + len(prefix) + 1 :]


_SCORES: Mapping[str, Callable[[str, Gold], float]] = {
    "passkey": _first_number,
    "number_string": _first_number,
    "kv_retrieval": lambda text, gold: gold[0] in _words(text, _SEPARATORS),
    "longdialogue_qa_eng": lambda text, gold: gold[0] in _words(text.upper(), _SEPARATORS),
    "longbook_sum_eng": lambda text, gold: max(rouge_l_sum(text, line) for line in gold),
    "longbook_choice_eng": _longbook_choice_eng,
    "longbook_qa_eng": partial(best_f1, normalise),
    "longbook_qa_chn": _longbook_qa_chn,
    "math_find": _math_find,
    "code_run": _code_run,
    "code_debug": _code_debug,
}
