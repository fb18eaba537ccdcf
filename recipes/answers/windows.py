"""What one step of the training reads: groups of windows that belong to one question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from tokenizers import Encoding, Tokenizer

from recipes.answers.questions import Question
from recipes.answers.settings import AnswersSettings, Phase

LABELS = ("null", "span", "yes", "no")
"""What a window may say to a question; the order of the head `label`."""

QUESTION = 64
"""Tokens of a question that are read; `leporello.readers.embedded.spans` reads as many."""

_SPECIAL = 3  # special tokens of a window
_WHOLE = 320  # tokens of a passage that says yes, no or nothing as a whole


@dataclass(frozen=True)
class LabelledWindow:
    """A question before a piece of text, and what is right.

    Attributes:
        question: Numbers of the question's tokens.
        text: Numbers of the text's tokens.
        starts: Places in `text` where an answer starts.
        ends: Places in `text` of an answer's last token.
        label: Place in `LABELS`.
    """

    question: Sequence[int]
    text: Sequence[int]
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    label: int = 0

    def __len__(self) -> int:
        return len(self.question) + len(self.text) + _SPECIAL


Group = tuple[LabelledWindow, ...]
"""The windows of one question; their tokens compete for the answer."""


@dataclass(frozen=True)
class Draw:
    """A question drawn for training.

    Attributes:
        row: Place of the question.
        seed: Numbers that decide how its group is made.
    """

    row: int
    seed: tuple[int, ...]


class GroupMaker:
    """Makes the group of windows of a question.

    Args:
        questions: All questions.
        negatives: For each question, the passages without its answer, nearest first.
        tokenizer: Tokenizer of the encoder.
        settings: Settings of the training.
        longest: Tokens of a window at most.
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
        """Returns the windows of one question.

        Args:
            draw: Question, and what decides the rest.
            phase: Part of the training.
        """
        rng = np.random.default_rng(draw.seed)
        settings, question = self._settings, self._questions[draw.row]
        asked = self._tokens(question.text).ids[:QUESTION]
        length = min(int(rng.integers(phase.shortest, phase.longest + 1)), self._room)
        wanted = int(rng.choice(len(settings.negatives), p=settings.negatives))
        nearest = self._negatives[draw.row]
        order = rng.permutation(len(nearest))[: max(wanted, 1)]
        others = [self._cut(nearest[i], length, rng) for i in order]
        windows = [LabelledWindow(asked, text) for text in others[:wanted]]
        if not windows or rng.random() >= settings.unanswered:
            beside: list[int] = []
            hops = question.source in settings.hops
            if others and rng.random() < (settings.joined_hops if hops else settings.joined):
                beside = others[-1][: max(phase.longest - length // 2, 0)]
            windows.insert(0, self._answered(question, asked, length, beside, rng))
        return tuple(windows)

    def _tokens(self, text: str) -> Encoding:
        return self._tokenizer.encode(text, add_special_tokens=False)

    def _cut(self, passage: str, length: int, rng: np.random.Generator) -> list[int]:
        ids = self._tokens(passage).ids
        first = int(rng.integers(0, max(len(ids) - length, 0) + 1))
        return ids[first : first + length]

    def _answered(
        self,
        question: Question,
        asked: list[int],
        length: int,
        beside: list[int],
        rng: np.random.Generator,
    ) -> LabelledWindow:
        """Returns the window of the question's own passage."""
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
        beside = beside[: self._room - len(ids)]
        before = len(beside) if beside and rng.integers(2) else 0
        text = beside + ids if before else ids + beside
        kept = [
            (start - first + before, end - first + before)
            for start, end in spans
            if first <= start and end < first + len(ids)
        ]
        starts, ends = ({pair[side] for pair in kept} for side in (0, 1))
        return LabelledWindow(asked, text, tuple(sorted(starts)), tuple(sorted(ends)), label)


def draws(
    rows: Mapping[str, Sequence[int]], weights: Mapping[str, float], seed: int, count: int
) -> Iterator[list[Draw]]:
    """Yields lists of questions drawn from the sets, for ever.

    Within a set every question is drawn before one is drawn again.

    Args:
        rows: Places of the questions of each set.
        weights: Share of what is drawn that comes from each set, in any unit.
        seed: Seed that decides everything.
        count: Questions of a list.
    """
    names = sorted(name for name in rows if rows[name] and weights.get(name, 0) > 0)
    shares = np.array([weights[name] for name in names])
    shares = shares / shares.sum()
    left: dict[str, list[int]] = {name: [] for name in names}
    rng = np.random.default_rng(seed)
    number = 0
    while True:
        chosen = []
        for place in rng.choice(len(names), size=count, p=shares):
            name = names[place]
            if not left[name]:
                left[name] = [rows[name][i] for i in rng.permutation(len(rows[name]))]
            chosen.append(Draw(left[name].pop(), (seed, number)))
            number += 1
        yield chosen


def in_batches(groups: Sequence[Group], tokens: int, seed: Sequence[int]) -> list[list[Group]]:
    """Returns groups of like length together, the batches in random order.

    Args:
        groups: Groups in any order.
        tokens: Tokens of a batch at most, where one group has not more alone.
        seed: Numbers that decide the order.
    """
    batches: list[list[Group]] = []
    filled = 0
    for group in sorted(groups, key=lambda windows: max(map(len, windows))):
        size = sum(map(len, group))
        if not batches or filled + size > tokens:
            batches.append([])
            filled = 0
        batches[-1].append(group)
        filled += size
    return [batches[i] for i in np.random.default_rng(seed).permutation(len(batches))]


def _spans(tokens: Encoding, answers: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the first and last token of each answer, those left out that no token meets."""
    spans = []
    for first, end in answers:
        met = [i for i, (a, b) in enumerate(tokens.offsets) if a < end and b > first]
        if met:
            spans.append((met[0], met[-1]))
    return spans
