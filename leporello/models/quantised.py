"""Converts BERT models from 8-bit ONNX graphs to floating point."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from transformers import BertConfig, BertModel

from leporello.core.errors import UserError

_QUANTISED = "_quantized"
_PREFIX = "bert."  # prefix of the encoder's weights if the graph also has a head


def quantised_bert(path: Path, attention_heads: int) -> BertModel:
    """Returns the encoder of a quantised graph, which lacks the number of attention heads.

    Raises:
        UserError: The graph is not a quantised BERT of a supported form.
    """
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
    """Returns the PyTorch names of the weights in matrix products.

    The exporter numbers most of these weights, so their names are taken from the product's output,
    such as `/bert/encoder/layer.0/attention/self/query/MatMul_output_0_quantized`.
    """
    names = {}
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            stem = node.input[1].removesuffix(_QUANTISED)
            place = node.output[0].split("/MatMul")[0].strip("/").replace("/", ".")
            names[stem] = stem if stem.endswith(".weight") else f"{place}.weight"
    return names
