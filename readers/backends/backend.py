"""Backends, the libraries that run models: their protocol, and their table by name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from leporello.core.environment.classes import find_class
from leporello.core.protocols import BACKEND
from leporello.readers.backends import transformers_causal, transformers_seq2seq, vllm
from leporello.readers.backends.decoding import Decoding
from leporello.readers.backends.pretrained import DType, Tokens
from leporello.readers.batching.micro_batches import Generation, ModelInput

Form: TypeAlias = Literal["causal", "seq2seq"]


class Backend(Protocol):
    """A module that runs one kind of model with one library; only it uses the loaded model."""

    def check(self, model: str, dtype: DType, decoding: Decoding) -> None:
        """Raises ValueError for settings with which the library differs from transformers.

        Does not load the model, since the check of a pipeline calls it.
        """

    def load(self, model: str, dtype: DType, device: str) -> Any:  # noqa: ANN401 -- any type
        """Returns the loaded model, for `write` and `score`."""

    def write(
        self,
        model: Any,  # noqa: ANN401 -- as loaded
        tokens: Tokens,
        decoding: Decoding,
        prompts: Sequence[ModelInput],
    ) -> list[Generation]:
        """Returns the texts that the model generates."""

    def score(
        self,
        model: Any,  # noqa: ANN401 -- as loaded
        tokens: Tokens,
        prompts: Sequence[ModelInput],
    ) -> list[Generation]:
        """Returns the scores of the choices."""


# The values are modules, since a backend has four functions and no state (decision 18).
class Transformers:
    """Hugging Face's transformers: all models, on all devices of torch."""

    causal: ClassVar[Backend] = transformers_causal
    seq2seq: ClassVar[Backend] = transformers_seq2seq


class Vllm:
    """vLLM: decoder-only models on a GPU, which takes all prompts of a batch at once."""

    packs: ClassVar[bool] = True
    causal: ClassVar[Backend] = vllm


# A backend is a word, not a nested class, so that runs with `backend: vllm` keep their signatures.
# The price is that it has no parameters (decision 39).
BACKENDS = {"transformers": Transformers, "vllm": Vllm}


def packs(name: str) -> bool:
    """Returns whether a backend takes all prompts at once and makes its own micro-batches."""
    return bool(getattr(_class(name), "packs", False))


@cache
def backend_of(name: str, form: Form) -> Backend:
    """Returns the backend of this name; a user's backend is created once per process.

    Raises UserError if it does not exist, ValueError if it does not run models of this form.
    """
    cls = _class(name)
    if not (hasattr(cls, "causal") or hasattr(cls, "seq2seq")):
        plug_in: Backend = cls()
        return plug_in
    if not hasattr(cls, form):
        allowed = ", ".join(key for key, backend in BACKENDS.items() if hasattr(backend, form))
        raise ValueError(f"backend {name!r} does not run such models; allowed: {allowed}")
    backend: Backend = getattr(cls, form)
    return backend


def _class(name: str) -> Any:  # noqa: ANN401 -- a table of backends, or the class of one
    return find_class(name, BACKEND, Path())
