"""The document cut to the window, as the benchmarks' own baselines read it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leporello.combiners.stuff import LearnsReferences
from leporello.core.errors import UserError
from leporello.core.official_prompt import OfficialPrompt
from leporello.core.protocols import Count, ModelSource, Positive
from leporello.core.records import Asking, Chunk, Combination, Document, Example, Fit, Hit, Read
from leporello.text.tokens import tokenizer

_WORD = re.compile(r"\w+|[^\w\s]+")


@dataclass(frozen=True)
class Truncate(LearnsReferences):
    """Reads the benchmark's own input, its document cut where it exceeds the reader's window.

    What divides and selects has no say: it is always the document's beginning that is read.

    - Where the document stands last (SCROLLS, MuLD), the input ends where the window ends.
    - Where a query follows it (ZeroSCROLLS), the input is read as it is if it fits. Otherwise the
      task's separator, the query and the response header follow what is left of the document, as
      in the authors' T5 runner. If these do not fit alone, the example fails.

    The reader must add nothing of its own: `prompt: "{context}"` and `separator: ""`. One with
    `on_overflow: slice` cuts its own tokens, as the authors do; of others is asked what fits.

    Attributes:
        characters: Number of characters that an input that ends with the document is cut to first;
            0 does not. SCROLLS' code cuts NarrativeQA's to 7 times the window's tokens
            (`src/run.py`, `trim_very_long_strings`).
        joint: Text before the separator. The T5 runner tokenizes what comes before and after it
            apart, which SentencePiece does as if there were a blank; the runner for OpenAI's models
            joins them as they are.
    """

    characters: Count = 0
    joint: str = " "

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:  # noqa: ARG002 -- the baseline selects nothing
        """Yields one read and returns its text.

        Raises:
            UserError: The task has no official input.
            ValueError: What must survive the cut does not fit; or `characters` would cut it.
        """
        prompt, document = official(example), example.document
        if self.characters and prompt.surviving:
            raise ValueError("characters cuts inputs that end with the document; here a query does")
        head = prompt.before + document.text + prompt.between
        length = min(self.characters or len(head), len(head))
        passages = (*_within(prompt, document, 0, length), *filter(None, [prompt.surviving]))
        [fits] = yield [Fit(Read(passages))]
        if fits < len(passages):
            tail = self._tail(prompt)
            [sliced] = yield [Fit(Read((head[:length],)), behind=tail)]
            if sliced < 0:
                length = yield from _fitting(head[:length], tail)
            behind = (tail,) if tail or sliced >= 0 else ()
            passages = (*_within(prompt, document, 0, length), *behind)
        [output] = yield [Read(passages)]
        return str(output.text)

    def _tail(self, prompt: OfficialPrompt) -> str:
        tail = prompt.separator + prompt.surviving
        return self.joint + tail if tail else ""


@dataclass(frozen=True)
class TruncateMiddle(LearnsReferences):
    """Reads the benchmark's own input, without its middle where it has too many tokens.

    As the code of LongBench (both versions), InfiniteBench and LooGLE: the first and the last half
    of the tokens are kept, whatever they belong to, special tokens counted. Where these are parts
    of one character, it is kept whole.

    The reader must add nothing of its own: `prompt: "{context}"` and `separator: ""`; its window
    must hold the tokens and what its chat's template adds.

    Attributes:
        tokens: Number of tokens that are kept. LongBench's 3500, 7500, 15500 and 31500 leave room
            for the answer.
        tokenizer: Tokenizer that counts: the reader's, by path or hub id, or `words`.
    """

    tokens: Positive = 3500
    tokenizer: ModelSource = "words"

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:  # noqa: ARG002 -- the baseline selects nothing
        """Yields one read and returns its text.

        Raises:
            UserError: The task has no official input, or the tokenizer cannot be loaded.
        """
        prompt, document = official(example), example.document
        text = prompt.around(document.text)
        end, start = self._kept(text)
        kept = ((0, end), (start, len(text)))
        passages = [piece for part in kept for piece in _within(prompt, document, *part)]
        [output] = yield [Read(tuple(passages))]
        return str(output.text)

    def _kept(self, text: str) -> tuple[int, int]:
        """Returns where the first part that is kept ends, and where the second begins."""
        ends, front, back = tokenizer(self.tokenizer).ends(text)
        if front + len(ends) + back <= self.tokens:
            return len(text), len(text)
        half = self.tokens // 2
        ends = [0, *ends]
        return ends[max(0, half - front)], ends[len(ends) - 1 - max(0, half - back)]


def _within(
    prompt: OfficialPrompt, document: Document, start: int, end: int
) -> Iterator[Chunk | str]:
    """Yields what stands between two characters of the input.

    The document's are a chunk, so that they count as read; empty pieces are left out.
    """
    yield from filter(None, [prompt.before[start:end]])
    head, size = len(prompt.before), len(document.text)
    inside = [min(max(place - head, 0), size) for place in (start, end)]
    if inside[0] < inside[1]:
        yield document.chunk(*inside)
    after = [max(place - head - size, 0) for place in (start, end)]
    yield from filter(None, [prompt.suffix[slice(*after)]])


def _fitting(head: str, tail: str) -> Asking[int]:
    """Returns how many characters of the head fit with the tail behind them."""
    [fits] = yield [Fit(Read((tail,)))]
    if not fits:
        raise ValueError(
            "the truncation separator, the query and the response header do not fit the reader's"
            " window by themselves: raise max_input_tokens"
        )
    # Whole words first: in the middle of one, more characters can be fewer tokens.
    ends = [0, *(word.end() for word in _WORD.finditer(head)), len(head) + 1]
    last = yield from _last_fitting(head, tail, ends[:-1])
    inside = range(ends[last], ends[last + 1])
    return inside[(yield from _last_fitting(head, tail, inside))]


def _last_fitting(head: str, tail: str, lengths: Sequence[int]) -> Asking[int]:
    """Returns which length of the head is the last to fit with the tail; the first one does."""
    low, high = 0, len(lengths)
    while high - low > 1:
        middle = (low + high) // 2
        [fits] = yield [Fit(Read((head[: lengths[middle]] + tail,)))]
        low, high = (middle, high) if fits else (low, middle)
    return low


def official(example: Example) -> OfficialPrompt:
    """Returns what stands around the document in the benchmark's own input.

    Raises:
        UserError: The example is of no such benchmark.
    """
    if (prompt := OfficialPrompt.of(example)) is None:
        raise UserError(
            f"example {example.id!r} has no official input, which Truncate reads; for tasks of your"
            " own, a reader with on_overflow: truncate and the combiner Stuff cut the same way"
        )
    return prompt
