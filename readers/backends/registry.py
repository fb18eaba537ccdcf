"""The backends of the readers that write, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from leporello.readers.backends import transformers_causal, transformers_seq2seq, vllm
from leporello.readers.backends.backend import Backend
from leporello.readers.backends.ctranslate2 import causal as ctranslate2_causal
from leporello.readers.backends.ctranslate2 import seq2seq as ctranslate2_seq2seq

BackendName: TypeAlias = Literal["transformers", "ctranslate2"]
CausalBackendName: TypeAlias = BackendName | Literal["vllm"]

CAUSAL: Mapping[CausalBackendName, Backend] = {
    "transformers": transformers_causal,
    "ctranslate2": ctranslate2_causal,
    "vllm": vllm,
}
# These are given all prompts at once: what they compute together is theirs to say.
PACKING: frozenset[CausalBackendName] = frozenset({"vllm"})
SEQ2SEQ: Mapping[BackendName, Backend] = {
    "transformers": transformers_seq2seq,
    "ctranslate2": ctranslate2_seq2seq,
}
