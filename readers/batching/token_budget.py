"""Token budget of micro-batches: a given number, or as many tokens as the memory holds."""

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
# Number of texts that are generated for a prompt at once, and the most new tokens of each.
Beams: TypeAlias = tuple[int, int]

_ON_CPU = 4096  # larger batches are not faster on a CPU: rows cost the same, and padding grows

_log = logging.getLogger("leporello")


class TokenBudget:
    """Maximum number of tokens per micro-batch, halved permanently when memory runs out."""

    def __init__(
        self, setting: int | Literal["auto"], find: Callable[[], int], beams: Beams = (1, 0)
    ) -> None:
        """Creates the budget `setting`; `find` returns that of `auto`."""
        self._setting, self._find, self._beams = setting, find, beams
        self._tokens = None if setting == "auto" else setting
        self._counts = Counter(batches=0, prompt_tokens=0, padded_tokens=0, halvings=0)

    @property
    def tokens(self) -> int:
        """Maximum number of tokens per micro-batch, including padding and new tokens."""
        if self._tokens is None:
            self._tokens = self._find()
        return self._tokens

    @property
    def finds(self) -> bool:
        """Whether the size must still be measured, which loads the model."""
        return self._tokens is None

    def sizes(self) -> dict[str, int]:
        """Returns the size if it differs from the parameter: measured or halved."""
        return {} if self.tokens == self._setting else {"batch_tokens": self.tokens}

    def settle(self, sizes: Mapping[str, int]) -> None:
        """Uses the size that an earlier process measured."""
        self._tokens = sizes.get("batch_tokens", self._tokens)

    def counts(self) -> dict[str, int]:
        """Returns counts of all micro-batches so far.

        Keys are `batches`, `prompt_tokens`, `padded_tokens` (prompts times the longest prompt of
        each batch), and `halvings`, the number of times that memory ran out.
        """
        return dict(self._counts)

    def read(self, prompts: Iterable[ModelInput], answer: Answer) -> dict[ModelInput, Generation]:
        """Returns the reply to each prompt; raises RuntimeError if memory is too small for one."""
        replies_by_prompt: dict[ModelInput, Generation] = {}
        planned = list(batches(prompts, self.tokens, *self._beams))
        for index, batch in enumerate(planned):
            if (replies := _fitting(answer, batch)) is None:
                self._halve(_size(batch, self._beams))
                return replies_by_prompt | self.read(chain.from_iterable(planned[index:]), answer)
            lengths = [len(prompt.tokens) for prompt in batch]
            padded = len(batch) * max(lengths)
            self._counts.update(batches=1, prompt_tokens=sum(lengths), padded_tokens=padded)
            replies_by_prompt |= zip(batch, replies, strict=True)
        return replies_by_prompt

    def _halve(self, size: int) -> None:
        self._counts["halvings"] += 1
        # For good, since a second lack of memory costs more than smaller batches.
        self._tokens = max(1, min(self.tokens, size) // 2)
        _log.warning(
            "out of memory: reducing micro-batches to %d tokens (batch_tokens)", self._tokens
        )


def memory_budget(
    prompt: ModelInput, answer: Answer, device: str, most: int, beams: Beams = (1, 0)
) -> int:
    """Returns the tokens of the largest batch that leaves memory free; constant on a CPU.

    The batch has at most `most` of the longest prompts.
    """
    import torch

    is_gpu = device == "auto" or device.startswith("cuda")
    if not (is_gpu and torch.cuda.is_available()):
        return _ON_CPU
    count = most
    # Half as many prompts again must fit: for fragmentation, and for batches of other shapes.
    while count > 1 and _fitting(answer, [prompt] * (count + count // 2)) is None:
        count //= 2
    _free_memory()
    return count * _size([prompt], beams)


def _fitting(answer: Answer, batch: Batch) -> list[Generation] | None:
    try:
        return answer(batch)
    except RuntimeError as error:  # base class of torch.OutOfMemoryError
        if len(batch) == 1 or not _out_of_memory(error):
            raise
    # After the handler, since its traceback would keep the failed batch's tensors alive.
    _free_memory()
    return None


def _size(batch: Batch, beams: Beams) -> int:
    costs = [prompt.cost(*beams) for prompt in batch]
    longest = max(len(prompt.tokens) for prompt in batch)
    return sum(row_count for row_count, _ in costs) * (longest + max(new for _, new in costs))


def _out_of_memory(error: RuntimeError) -> bool:
    message = str(error).lower()
    # Messages of CUDA, MPS and ROCm, and of the CPU allocator.
    return "out of memory" in message or "can't allocate memory" in message


def _free_memory() -> None:
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
