"""The backends of the readers that write, by their names."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from leporello.core.environment.classes import find_class
from leporello.core.protocols import BACKEND
from leporello.readers.backends import transformers_causal, transformers_seq2seq, vllm
from leporello.readers.backends.backend import Backend
from leporello.readers.backends.ctranslate2 import causal as ctranslate2_causal
from leporello.readers.backends.ctranslate2 import seq2seq as ctranslate2_seq2seq


class Transformers:
    """Hugging Face's transformers: every model, on whatever torch runs on."""

    causal: ClassVar[Backend] = transformers_causal
    seq2seq: ClassVar[Backend] = transformers_seq2seq


class CTranslate2:
    """CTranslate2: some architectures, quicker on a CPU, in eight bits too."""

    causal: ClassVar[Backend] = ctranslate2_causal
    seq2seq: ClassVar[Backend] = ctranslate2_seq2seq


class Vllm:
    """vLLM: decoder-only models on a GPU, all prompts of a window at once."""

    packs: ClassVar[bool] = True
    causal: ClassVar[Backend] = vllm


BACKENDS = {"transformers": Transformers, "ctranslate2": CTranslate2, "vllm": Vllm}


def packs(name: str) -> bool:
    """Says whether a backend is given all prompts at once: what it computes together is its own."""
    return bool(getattr(_class(name), "packs", False))


@cache
def backend_of(name: str, form: Literal["causal", "seq2seq"]) -> Backend:
    """Returns the backend of this name; one of the user's own is made once a process.

    Raises:
        UserError: There is none.
        ValueError: It does not run models of this form.
    """
    cls = _class(name)
    if not (hasattr(cls, "causal") or hasattr(cls, "seq2seq")):
        own: Backend = cls()
        return own
    if not hasattr(cls, form):
        able = [other for other, its in BACKENDS.items() if hasattr(its, form)]
        raise ValueError(f"backend {name!r} runs no such models; allowed: {', '.join(able)}")
    backend: Backend = getattr(cls, form)
    return backend


def _class(name: str) -> Any:  # noqa: ANN401 -- it has some of a backend's forms, or is one
    return find_class(name, BACKEND, Path())
