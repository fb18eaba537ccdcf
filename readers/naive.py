"""Naive baselines of SCROLLS (section 5.1) and ZeroSCROLLS (section 4.1), and `Lead`: no model.

Random answers depend only on the seed, the question and the passages, so they are the same in every
run and batch. The coverage counts the text that an answer was copied from as read.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

from leporello.core.errors import UserError
from leporello.core.protocols import NonNegative, Positive, Share
from leporello.core.records import JSON, Chunk, Output, Read, Span
from leporello.readers.batching.one_by_one import OneByOne
from leporello.readers.prompting.template import passage_text, seen
from leporello.text.tokens import Words


@dataclass(frozen=True)
class Lead(OneByOne):
    """Answers with the first words of the passages, or with the first choice; no model.

    Attributes:
        words: Maximum number of words; in scripts without spaces, of characters.
    """

    words: Positive = 60

    def _answer(self, read: Read) -> Output:
        """Counts only the copied text as read, so that the coverage shows how little it is."""
        if read.choices:
            return _unread(read, read.choices[0].strip())
        offsets = [Words().offsets(passage_text(passage)) for passage in read.passages]
        ends = [(0, end) for _, end in _words(offsets, 0, self.words)]
        return _copied(read, ends, between="\n\n")


class _LearnedBaseline(OneByOne):
    """Base of the baselines with a parameter that is None until it is learned."""

    _parameter: ClassVar[str]

    def check_files(self, data: str) -> None:
        """Raises `UserError` if a task is given, but the parameter was not learned."""
        # Without a task only the config is checked, which may leave the parameter to `--set`.
        if data:
            _ = self._learned

    def learn(
        self,
        inputs: Sequence[Read],
        targets: Sequence[str],
        directory: Path,  # noqa: ARG002 -- part of `Learns`; nothing is written
    ) -> Mapping[str, JSON]:
        """Returns the parameter, learned from inputs and their targets; raises UserError."""
        return {self._parameter: self._learn(inputs, targets)}

    def _learn(self, inputs: Sequence[Read], targets: Sequence[str]) -> JSON:
        raise NotImplementedError

    @property
    def _learned(self) -> Any:  # noqa: ANN401 -- a number or a mapping
        value = getattr(self, self._parameter)
        if value is None:
            raise UserError(
                f"`{self._parameter}` is not set: `train` learns it from the train split"
                " (docs/papers.md)"
            )
        return value


@dataclass(frozen=True)
class Prefix(_LearnedBaseline):
    """Answers with the beginning of the passages, a share of their characters.

    The passages are joined without any text between them.

    Attributes:
        share: Share of the characters, 0 to 1; the mean of output / document over the train split.
    """

    _parameter = "share"

    share: NonNegative | None = None

    def _answer(self, read: Read) -> Output:
        lengths = [len(passage_text(passage)) for passage in read.passages]
        total = int(self._learned * sum(lengths))
        starts = accumulate(lengths, initial=0)
        ends = [min(max(total - s, 0), n) for s, n in zip(starts, lengths, strict=False)]
        return _copied(read, [(0, end) for end in ends], between="")

    def _learn(self, inputs: Sequence[Read], targets: Sequence[str]) -> JSON:
        """Returns the mean ratio of targets to passages, in characters."""
        sizes = [sum(len(passage_text(passage)) for passage in read.passages) for read in inputs]
        ratios = [len(text) / size for text, size in zip(targets, sizes, strict=True) if size]
        if not ratios:
            raise UserError("Prefix cannot learn from empty documents")
        return fmean(ratios)


@dataclass(frozen=True)
class MajorityOption(_LearnedBaseline):
    """Answers with the choice at the most frequent position of the right one (QuALITY).

    Attributes:
        option: Number of the option, from 1; learned from the train split.
    """

    _parameter = "option"

    option: Positive | None = None

    def _answer(self, read: Read) -> Output:
        if len(read.choices) < self._learned:
            raise ValueError(
                f"option {self.option} exceeds the number of choices, {len(read.choices)}"
            )
        # Nothing counts as read, so that the coverage shows that the baseline ignores the text.
        return _unread(read, read.choices[self._learned - 1])

    def _learn(self, inputs: Sequence[Read], targets: Sequence[str]) -> JSON:
        """Returns the most frequent position of the targets; ties go to the first."""
        places: Counter[int] = Counter()
        for read, target in zip(inputs, targets, strict=True):
            if target not in read.choices:
                raise UserError(f"{target!r:.80} is not a choice of {read.question!r:.200}")
            places[read.choices.index(target) + 1] += 1
        return min(places, key=lambda place: (-places[place], place))


@dataclass(frozen=True)
class MajorityAnswer(_LearnedBaseline):
    """Returns the most frequent answer to each question (ContractNLI's 17 hypotheses).

    Attributes:
        answers: Answers by question; learned from the train split.
    """

    _parameter = "answers"

    answers: dict[str, str] | None = None

    def _answer(self, read: Read) -> Output:
        if read.question not in self._learned:
            raise ValueError(f"`answers` lacks the question {read.question!r:.200}")
        return _unread(read, self._learned[read.question])

    def _learn(self, inputs: Sequence[Read], targets: Sequence[str]) -> JSON:
        """Returns the most frequent target of each question; ties go to the first in the data."""
        answers: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for read, target in zip(inputs, targets, strict=True):
            answers[read.question][target] += 1
        return {question: counts.most_common(1)[0][0] for question, counts in answers.items()}


@dataclass(frozen=True)
class FixedAnswer(OneByOne):
    """Gives the same answer to every question.

    Attributes:
        answer: Text of the answer.
    """

    answer: str

    def _answer(self, read: Read) -> Output:
        return _unread(read, self.answer)


@dataclass(frozen=True)
class GivenOrder(OneByOne):
    """Answers `1, 2, …, n` for a document of n parts, which keeps their order (BookSumSort)."""

    def _answer(self, read: Read) -> Output:
        chunks = [passage for passage in read.passages if isinstance(passage, Chunk)]
        parts = chunks[0].document.parts if chunks else ()
        if not parts:
            raise ValueError("GivenOrder numbers the parts of a document, but this one has none")
        return _unread(read, ", ".join(str(number) for number in range(1, len(parts) + 1)))


@dataclass(frozen=True)
class RandomAnswer(OneByOne):
    """Answers with one of several answers, drawn at random.

    Attributes:
        answers: Answers to draw from; if empty, the choices of each input.
        seed: Random seed.
    """

    answers: tuple[str, ...] = ()
    seed: int = 0

    def _answer(self, read: Read) -> Output:
        answers = self.answers or read.choices
        if not answers:
            raise ValueError("RandomAnswer has no `answers`, and the input has no choices")
        return _unread(read, _generator(self.seed, read).choice(answers))


@dataclass(frozen=True)
class RandomSpan(OneByOne):
    """Answers with consecutive words of the passages, from a random position on.

    Attributes:
        words: Number of words; in scripts without spaces, of characters. Shorter passages are
            copied completely.
        answers: Fixed answers that may replace the words.
        answer_share: Share of answers that are one of the fixed ones, 0 to 1; ZeroSCROLLS does not
            give the share (Qasper).
        seed: Random seed.
    """

    words: Positive
    answers: tuple[str, ...] = ()
    answer_share: Share = 0.5
    seed: int = 0

    def _answer(self, read: Read) -> Output:
        generator = _generator(self.seed, read)
        if self.answers and generator.random() < self.answer_share:
            return _unread(read, generator.choice(self.answers))
        offsets = [Words().offsets(passage_text(passage)) for passage in read.passages]
        first = generator.randrange(max(sum(map(len, offsets)) - self.words, 0) + 1)
        return _copied(read, _words(offsets, first, self.words), between="\n\n")


def _copied(read: Read, bounds: Sequence[tuple[int, int]], between: str) -> Output:
    """Returns an output that copies the characters from `start` to `end` of each passage."""
    parts = list(zip(read.passages, bounds, strict=True))
    texts = [passage_text(passage)[start:end] for passage, (start, end) in parts]
    spans = tuple(
        Span(passage.start + start, passage.start + end)
        for passage, (start, end) in parts
        if isinstance(passage, Chunk) and start < end
    )
    cut = sum(len(passage_text(passage)) for passage in read.passages) - sum(map(len, texts))
    return Output(between.join(filter(None, texts)).strip(), read=spans, cut=cut)


def _words(offsets: Sequence[Any], first: int, count: int) -> list[tuple[int, int]]:
    """Returns the places of `count` words from the first on, in each of several texts."""
    bounds: list[tuple[int, int]] = []
    for words in offsets:
        chosen = words[max(first, 0) : max(first + count, 0)]
        bounds.append((int(chosen[0][0]), int(chosen[-1][1])) if len(chosen) else (0, 0))
        first -= len(words)
    return bounds


def _generator(seed: int, read: Read) -> random.Random:
    """Returns a generator for an input; a text as seed gives the same numbers in all processes."""
    passages = [
        (passage.document.id, passage.start, passage.end) if isinstance(passage, Chunk) else passage
        for passage in read.passages
    ]
    return random.Random(repr((seed, read.question, passages)))


def _unread(read: Read, answer: str) -> Output:
    return Output(answer, read=(), cut=seen(read, ())[1])
