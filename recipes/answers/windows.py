"""Makes the groups of windows that a step of the training reads; a group has one question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from tokenizers import Encoding, Tokenizer

from recipes.answers.questions import Question
from recipes.answers.settings import AnswersSettings, Phase

LABELS = ("null", "span", "yes", "no")
"""Labels of a window, in the order of the head `label`."""

QUESTION = 64
"""Number of tokens of a question; the same as in `leporello.readers.embedded.spans`."""

_SPECIAL = 3  # special tokens of a window
_WHOLE = 320  # tokens of a passage without an answer span, for labels of the complete passage


@dataclass(frozen=True)
class LabelledWindow:
    """A question and a text, with their targets."""

    question: Sequence[int]  # token ids of the question
    text: Sequence[int]  # token ids of the text
    starts: tuple[int, ...] = ()  # indexes in `text` of the answers' first tokens
    ends: tuple[int, ...] = ()  # indexes in `text` of the answers' last tokens
    label: int = 0  # index in `LABELS`

    def __len__(self) -> int:
        return len(self.question) + len(self.text) + _SPECIAL


Group = tuple[LabelledWindow, ...]
"""Windows of one question, whose tokens compete for the answer."""


@dataclass(frozen=True)
class Draw:
    """A question drawn for training."""

    row: int  # index of the question
    seed: tuple[int, ...]  # seed of its group


class GroupMaker:
    """Makes the group of windows of a question.

    `negatives` are the passages without the answer of each question, nearest first.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        negatives: Sequence[Sequence[str]],
        tokenizer: Tokenizer,
        settings: AnswersSettings,
        longest: int,
    ) -> None:
        self._questions = questions
        self._negatives = negatives
        self._tokenizer = tokenizer
        self._settings = settings
        self._room = longest - QUESTION - _SPECIAL

    def make(self, draw: Draw, phase: Phase) -> Group:
        """Returns the windows of one question."""
        rng = np.random.default_rng(draw.seed)
        settings, question = self._settings, self._questions[draw.row]
        question_ids = self._tokens(question.text).ids[:QUESTION]
        length = min(int(rng.integers(phase.shortest, phase.longest + 1)), self._room)
        count = int(rng.choice(len(phase.negatives), p=phase.negatives))
        nearest = self._negatives[draw.row]
        order = rng.permutation(len(nearest))[: max(count, 1)]
        negatives = [self._cut(nearest[i], length, rng) for i in order]
        windows = [LabelledWindow(question_ids, text) for text in negatives[:count]]
        if not windows or rng.random() >= settings.unanswered:
            extra: list[int] = []
            has_hops = question.source in settings.hops
            if negatives and rng.random() < (settings.joined_hops if has_hops else settings.joined):
                extra = negatives[-1][: max(phase.longest - length // 2, 0)]
            windows.insert(0, self._answer_window(question, question_ids, length, extra, rng))
        return tuple(windows)

    def _tokens(self, text: str) -> Encoding:
        return self._tokenizer.encode(text, add_special_tokens=False)

    def _cut(self, passage: str, length: int, rng: np.random.Generator) -> list[int]:
        ids = self._tokens(passage).ids
        first = int(rng.integers(0, max(len(ids) - length, 0) + 1))
        return ids[first : first + length]

    def _answer_window(
        self,
        question: Question,
        question_ids: list[int],
        length: int,
        extra: list[int],
        rng: np.random.Generator,
    ) -> LabelledWindow:
        """Returns the window of the question's passage, with extra text before or after it."""
        tokens = self._tokens(question.passage)
        spans = [
            (start, end)
            for start, end in _spans(tokens, question.answers)
            if end - start < self._room
        ]
        if question.yes_no or not spans:
            first, ids = 0, tokens.ids[: min(_WHOLE, self._room)]
            label = LABELS.index(question.yes_no or "null")
            spans = []
        else:
            start, end = spans[int(rng.integers(len(spans)))]
            length = max(length, end - start + 1)
            low = max(0, end + 1 - length)
            high = min(start, max(len(tokens.ids) - length, 0))
            first = int(rng.integers(min(low, high), max(low, high) + 1))
            ids = tokens.ids[first : first + length]
            label = LABELS.index("span")
        extra = extra[: self._room - len(ids)]
        before = len(extra) if extra and rng.integers(2) else 0
        text = extra + ids if before else ids + extra
        shifted = [
            (start - first + before, end - first + before)
            for start, end in spans
            if first <= start and end < first + len(ids)
        ]
        starts, ends = ({span[side] for span in shifted} for side in (0, 1))
        return LabelledWindow(question_ids, text, tuple(sorted(starts)), tuple(sorted(ends)), label)


def draws(
    rows: Mapping[str, Sequence[int]], weights: Mapping[str, float], seed: int, count: int
) -> Iterator[list[Draw]]:
    """Yields lists of questions drawn from the sets, without end.

    Within a set, every question is drawn once before any is drawn again. `rows` are the questions
    of each set, `count` is the number of questions per list.
    """
    names = sorted(name for name in rows if rows[name] and weights.get(name, 0) > 0)
    shares = np.array([weights[name] for name in names])
    shares = shares / shares.sum()
    remaining: dict[str, list[int]] = {name: [] for name in names}
    rng = np.random.default_rng(seed)
    number = 0
    while True:
        chosen = []
        for place in rng.choice(len(names), size=count, p=shares):
            name = names[place]
            if not remaining[name]:
                remaining[name] = [rows[name][i] for i in rng.permutation(len(rows[name]))]
            chosen.append(Draw(remaining[name].pop(), (seed, number)))
            number += 1
        yield chosen


def in_batches(groups: Sequence[Group], tokens: int, seed: Sequence[int]) -> list[list[Group]]:
    """Returns batches of groups of similar length, in random order.

    A batch has at most this number of tokens, unless a single group has more.
    """
    batches: list[list[Group]] = []
    total = 0
    for group in sorted(groups, key=lambda windows: max(map(len, windows))):
        size = sum(map(len, group))
        if not batches or total + size > tokens:
            batches.append([])
            total = 0
        batches[-1].append(group)
        total += size
    return [batches[i] for i in np.random.default_rng(seed).permutation(len(batches))]


def _spans(tokens: Encoding, answers: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the first and last token of each answer that overlaps any token."""
    spans = []
    for first, end in answers:
        overlapping = [i for i, (a, b) in enumerate(tokens.offsets) if a < end and b > first]
        if overlapping:
            spans.append((overlapping[0], overlapping[-1]))
    return spans
