"""Writes a trained network in the format of the reader `Embedded`."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper

from leporello.core.errors import UserError
from leporello.core.records import JSON
from leporello.models.weights import Arrays
from recipes.answers.graph import build_graph
from recipes.answers.names import is_transposed, shipped_names
from recipes.answers.network import AnswerNetwork
from recipes.answers.windows import LABELS
from recipes.weights import pack, write_model

if TYPE_CHECKING:
    from recipes.answers.base import Base

HEADS = {"span": True, "label": False}
"""Names of the heads, and whether a head reads every token or only the first."""

_INPUTS = ("ids", "types", "mask")
_OPSET = 17
_SAME = 1e-3  # maximum difference of logits of a correctly exported graph


def ship(network: AnswerNetwork, base: Base, folder: Path, card: str, language: str = "") -> None:
    """Writes graph, weights, tokenizer, card and `config.json` into a new folder.

    Matrices of a BERT are stored in 8 bits, with a graph that computes in 8 bits too; the graph of
    another encoder has 32-bit weights. Raises UserError if ONNX lacks the architecture.
    """
    network = network.cpu().eval()
    if _is_plain_bert(network):
        graphs, weights = _bert(network)
    else:
        graphs, weights = {"graph.onnx": _exported(network)}, {}
    files = {
        **graphs,
        "weights.safetensors": pack(weights),
        "tokenizer.json": base.tokenizer.to_str().encode(),
        "card.md": card.encode(),
    }
    config: dict[str, JSON] = {
        "cls": base.special[0],
        "sep": base.special[1],
        "labels": list(LABELS),
        "heads": {**HEADS},
        "longest": base.longest,
        "language": language,
    }
    write_model(folder, files, config)


def _is_plain_bert(network: AnswerNetwork) -> bool:
    config = network.encoder.config
    positions = getattr(config, "position_embedding_type", None)
    is_bert = config.model_type == "bert" and config.hidden_act == "gelu" and network.has_types
    return is_bert and positions in (None, "absolute")


def _bert(network: AnswerNetwork) -> tuple[dict[str, bytes], Arrays]:
    config = network.encoder.config
    weights = shipped_names(network.state_dict(), config.num_hidden_layers)
    shapes = {
        name: value.shape[::-1] if is_transposed(name, value) else value.shape
        for name, value in weights.items()
    }
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    names = {"graph.onnx": False, "graph.int8.onnx": True}
    return {
        name: build_graph(shapes, layers, heads, HEADS, config.layer_norm_eps, int8=int8)
        for name, int8 in names.items()
    }, weights


def _exported(network: AnswerNetwork) -> bytes:
    """Returns the graph of any encoder with its weights, after a comparison with torch's logits."""
    kind = network.encoder.config.model_type
    batch, length = {0: "windows", 1: "length"}, 16
    axes = {**dict.fromkeys((*_INPUTS, "span"), batch), "label": {0: "windows"}}
    content = io.BytesIO()
    try:
        network.encoder.set_attn_implementation("eager")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                network, _example(length), content,  # type: ignore[arg-type]  # its stub lacks files
                input_names=list(_INPUTS),
                output_names=list(HEADS), dynamic_axes=axes, opset_version=_OPSET, dynamo=False,
            )  # fmt: skip
        graph = _with_all_inputs(content.getvalue())
        # Another length than the traced one, to find constants that depend on the length.
        difference = _difference(network, graph, _example(3 * length))
    except Exception as error:  # torch, onnx and onnxruntime have different classes
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise UserError(f"a {kind} cannot be exported to ONNX here: {first}") from error
    if not difference < _SAME:
        raise UserError(
            f"the logits of a {kind} exported to ONNX differ from torch's by {difference:.2g};"
            " choose a base of another architecture"
        )
    return graph


def _example(length: int) -> tuple[torch.Tensor, ...]:
    """Returns ids, types and mask of two windows, of which the second is shorter."""
    ids = (torch.arange(2 * length, dtype=torch.int32) % 7 + 3).reshape(2, length)
    mask = torch.ones_like(ids)
    mask[1, length - 4 :] = 0
    return ids, torch.zeros_like(ids), mask


def _with_all_inputs(content: bytes) -> bytes:
    """Returns the graph with all three inputs; the exporter leaves out unused inputs."""
    model = onnx.load_from_string(content)
    existing = {value.name for value in model.graph.input}
    model.graph.input.extend(
        helper.make_tensor_value_info(name, TensorProto.INT32, ["windows", "length"])
        for name in _INPUTS
        if name not in existing
    )
    graph: bytes = model.SerializeToString()
    return graph


def _difference(network: AnswerNetwork, graph: bytes, inputs: tuple[torch.Tensor, ...]) -> float:
    """Returns the maximum difference of the logits of the first window."""
    import onnxruntime

    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    feed = {name: value.numpy() for name, value in zip(_INPUTS, inputs, strict=True)}
    outputs = session.run(list(HEADS), feed)
    with torch.no_grad():
        expected = network(*inputs)
    pairs = zip(expected, outputs, strict=True)
    return max(float(np.abs(tensor[0].numpy() - array[0]).max()) for tensor, array in pairs)
