"""Protocol of backends: transformers and other libraries that run the same models."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

from leporello.readers.backends.decoding import Decoding
from leporello.readers.backends.pretrained import DType, Tokens
from leporello.readers.batching.micro_batches import Generation, ModelInput

# One parameter for both backends; a second one would be ignored by one of them (decision 18).
Precision: TypeAlias = (
    DType | Literal["int8", "int8_float16", "int8_bfloat16"]  # only with CTranslate2
)


class Backend(Protocol):
    """A module that runs one kind of model with one library; only it uses the loaded model."""

    def check(self, model: str, dtype: Precision, decoding: Decoding) -> None:
        """Raises ValueError for settings with which the library differs from transformers.

        Does not load the model, since the check of a pipeline calls it.
        """
        ...

    def load(self, model: str, dtype: Precision, device: str) -> Any:  # noqa: ANN401 -- any type
        """Returns the loaded model, for `write` and `score`."""
        ...

    def write(
        self,
        model: Any,  # noqa: ANN401 -- as loaded
        tokens: Tokens,
        decoding: Decoding,
        prompts: Sequence[ModelInput],
    ) -> list[Generation]:
        """Returns the texts that the model generates."""
        ...

    def score(
        self,
        model: Any,  # noqa: ANN401 -- as loaded
        tokens: Tokens,
        prompts: Sequence[ModelInput],
    ) -> list[Generation]:
        """Returns the scores of the choices."""
        ...


def torch_dtype(dtype: Precision) -> DType:
    """Returns the precision as torch names it.

    Raises:
        ValueError: Torch lacks the precision.
    """
    match dtype:
        case "int8" | "int8_float16" | "int8_bfloat16":
            raise ValueError(f"dtype {dtype!r} needs backend: ctranslate2")
    return dtype


def threads() -> int:
    """Returns the number of threads per process: OMP_NUM_THREADS, or 1."""
    # OpenMP allows a list with a number per nested level: `4,2`.
    setting = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    # One by default, since processes run in parallel and more threads slow each other (decision 4).
    return int(setting) if setting.isdecimal() and int(setting) else 1
