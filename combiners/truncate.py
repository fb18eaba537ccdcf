"""Cuts the document to the input window, as the benchmarks' baselines do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from leporello.combiners.stuff import LearnsReferences
from leporello.core.errors import UserError
from leporello.core.official_prompt import OfficialPrompt
from leporello.core.protocols import ModelSource, Positive
from leporello.core.records import Asking, Chunk, Combination, Document, Example, Fit, Hit, Read
from leporello.text.tokens import tokenizer

_WORD = re.compile(r"\w+|[^\w\s]+")


@dataclass(frozen=True)
class Truncate(LearnsReferences):
    """Reads the benchmark's input, with a document that is cut to the reader's input window.

    The chunker and retriever are ignored: the beginning of the document is read.

    - If the document is last (SCROLLS, MuLD), the input is cut at the end of the input window.
    - If a query follows the document (ZeroSCROLLS), a shorter input is read unchanged. Otherwise
      the document is cut, and the task's separator, the query and the response header follow it,
      as in the authors' T5 runner. If these do not fit without the document, the example fails.

    The reader's prompt must add nothing: `prompt: "{context}"` and `separator: ""`. A reader with
    `on_overflow: slice` cuts tokens, as the authors do; for other readers, `Fit` requests find the
    longest document that fits.

    Attributes:
        joint: Text before the separator. The T5 runner tokenizes the texts before and after it
            separately, which SentencePiece does as if there were a blank; the runner for OpenAI's
            models joins them without a blank.
    """

    needs_of_task: ClassVar[str] = "the official input"

    joint: str = " "

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:  # noqa: ARG002 -- the baseline selects nothing
        """Yields one read and returns its text; raises if an input does not exist or fit."""
        prompt, document = official(example), example.document
        head = prompt.before + document.text + prompt.between
        length = len(head)
        passages = (*_within(prompt, document, 0, length), *filter(None, [prompt.surviving]))
        # The unchanged input first: the official code adds the separator only if it cuts.
        [fits] = yield [Fit(Read(passages))]
        if fits < len(passages):
            tail = prompt.separator + prompt.surviving
            tail = self.joint + tail if tail else ""
            [sliced] = yield [Fit(Read((head,)), behind=tail)]
            # Readers that cannot slice tokens answer -1: search over lengths.
            if sliced < 0:
                length = yield from _fitting(head, tail)
            behind = (tail,) if tail or sliced >= 0 else ()
            passages = (*_within(prompt, document, 0, length), *behind)
        [output] = yield [Read(passages)]
        return str(output.text)


@dataclass(frozen=True)
class TruncateMiddle(LearnsReferences):
    """Reads the benchmark's input, without its middle if it has too many tokens.

    Follows the code of LongBench (both versions), InfiniteBench and LooGLE: the first and the last
    half of the tokens are kept, including prompt and special tokens. A character of several tokens
    is kept completely.

    The reader's prompt must add nothing: `prompt: "{context}"` and `separator: ""`. Its input
    window must be large enough for the tokens and its chat template.

    Attributes:
        tokens: Number of tokens to keep. LongBench's 3500, 7500, 15500 and 31500 leave room for the
            answer.
        tokenizer: Tokenizer that counts: the reader's, by path or hub id, or `words`.
    """

    needs_of_task: ClassVar[str] = "the official input"

    tokens: Positive = 3500
    tokenizer: ModelSource = "words"

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:  # noqa: ARG002 -- the baseline selects nothing
        """Yields one read and returns its text; raises UserError without an official input."""
        prompt, document = official(example), example.document
        text = prompt.around(document.text)
        end, start = self._bounds(text)
        halves = ((0, end), (start, len(text)))
        passages = [piece for half in halves for piece in _within(prompt, document, *half)]
        [output] = yield [Read(tuple(passages))]
        return str(output.text)

    def _bounds(self, text: str) -> tuple[int, int]:
        """Returns the end of the first half to keep, and the start of the second."""
        ends, front, back = tokenizer(self.tokenizer).ends(text)
        if front + len(ends) + back <= self.tokens:
            return len(text), len(text)
        half = self.tokens // 2
        ends = [0, *ends]
        return ends[max(0, half - front)], ends[len(ends) - 1 - max(0, half - back)]


def _within(
    prompt: OfficialPrompt, document: Document, start: int, end: int
) -> Iterator[Chunk | str]:
    """Yields the pieces of the input between two offsets, those of the document as chunks."""
    yield from filter(None, [prompt.before[start:end]])
    head, size = len(prompt.before), len(document.text)
    inside = [min(max(place - head, 0), size) for place in (start, end)]
    if inside[0] < inside[1]:
        yield document.chunk(*inside)
    after = [max(place - head - size, 0) for place in (start, end)]
    yield from filter(None, [prompt.suffix[slice(*after)]])


def _fitting(head: str, tail: str) -> Asking[int]:
    """Returns the number of characters of the head that fit before the tail."""
    [fits] = yield [Fit(Read((tail,)))]
    if not fits:
        raise ValueError(
            "the truncation separator, the query and the response header exceed the reader's input"
            " window without the document: raise max_input_tokens"
        )
    # Complete words first, since within a word more characters can be fewer tokens.
    ends = [0, *(word.end() for word in _WORD.finditer(head)), len(head) + 1]
    last = yield from _last_fitting(head, tail, ends[:-1])
    inside = range(ends[last], ends[last + 1])
    return inside[(yield from _last_fitting(head, tail, inside))]


def _last_fitting(head: str, tail: str, lengths: Sequence[int]) -> Asking[int]:
    """Returns the index of the last length of the head that fits with the tail; the first fits."""
    low, high = 0, len(lengths)
    while high - low > 1:
        middle = (low + high) // 2
        [fits] = yield [Fit(Read((head[: lengths[middle]] + tail,)))]
        low, high = (middle, high) if fits else (low, middle)
    return low


def official(example: Example) -> OfficialPrompt:
    """Returns the texts around the document in the benchmark's input."""
    if (prompt := OfficialPrompt.of(example)) is None:
        raise UserError(
            f"example {example.id!r} has no official input for Truncate; for your own tasks, use a"
            " reader with on_overflow: truncate and the combiner Stuff, which cut the same way"
        )
    return prompt
