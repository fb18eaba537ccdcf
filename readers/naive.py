"""The naive baselines of SCROLLS (section 5.1) and ZeroSCROLLS (section 4.1), and `Lead`: no model.

What is random depends on the seed, the question and the passages alone, so that it is the same in
every run and every company. The ledger counts as read what an answer was copied from.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, ClassVar

from leporello.core.errors import UserError
from leporello.core.protocols import NonNegative, Positive, Share
from leporello.core.records import Chunk, Output, Read
from leporello.readers.batching.one_by_one import OneByOne, copied
from leporello.readers.prompting.template import passage_text, seen
from leporello.text.tokens import Words


@dataclass(frozen=True)
class Lead(OneByOne):
    """Answers with the first words of the passages, or with the first choice; no model.

    Attributes:
        words: Number of words that are taken at most; in scripts without spaces, of characters.
    """

    words: Positive = 60

    def _answer(self, read: Read) -> Output:
        """Counts as seen only what it takes: the ledger shows how little that is."""
        texts = list(map(passage_text, read.passages))
        ends = [0] * len(texts) if read.choices else self._ends(texts)
        taken = copied(read, [(0, end) for end in ends], between="\n\n")
        return replace(taken, text=read.choices[0].strip()) if read.choices else taken

    def _ends(self, texts: Sequence[str]) -> list[int]:
        """Returns how many characters of each text the first words take."""
        ends, left = [], self.words
        for text in texts:
            offsets = Words().offsets(text)[:left]
            ends.append(int(offsets[-1][1]) if len(offsets) else 0)
            left -= len(offsets)
        return ends


# Parameters that are learned from the train split, and what each is.
_LEARNED = {
    "share": "the mean of output / document in characters of the train split, as --set"
    " reader.share=0.05",
    "option": "the place where the right option of the train split is most often, as --set"
    " reader.option=2",
    "answers": "the commonest answer to each question of the train split, as"
    " {reader: {answers: {QUESTION: ANSWER, …}}} in a pipeline",
}


class _LearnedBaseline(OneByOne):
    """Base of the baselines with a parameter that is None until it is learned."""

    _parameter: ClassVar[str]

    def check_files(self, data: str) -> None:
        """Raises `UserError` where a task is known and the parameter has not been learned."""
        if data:
            _ = self._learned

    @property
    def _learned(self) -> Any:  # noqa: ANN401 -- a number or a mapping
        value = getattr(self, self._parameter)
        if value is None:
            raise UserError(
                f"`{self._parameter}` is not set: give {_LEARNED[self._parameter]}"
                " (docs/baselines.md)"
            )
        return value


@dataclass(frozen=True)
class Prefix(_LearnedBaseline):
    """Answers with the beginning of the passages, a share of their characters.

    They are taken as they stand one after the other, with nothing between them.

    Attributes:
        share: Share of the characters, 0 to 1; the mean of output / document over the train split.
    """

    _parameter = "share"

    share: NonNegative | None = None

    def _answer(self, read: Read) -> Output:
        lengths = [len(passage_text(passage)) for passage in read.passages]
        left = int(self._learned * sum(lengths))
        begins = accumulate(lengths, initial=0)
        return copied(
            read,
            [(0, min(max(left - begin, 0), n)) for begin, n in zip(begins, lengths, strict=False)],
            between="",
        )


@dataclass(frozen=True)
class MajorityOption(_LearnedBaseline):
    """Answers with the choice that stands where the right one most often stands (QuALITY).

    Attributes:
        option: Number of the option, from 1; learned from the train split.
    """

    _parameter = "option"

    option: Positive | None = None

    def _answer(self, read: Read) -> Output:
        if len(read.choices) < self._learned:
            raise ValueError(f"option {self.option} of {len(read.choices)} choices is none")
        return _unread(read, read.choices[self._learned - 1])


@dataclass(frozen=True)
class MajorityAnswer(_LearnedBaseline):
    """Answers a question with its commonest answer (ContractNLI's 17 hypotheses).

    Attributes:
        answers: Answers by question; learned from the train split.
    """

    _parameter = "answers"

    answers: dict[str, str] | None = None

    def _answer(self, read: Read) -> Output:
        if read.question not in self._learned:
            raise ValueError(f"`answers` has none for the question {read.question!r:.200}")
        return _unread(read, self._learned[read.question])


@dataclass(frozen=True)
class FixedAnswer(OneByOne):
    """Answers everything alike.

    Attributes:
        answer: Text that it says.
    """

    answer: str

    def _answer(self, read: Read) -> Output:
        return _unread(read, self.answer)


@dataclass(frozen=True)
class GivenOrder(OneByOne):
    """Answers `1, 2, …, n` for a document of n parts: they stay as they stand (BookSumSort)."""

    def _answer(self, read: Read) -> Output:
        chunks = [passage for passage in read.passages if isinstance(passage, Chunk)]
        parts = chunks[0].document.parts if chunks else ()
        if not parts:
            raise ValueError("GivenOrder numbers the parts of a document, and here are none")
        return _unread(read, ", ".join(str(number) for number in range(1, len(parts) + 1)))


@dataclass(frozen=True)
class RandomAnswer(OneByOne):
    """Answers with one of several answers, drawn at random.

    Attributes:
        answers: Answers that are drawn from; if there are none, the choices of each input.
        seed: Seed of the draw: another one draws other answers.
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
    """Answers with words that follow each other in the passages, from a random place on.

    Attributes:
        words: Number of words; in scripts without spaces, of characters. Short passages are taken
            whole.
        answers: Fixed answers that may be given instead.
        answer_share: Share of the answers that are one of them, 0 to 1; ZeroSCROLLS does not say
            (Qasper).
        seed: Seed of the draw: another one draws other places.
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
        bounds: list[tuple[int, int]] = []
        for words in offsets:
            taken = words[max(first, 0) : max(first + self.words, 0)]
            bounds.append((int(taken[0][0]), int(taken[-1][1])) if len(taken) else (0, 0))
            first -= len(words)
        return copied(read, bounds, between="\n\n")


def _generator(seed: int, read: Read) -> random.Random:
    """Returns the lots of an input: text as a seed is hashed alike in every process."""
    passages = [
        (passage.document.id, passage.start, passage.end) if isinstance(passage, Chunk) else passage
        for passage in read.passages
    ]
    return random.Random(repr((seed, read.question, passages)))


def _unread(read: Read, answer: str) -> Output:
    return Output(answer, read=(), cut=seen(read, ())[1])
