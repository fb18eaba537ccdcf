"""Which library computes: transformers, or another that runs the same models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

from readers.batching import Prompt, Reply
from readers.decoding import Decoding
from readers.pretrained import DType, Tokens

__all__ = ["Backend", "Engine", "Precision", "torch_dtype"]

Backend: TypeAlias = Literal["transformers", "ctranslate2"]
Precision: TypeAlias = (
    DType | Literal["int8", "int8_float16", "int8_bfloat16"]  # these are CTranslate2's
)


class Engine(Protocol):
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
        prompts: Sequence[Prompt],
    ) -> list[Reply]:
        """Returns what the model writes."""
        ...

    def score(
        self,
        model: Any,  # noqa: ANN401 -- as loaded
        tokens: Tokens,
        prompts: Sequence[Prompt],
    ) -> list[Reply]:
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
