"""Input window of a model, and the rules for passages that exceed it. Only this module cuts text.

Instruction, question, choices and worked examples are never cut. Passages are cut by one of these
rules:

- `fit`: passages are omitted from the last one on; if even the first does not fit, it is truncated.
- `truncate`: the passages end where the window ends, even within a passage.
- `split`: the passages are divided into parts that fit, and each part is read.
- `error`: the input fails.
- `slice`: the list of tokens of the passages is truncated; the last passage, which may be empty,
  follows completely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile
from typing import Literal, TypeAlias

from leporello.core.records import Chunk, Read
from leporello.readers.prompting.template import passage_text

OnOverflow: TypeAlias = Literal["fit", "truncate", "split", "error"]
# Returns the first tokens of a text with all of a second one, up to a limit, and the end of the
# former in the first text.
Slice: TypeAlias = Callable[[str, str, int], tuple[tuple[int, ...], int]]

# Only the initial guess of a search; the tokens of the complete prompt decide what fits.
_CHARACTERS_PER_TOKEN = 4
# Of a prompt with more characters per token than this, only the beginning is counted at first, so
# that a book is not tokenized to see that it exceeds 512 tokens. The slack is for a cut last word.
# T5 has 512 tokens and MuLD's documents are books, so the start must suffice to see it.
_FAR_TOO_LONG = 16
_SLACK = 64


@dataclass(frozen=True)
class Window:
    """Input window of a model."""

    render: Callable[[Read], str]  # returns the complete prompt of an input
    size: Callable[[str], int]  # number of a prompt's tokens, including special tokens
    limit: int  # maximum number of tokens per prompt
    on_overflow: OnOverflow | Literal["slice"]
    slice: Slice | None = None  # slices tokens, for the rule `slice`

    def leading(self, read: Read) -> int:
        """Returns how many leading passages fit."""
        lengths = accumulate(map(passage_length, read.passages))
        short = takewhile(lambda length: length <= _CHARACTERS_PER_TOKEN * self.limit, lengths)
        guess = sum(1 for _ in short)
        return _largest(lambda n: self._fits(_first(read, n)), len(read.passages), guess)

    def parts(self, read: Read) -> list[Read]:
        """Returns the inputs to read, several if it is split; raises ValueError if none can fit."""
        count = self.leading(read)
        # `leading` returns 0 for a read without passages, also if its question alone is too long.
        if count == len(read.passages) and self._fits(read):
            return [read]
        if self.on_overflow == "slice":
            *first, last = read.passages
            passages = (*first_characters(first, self.sliced(read)[1]), last)
            return [replace(read, passages=tuple(filter(passage_length, passages)))]
        # Question and instruction are never cut, so they must fit without passages (decision 17).
        self._check_room(read)
        match self.on_overflow:
            case "fit":
                return [self._fitted(read, count)]
            case "truncate":
                return [self._truncated(read, count)]
            case "split":
                return self._split(read)
        raise ValueError(
            f"the prompt has {self.size(self.render(read))} tokens with its"
            f" {len(read.passages)} passages, max_input_tokens is {self.limit}"
            f" and on_overflow is 'error'; {count} of the passages fit"
        )

    def sliced(self, read: Read) -> tuple[tuple[int, ...], int]:
        """Returns an input's sliced tokens, and the number of characters before the last part."""
        *first, last = map(passage_text, read.passages)
        head = "".join(first)
        # Tokens of the passages must be those of the prompt; any other text would shift them.
        if self.render(read) != head + last:
            raise ValueError("on_overflow 'slice' needs prompt: '{context}' and separator: ''")
        assert self.slice
        return self.slice(head, last, self.limit)

    def _fits(self, read: Read) -> bool:
        far = _FAR_TOO_LONG * self.limit
        head = self.render(_beginning(read, far + 1))
        if len(head) > far and self.size(head[:far]) > self.limit + _SLACK:
            return False
        return self.size(self.render(read)) <= self.limit

    def _check_room(self, read: Read) -> None:
        if not self._fits(_first(read, 0)):
            raise ValueError(
                "instruction, question, choices and worked examples have"
                f" {self.size(self.render(_first(read, 0)))} tokens, but max_input_tokens is"
                f" {self.limit}; they are never cut: raise max_input_tokens"
            )

    def _fitted(self, read: Read, count: int) -> Read:
        # Part of the best passage is more useful than no passage at all.
        return _first(read, count) if count else self._truncated(read, 0)

    def _truncated(self, read: Read, count: int) -> Read:
        """Returns the first `count` passages and as much of the next one as fits."""
        last = read.passages[count]
        start = _first(read, count)

        def shortened(length: int) -> Read:
            passages = (*start.passages, _slice(last, 0, length)) if length else start.passages
            return replace(read, passages=passages)

        guess = _CHARACTERS_PER_TOKEN * self.limit - len(self.render(start))
        # Half a chunk ends in half a sentence, so `fit` cuts only a single passage (decision 17).
        length = passage_length(last)
        return shortened(_largest(lambda n: self._fits(shortened(n)), length, guess))

    def _split(self, read: Read) -> list[Read]:
        parts: list[Read] = []
        remaining = read
        while remaining.passages:
            part = self._fitted(remaining, self.leading(remaining))
            if not part.passages:
                raise ValueError(
                    "no character of the passages fits after instruction, question, choices and"
                    f" worked examples in max_input_tokens={self.limit}: raise max_input_tokens"
                )
            parts.append(part)
            remaining = replace(read, passages=_after(remaining.passages, part.passages))
        return parts


