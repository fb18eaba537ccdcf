"""How many tokens a micro-batch may have: as asked for, or as many as the memory holds."""

from __future__ import annotations

import gc
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Literal, TypeAlias

from leporello.core.protocols import Positive
from leporello.readers.batching.micro_batches import Generation, ModelInput, batches

Batch: TypeAlias = Sequence[ModelInput]
Answer: TypeAlias = Callable[[Batch], list[Generation]]
BatchTokens: TypeAlias = Positive | Literal["auto"]

# More gain nothing on a CPU: a row costs the same in a larger batch, and padding grows.
_ON_CPU = 4096
# Of a GPU's free memory, once the model is there; what fragments it and what a window of other
# shapes takes has the rest.
_SHARE = 0.7

_log = logging.getLogger("leporello")


class TokenBudget:
    """The tokens of a micro-batch: halved, for good, where the memory does not suffice."""

    def __init__(self, asked: int | Literal["auto"], find: Callable[[], int]) -> None:
        """Finds nothing yet.

        Args:
            asked: Number of tokens that the reader's parameter asks for, or `auto`.
            find: A function that returns what the memory allows; asked once, if at all.
        """
        self._asked, self._find = asked, find
        self._tokens = None if asked == "auto" else asked
        self._counts = Counter(batches=0, prompt_tokens=0, padded_tokens=0, halvings=0)

    @property
    def tokens(self) -> int:
        """Of a micro-batch at most, padding and tokens to come included."""
        if self._tokens is None:
            self._tokens = self._find()
        return self._tokens

    @property
    def finds(self) -> bool:
        """Whether the size is yet to be found, for which the model is loaded."""
        return self._tokens is None

    def sizes(self) -> dict[str, int]:
        """Returns what is in use and no parameter says: found, or lowered."""
        return {} if self.tokens == self._asked else {"batch_tokens": self.tokens}

    def settle(self, sizes: Mapping[str, int]) -> None:
        """Uses what an earlier process had come to."""
        self._tokens = sizes.get("batch_tokens", self._tokens)

    def counts(self) -> dict[str, int]:
        """Returns what came of all micro-batches so far.

        `batches` that were answered, the `prompt_tokens` of their prompts, the same with padding
        (`padded_tokens`: prompts times the longest of their batch), and `halvings`: how many times
        the memory did not suffice.
        """
        return dict(self._counts)

    def read(
        self, prompts: Iterable[ModelInput], rows: int, new_tokens: int, answer: Answer
    ) -> dict[ModelInput, Generation]:
        """Returns the reply to each prompt.

        Args:
            prompts: Prompts, none twice.
            rows: Number of beams of a prompt without choices.
            new_tokens: Number of tokens that are written for such a prompt at most.
            answer: A function that answers a micro-batch.

        Raises:
            RuntimeError: The memory does not suffice for one prompt.
        """
        replies_by_prompt: dict[ModelInput, Generation] = {}
        left = list(prompts)
        while left:
            planned, left = list(batches(left, self.tokens, rows, new_tokens)), []
            for index, batch in enumerate(planned):
                if (replies := _fitting(answer, batch)) is None:
                    left = list(chain.from_iterable(planned[index:]))
                    self._halve(max(_size(rest, rows, new_tokens) for rest in planned[index:]))
                    break
                self._count(batch)
                replies_by_prompt |= zip(batch, replies, strict=True)
        return replies_by_prompt

    def _count(self, batch: Batch) -> None:
        lengths = [len(prompt.tokens) for prompt in batch]
        padded = len(lengths) * max(lengths)
        self._counts.update(batches=1, prompt_tokens=sum(lengths), padded_tokens=padded)

    def _halve(self, size: int) -> None:
        self._counts["halvings"] += 1
        self._tokens = max(1, min(self.tokens, size) // 2)
        _log.warning(
            "out of memory: micro-batches have at most %d tokens from now on (batch_tokens)",
            self._tokens,
        )


def memory_budget(
    prompt: ModelInput,
    answer: Answer,
    device: str,
    most: int,
    *,
    rows: int = 1,
    new_tokens: int = 0,
) -> int:
    """Returns the tokens of a batch that leaves some memory free.

    On a CPU it is the same everywhere; on a GPU it is measured, by growing batches.

    Args:
        prompt: A prompt as long as the window.
        answer: A function that answers batches of it.
        device: Device as torch names it.
        most: Number of prompts that are ever read at once.
        rows: Number of rows that the prompt takes in memory: its beams.
        new_tokens: Number of tokens that are written for it at most.
    """
    if _free_bytes(device) is None:
        return _ON_CPU
    _free_memory()
    _used(prompt, answer, device, 1)  # what the libraries take for themselves
    whole = _free_bytes(device) or 0
    count = 1
    while count < most and _used(prompt, answer, device, 2 * count) <= _SHARE * whole:
        count *= 2
    _free_memory()
    return count * _size([prompt], rows, new_tokens)


def _used(prompt: ModelInput, answer: Answer, device: str, count: int) -> float:
    """Returns the bytes that so many prompts take, infinitely many if they do not fit."""
    _free_memory()
    before = _free_bytes(device) or 0
    try:
        answer([prompt] * count)
    except RuntimeError as error:
        if not _out_of_memory(error):
            raise
        return float("inf")
    return before - (_free_bytes(device) or 0)


def _free_bytes(device: str) -> int | None:
    """Returns the GPU's free bytes; None where there is none."""
    import torch

    if device == "auto" or device.startswith("cuda"):
        place = None if device == "auto" else device
        return torch.cuda.mem_get_info(place)[0] if torch.cuda.is_available() else None
    return None


def _fitting(answer: Answer, batch: Batch) -> list[Generation] | None:
    """Returns the answers, or None if they exhaust the memory.

    Raises:
        RuntimeError: The memory does not suffice for one prompt.
    """
    try:
        return answer(batch)
    except RuntimeError as error:  # torch.OutOfMemoryError is one
        if len(batch) == 1 or not _out_of_memory(error):
            raise
    # Outside the handler, whose traceback would keep the failed batch's tensors alive.
    _free_memory()
    return None


def _size(batch: Batch, rows: int, new_tokens: int) -> int:
    costs = [prompt.cost(rows, new_tokens) for prompt in batch]
    longest = max(len(prompt.tokens) for prompt in batch)
    return sum(row_count for row_count, _ in costs) * (longest + max(new for _, new in costs))


def _out_of_memory(error: RuntimeError) -> bool:
    message = str(error).lower()
    # The words of CUDA, MPS and ROCm; and of the CPU allocator.
    return "out of memory" in message or "can't allocate memory" in message


def _free_memory() -> None:
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
