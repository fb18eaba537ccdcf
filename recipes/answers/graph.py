"""Builds the reader's graphs for onnxruntime, which receive the weights when they are loaded.

The graph in 8 bits rounds the rows of each matrix product's input to 255 steps of their own
(LLM.int8, Dettmers et al. 2022, without its outliers), so that the outputs of a text do not depend
on other texts in the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from leporello.models.weights import SCALE

_OPSET = 17
_CONTRIB = "com.microsoft"


class _Builder:
    """Collects nodes and the names of their weights.

    With `int8`, matrices of layers are multiplied in 8 bits.
    """

    def __init__(self, shapes: Mapping[str, Sequence[int]], *, int8: bool) -> None:
        self.shapes = shapes
        self.int8 = int8
        self.nodes: list[onnx.NodeProto] = []
        self.used: dict[str, tuple[Sequence[int], int]] = {}
        self.constants: dict[str, onnx.TensorProto] = {}
        self._rounded: set[str] = set()

    def weight(self, name: str) -> str:
        """Returns the name of a weight, and records that the graph uses it."""
        self.used[name] = (self.shapes[name], TensorProto.FLOAT)
        return name

    def constant(self, name: str, value: np.generic | NDArray[Any]) -> str:
        """Returns the name of a constant."""
        self.constants[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def product(self, value: str, weight: str, output: str) -> str:
        """Adds the product of rows with a matrix of a layer, and returns its name."""
        if not self.int8:
            return self.add("MatMul", [value, self.weight(weight)], output)
        shape = self.shapes[weight]
        self.used[weight] = (shape, TensorProto.INT8)
        self.used[weight + SCALE] = (shape[1:], TensorProto.FLOAT)
        middle = self.constant("middle", np.uint8(128))
        step = self.constant("step", np.float32(1 / 127))
        if value not in self._rounded:
            self._rounded.add(value)
            self.add("Abs", [value], f"{value}.sizes")
            self.add("ReduceMax", [f"{value}.sizes"], f"{value}.largest", axes=[-1], keepdims=1)
            least = self.constant("least", np.float32(1e-9))
            self.add("Max", [f"{value}.largest", least], f"{value}.scale")
            self.add("Div", [value, f"{value}.scale"], f"{value}.shares")
            self.add("QuantizeLinear", [f"{value}.shares", step, middle], f"{value}.bytes")
        inputs = [f"{value}.bytes", weight, step, weight + SCALE, middle]
        self.add("MatMulIntegerToFloat", inputs, f"{output}.shares", _CONTRIB)
        return self.add("Mul", [f"{output}.shares", f"{value}.scale"], output)

    def add(
        self,
        kind: str,
        inputs: Sequence[str],
        output: str,
        domain: str = "",
        **extra: float | Sequence[int],
    ) -> str:
        """Adds a node and returns its output's name."""
        node = helper.make_node(kind, inputs, [output], domain=domain)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in extra.items())
        self.nodes.append(node)
        return output

    def initializers(self) -> list[onnx.TensorProto]:
        """Returns the constants, and placeholders of the weights, without their content."""
        placeholders = [*self.constants.values()]
        for name, (shape, kind) in self.used.items():
            tensor = TensorProto(
                name=name, dims=shape, data_type=kind, data_location=TensorProto.EXTERNAL
            )
            tensor.external_data.add(key="location", value="handed over")
            placeholders.append(tensor)
        return placeholders


