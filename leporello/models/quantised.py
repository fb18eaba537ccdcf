"""BERTs that come as an ONNX graph in 8 bits, back in floating point."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from transformers import BertConfig, BertModel

from leporello.core.errors import UserError

_QUANTISED = "_quantized"
_PREFIX = "bert."  # of an encoder's weights, where the graph has a head besides


def quantised_bert(path: Path, attention_heads: int) -> BertModel:
    """Returns the encoder of a quantised graph, which does not tell how many heads a layer has.

    Raises:
        UserError: It is no quantised BERT that is known here.
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
        encoder = BertModel(config, add_pooling_layer=False)
        encoder.load_state_dict({name: weights[name] for name in encoder.state_dict()})
    except (KeyError, ValueError, RuntimeError) as error:
        first = str(error).splitlines()[0]
        raise UserError(f"{path} is not a quantised BERT that is known here: {first}") from None
    return encoder


def _dequantised(path: Path) -> dict[str, torch.Tensor]:
    """Returns every weight of a quantised graph in floating point, under its name in PyTorch."""
    try:
        graph = onnx.load(str(path)).graph
    except Exception as error:  # protobuf has its own, without types
        raise UserError(f"{path} is no ONNX graph: {error}") from None
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
        if stem in products:  # a product's right side lies transposed to what PyTorch keeps
            plain = np.ascontiguousarray(plain.T)
        weights[products.get(stem, stem)] = torch.from_numpy(plain)
    return weights


def _product_names(graph: onnx.GraphProto) -> dict[str, str]:
    """Returns the PyTorch name of each weight that a product of matrices reads.

    The exporter names most of these by number, so the name is taken from the product's output,
    such as `/bert/encoder/layer.0/attention/self/query/MatMul_output_0_quantized`.
    """
    names = {}
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            stem = node.input[1].removesuffix(_QUANTISED)
            place = node.output[0].split("/MatMul")[0].strip("/").replace("/", ".")
            names[stem] = stem if stem.endswith(".weight") else f"{place}.weight"
    return names