def _first(read: Read, count: int) -> Read:
    return replace(read, passages=read.passages[:count])


def _beginning(read: Read, characters: int) -> Read:
    """Returns the read with so many characters of passages, or unchanged if these are blank."""
    beginning = tuple(first_characters(read.passages, characters))
    has_text = any(passage_text(passage).strip() for passage in beginning)
    return replace(read, passages=beginning) if has_text else read


def passage_length(passage: Chunk | str) -> int:
    """Returns the number of characters of a passage."""
    return len(passage) if isinstance(passage, str) else passage.end - passage.start


def first_characters(
    passages: Iterable[Chunk | str], characters: int, gap: int = 0
) -> Iterator[Chunk | str]:
    """Yields the passages up to a number of characters; there is a gap between any two of them."""
    for passage in filter(passage_length, passages):
        length = min(max(characters, 0), passage_length(passage))
        if length:
            yield _slice(passage, 0, length)
        characters -= passage_length(passage) + gap


def _slice(passage: Chunk | str, start: int, end: int) -> Chunk | str:
    if isinstance(passage, str):
        return passage[start:end]
    return passage.document.chunk(passage.start + start, passage.start + end)


def _after(
    passages: Sequence[Chunk | str], beginning: Sequence[Chunk | str]
) -> tuple[Chunk | str, ...]:
    """Returns the passages after a beginning of them, whose last passage may be shortened."""
    last = passages[len(beginning) - 1]
    end, length = passage_length(beginning[-1]), passage_length(last)
    remainder = (_slice(last, end, length),) if end < length else ()
    return (*remainder, *passages[len(beginning) :])


def _largest(fits: Callable[[int], bool], upper: int, guess: int) -> int:
    """Returns the largest n up to `upper` that fits, or 0: strides from a guess, then bisects.

    The result always fits, even if `fits` is not monotone (with BPE, a longer text may have fewer
    tokens).
    """
    low, high = 0, upper + 1
    # Each probe tokenizes a complete prompt, so the strides begin small around the guess.
    step, probe = max(1, guess // 8), guess
    while high - low > 1:
        probe = min(max(probe, low + 1), high - 1)
        if fits(probe):
            low, probe = probe, probe + step
        else:
            high, probe = probe, probe - step
        step *= 2
        if low > 0 and high <= upper:
            probe = (low + high) // 2
    return low
