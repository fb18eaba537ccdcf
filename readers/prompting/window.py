"""The model's window: what fits it, and what is done with what does not. Nowhere else is text cut.

Instruction, question, choices and worked examples are never cut; passages are, by one of four
rules:

- `fit`: whole passages are left out, from the last on; a first one too long alone is truncated.
- `truncate`: the passages end where the window ends, in the middle of one.
- `split`: the passages are divided into parts that each fit, and each part is read.
- `error`: the input fails.
- `slice`: the tokens of the passages are sliced, as who slices lists of tokens does; the last
  passage, which may be empty, stays whole behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile
from typing import Literal, TypeAlias

from leporello.core.records import Chunk, Read
from leporello.readers.prompting.template import passage_text

OnOverflow: TypeAlias = Literal["fit", "truncate", "split", "error"]
# Returns a text's first tokens with those of another behind them, so many in all, and the place in
# the first where they end.
Slice: TypeAlias = Callable[[str, str, int], tuple[tuple[int, ...], int]]

# Guesses only, where a search begins; what fits is always settled by counting the whole prompt.
_CHARACTERS_A_TOKEN = 4
# A prompt longer than this many characters a token is first judged by its beginning, so that a
# book is not tokenised to learn that it exceeds 512 tokens. The slack covers a torn last word.
_FAR_TOO_LONG = 16
_SLACK = 64


@dataclass(frozen=True)
class Window:
    """What a model can be given.

    Attributes:
        render: A function that returns the prompt of an input, whole.
        size: A function that returns the number of a prompt's tokens, special tokens and all.
        limit: Number of tokens that a prompt may have at most.
        on_overflow: The rule for passages that do not fit.
        slice: Slicing of tokens, where that is the rule.
    """

    render: Callable[[Read], str]
    size: Callable[[str], int]
    limit: int
    on_overflow: OnOverflow | Literal["slice"]
    slice: Slice | None = None

    def leading(self, read: Read) -> int:
        """Returns how many leading passages fit."""
        lengths = accumulate(map(_length, read.passages))
        short = takewhile(lambda length: length <= _CHARACTERS_A_TOKEN * self.limit, lengths)
        guess = sum(1 for _ in short)
        return _largest(lambda n: self._fits(_first(read, n)), len(read.passages), guess)

    def parts(self, read: Read) -> list[Read]:
        """Returns what is read for this input: the input itself if it fits; several if split.

        Raises:
            ValueError: It does not fit and the rule is `error`, or no passage could ever fit.
        """
        count = self.leading(read)
        if count == len(read.passages) and self._fits(read):
            return [read]
        if self.on_overflow == "slice":
            return [self._sliced(read)]
        self._check_room(read)
        match self.on_overflow:
            case "fit":
                return [self._fitted(read, count)]
            case "truncate":
                return [self._truncated(read, count)]
            case "split":
                return self._split(read)
        raise ValueError(
            f"the prompt takes {self.size(self.render(read))} tokens with its"
            f" {len(read.passages)} passages, max_input_tokens is {self.limit}"
            f" and on_overflow is 'error'; {count} of the passages fit"
        )

    def sliced(self, read: Read) -> tuple[tuple[int, ...], int]:
        """Returns the tokens of what does not fit, and the characters before the last passage.

        Raises:
            ValueError: The prompt adds something of its own, or the last passage alone is too long.
        """
        *first, last = map(passage_text, read.passages)
        head = "".join(first)
        if self.render(read) != head + last:
            raise ValueError("on_overflow 'slice' takes prompt: '{context}' and separator: ''")
        assert self.slice
        return self.slice(head, last, self.limit)

    def _sliced(self, read: Read) -> Read:
        left, kept = self.sliced(read)[1], []
        for passage in read.passages[:-1]:
            kept.append(_slice(passage, 0, min(left, _length(passage))))
            left -= _length(kept[-1])
        passages = [passage for passage in (*kept, read.passages[-1]) if _length(passage)]
        return replace(read, passages=tuple(passages))

    def _fits(self, read: Read) -> bool:
        far = _FAR_TOO_LONG * self.limit
        head = self.render(_beginning(read, far + 1))
        if len(head) > far and self.size(head[:far]) > self.limit + _SLACK:
            return False
        return self.size(self.render(read)) <= self.limit

    def _check_room(self, read: Read) -> None:
        if not self._fits(_first(read, 0)):
            raise ValueError(
                f"instruction, question, choices and worked examples alone take"
                f" {self.size(self.render(_first(read, 0)))} tokens of the prompt, and"
                f" max_input_tokens is {self.limit}; they are never cut: raise max_input_tokens"
            )

    def _fitted(self, read: Read, count: int) -> Read:
        return _first(read, count) if count else self._truncated(read, 0)

    def _truncated(self, read: Read, count: int) -> Read:
        """Returns the first `kept` passages and as much of the next one as fits with them."""
        last = read.passages[count]
        start = _first(read, count)

        def shortened(length: int) -> Read:
            passages = (*start.passages, _slice(last, 0, length)) if length else start.passages
            return replace(read, passages=passages)

        guess = _CHARACTERS_A_TOKEN * self.limit - len(self.render(start))
        length = _length(last)
        return shortened(_largest(lambda n: self._fits(shortened(n)), length, guess))

    def _split(self, read: Read) -> list[Read]:
        parts: list[Read] = []
        left = read
        while left.passages:
            part = self._fitted(left, self.leading(left))
            if not part.passages:
                raise ValueError(
                    f"no character of the passages fits besides instruction, question, choices"
                    f" and worked examples in max_input_tokens={self.limit}: nothing to split into"
                )
            parts.append(part)
            left = replace(read, passages=_after(left.passages, part.passages))
        return parts


def _first(read: Read, count: int) -> Read:
    return replace(read, passages=read.passages[:count])


def _beginning(read: Read, characters: int) -> Read:
    """Returns the read with no more than these characters of its passages, if some are no blanks.

    Its prompt then begins like that of the whole read, of which a book need not be copied.
    """
    beginning: list[Chunk | str] = []
    left = characters
    for passage in read.passages:
        beginning.append(_slice(passage, 0, min(left, _length(passage))))
        left -= _length(passage)
        if left < 0:
            break
    written = left < 0 and any(passage_text(passage).strip() for passage in beginning)
    return replace(read, passages=tuple(beginning)) if written else read


def _length(passage: Chunk | str) -> int:
    return len(passage) if isinstance(passage, str) else passage.end - passage.start


def _slice(passage: Chunk | str, start: int, end: int) -> Chunk | str:
    if isinstance(passage, str):
        return passage[start:end]
    return passage.document.chunk(passage.start + start, passage.start + end)


def _after(passages: Sequence[Chunk | str], seen: Sequence[Chunk | str]) -> tuple[Chunk | str, ...]:
    """Returns what follows `seen`, a beginning of `passages` whose last may be shortened."""
    last = passages[len(seen) - 1]
    read, length = _length(seen[-1]), _length(last)
    rest = (_slice(last, read, length),) if read < length else ()
    return (*rest, *passages[len(seen) :])


def _largest(fits: Callable[[int], bool], upper: int, guess: int) -> int:
    """Returns the largest n up to `upper` that fits, or 0: strides from a guess, then bisects.

    What is returned was seen to fit, even where `fits` is not quite monotone (under BPE a longer
    text may have fewer tokens).
    """
    low, high = 0, upper + 1
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