def build_graph(
    shapes: Mapping[str, Sequence[int]],
    layers: int,
    attention_heads: int,
    heads: Mapping[str, bool],
    epsilon: float = 1e-12,
    *,
    int8: bool = False,
) -> bytes:
    """Returns a graph of a BERT encoder with linear heads.

    Its inputs are `ids`, `types` and `mask`, (windows, length) in 32 bits, and each head has an
    output. Matrices have one column per output, and query, key and value form one matrix,
    `layer.N.attention`. `heads` are names, and whether a head reads every token or only the first.
    With `int8`, the matrices of layers stay in 8 bits.
    """
    graph = _Builder(shapes, int8=int8)
    graph.nodes.append(
        helper.make_node(
            "EmbedLayerNormalization",
            [
                "ids",
                "types",
                graph.weight("words"),
                graph.weight("positions"),
                graph.weight("types.weight"),
                graph.weight("norm.weight"),
                graph.weight("norm.bias"),
            ],
            ["state", "unused"],
            domain=_CONTRIB,
            epsilon=epsilon,
        )
    )
    state = "state"
    for number in range(layers):
        state = _layer(graph, f"layer.{number}", state, attention_heads, epsilon)
    outputs = []
    for name, reads_every_token in heads.items():
        head_input = state
        if not reads_every_token:
            graph.nodes.append(helper.make_node("Constant", [], [f"{name}.first"], value_int=0))
            head_input = graph.add("Gather", [state, f"{name}.first"], f"{name}.read", axis=1)
        weight = graph.weight(f"{name}.weight")
        product = graph.add("MatMul", [head_input, weight], f"{name}.product")
        graph.add("Add", [product, graph.weight(f"{name}.bias")], name)
        width = shapes[f"{name}.weight"][1]
        shape: list[str | int | None] = ["windows", width]
        if reads_every_token:
            shape.insert(1, "length")
        outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT32, ["windows", "length"])
        for name in ("ids", "types", "mask")
    ]
    network = helper.make_graph(graph.nodes, "reader", inputs, outputs, graph.initializers())
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_CONTRIB, 1)]
    model = helper.make_model(network, opset_imports=opsets, ir_version=8)
    content: bytes = model.SerializeToString()
    return content


def _layer(graph: _Builder, name: str, state: str, attention_heads: int, epsilon: float) -> str:
    """Adds one layer and returns the name of its output."""
    mixed = _attention(graph, name, state, attention_heads)
    out = graph.product(mixed, f"{name}.out.weight", f"{name}.out")
    attended = _norm(graph, f"{name}.out", out, state, epsilon)
    wide = graph.product(attended, f"{name}.wide.weight", f"{name}.wide")
    bent = graph.add(
        "BiasGelu", [wide, graph.weight(f"{name}.wide.bias")], f"{name}.bent", _CONTRIB
    )
    narrow = graph.product(bent, f"{name}.narrow.weight", f"{name}.narrow")
    return _norm(graph, f"{name}.narrow", narrow, attended, epsilon)


def _attention(graph: _Builder, name: str, state: str, attention_heads: int) -> str:
    """Adds the attention of a layer and returns the name of its output."""
    weight, output = f"{name}.attention.weight", f"{name}.mixed"
    heads = {"num_heads": attention_heads}
    if not graph.int8:
        inputs = [state, graph.weight(weight), graph.weight(f"{name}.attention.bias"), "mask"]
        return graph.add("Attention", inputs, output, _CONTRIB, **heads)
    product = graph.product(state, weight, f"{name}.joined")
    sizes = graph.constant("thirds", np.full(3, graph.shapes[weight][1] // 3))
    parts = [f"{name}.{part}" for part in ("query", "key", "value")]
    graph.nodes.append(helper.make_node("Split", [product, sizes], parts, axis=2))
    inputs = [*parts, graph.weight(f"{name}.attention.bias"), "mask"]
    return graph.add("MultiHeadAttention", inputs, output, _CONTRIB, **heads)


def _norm(graph: _Builder, name: str, value: str, skipped: str, epsilon: float) -> str:
    """Adds a bias, a skip connection and a normalisation; returns the name of the output."""
    return graph.add(
        "SkipLayerNormalization",
        [
            value,
            skipped,
            graph.weight(f"{name}.norm.weight"),
            graph.weight(f"{name}.norm.bias"),
            graph.weight(f"{name}.bias"),
        ],
        f"{name}.normed",
        _CONTRIB,
        epsilon=epsilon,
    )
