"""The backends of the readers that write, by their names."""

from __future__ import annotations

from collections.abc import Mapping

from readers import (
    ctranslate2_causal,
    ctranslate2_seq2seq,
    decoder_only,
    encoder_decoder,
    onnxruntime_causal,
    onnxruntime_seq2seq,
    vllm_causal,
)
from readers.backends import Backend, CausalBackend, Engine

__all__ = ["CAUSAL", "SEQ2SEQ"]

CAUSAL: Mapping[CausalBackend, Engine] = {
    "transformers": decoder_only,
    "ctranslate2": ctranslate2_causal,
    "onnxruntime": onnxruntime_causal,
    "vllm": vllm_causal,
}
SEQ2SEQ: Mapping[Backend, Engine] = {
    "transformers": encoder_decoder,
    "ctranslate2": ctranslate2_seq2seq,
    "onnxruntime": onnxruntime_seq2seq,
}
