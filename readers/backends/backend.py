"""Which library computes: transformers, or another that runs the same models."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

from leporello.readers.backends.decoding import Decoding
from leporello.readers.backends.pretrained import DType, Tokens
from leporello.readers.batching.micro_batches import Generation, ModelInput

Precision: TypeAlias = (
    DType | Literal["int8", "int8_float16", "int8_bfloat16"]  # these are CTranslate2's
)


class Backend(Protocol):
    """A module that runs one kind of model with one library; what it loads only it understands."""

    def check(self, model: str, dtype: Precision, decoding: Decoding) -> None:
        """Refuses, by a ValueError, what the library cannot do as transformers would.

        Nothing is loaded: it runs when a pipeline is checked.
        """
        ...

    def load(self, model: str, dtype: Precision, device: str) -> Any:  # noqa: ANN401 -- its own
        """Returns the model, ready to read, as the next two take it."""
        ...

    def write(
        self,
        model: Any,  # noqa: ANN401 -- as loaded
        tokens: Tokens,
        decoding: Decoding,
        prompts: Sequence[ModelInput],
    ) -> list[Generation]:
        """Returns what the model writes."""
        ...

    def score(
        self,
        model: Any,  # noqa: ANN401 -- as loaded
        tokens: Tokens,
        prompts: Sequence[ModelInput],
    ) -> list[Generation]:
        """Returns the choices' scores."""
        ...


def torch_dtype(dtype: Precision) -> DType:
    """Returns the precision as torch has it.

    Raises:
        ValueError: It has none such that keeps the model's quality.
    """
    match dtype:
        case "int8" | "int8_float16" | "int8_bfloat16":
            raise ValueError(f"dtype {dtype!r} needs backend: ctranslate2")
    return dtype


def threads() -> int:
    """Returns the threads of a process: one, unless OMP_NUM_THREADS says otherwise."""
    setting = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(setting) if setting.isdecimal() and int(setting) else 1
