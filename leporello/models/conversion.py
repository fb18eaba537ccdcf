"""Quantised weights as safetensors in floating point."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import TYPE_CHECKING

from leporello.core.environment.extras import require
from leporello.core.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def convert(quantised: Path, folder: Path) -> None:
    """Writes the weights, in float32, and the tokenizer to a new folder.

    Args:
        quantised: A GGUF file, or a folder with a graph in ONNX.
        folder: Folder that is made.

    Raises:
        UserError: They cannot be converted.
    """
    with contextlib.redirect_stderr(io.StringIO()):  # progress bars that cannot be turned off
        (_convert_gguf if quantised.is_file() else _convert_onnx)(quantised, folder)


def _convert_onnx(quantised: Path, folder: Path) -> None:
    require(f"model {str(quantised)!r}", "onnx", "sentence_transformers")
    from leporello.models.colbert import convert_colbert

    convert_colbert(quantised, folder)


def _convert_gguf(gguf: Path, folder: Path) -> None:
    tokenizer, model = _from_gguf(gguf)
    # The weights are no longer quantised, and must not be saved as if they were.
    model.hf_quantizer = None  # type: ignore[assignment]  # typed as any module attribute
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)


def _from_gguf(gguf: Path) -> tuple[PreTrainedTokenizerBase, PreTrainedModel]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, file = gguf.parent, {"gguf_file": gguf.name}
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, **file)
        model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, trust_remote_code=False, **file
        )
    except (OSError, ValueError, KeyError, NotImplementedError) as error:
        raise UserError(
            f"model {str(gguf)!r} could not be converted from GGUF: {error};"
            f" use the original model, with its safetensors"
        ) from error
    return tokenizer, model
