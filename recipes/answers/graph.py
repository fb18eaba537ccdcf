"""Builds the reader's graph for onnxruntime, which receives the weights when it is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx
from onnx import TensorProto, helper

_OPSET = 17
_CONTRIB = "com.microsoft"


class _Builder:
    """Collects nodes and the names of their weights.

    Args:
        shapes: Shape of each weight.
    """

    def __init__(self, shapes: Mapping[str, Sequence[int]]) -> None:
        self.shapes = shapes
        self.nodes: list[onnx.NodeProto] = []
        self.used: dict[str, None] = {}

    def weight(self, name: str) -> str:
        """Returns the name of a weight, and records that the graph uses it."""
        self.used[name] = None
        return name

    def add(
        self, kind: str, inputs: Sequence[str], output: str, domain: str = "", **extra: float
    ) -> str:
        """Adds a node and returns its output's name."""
        node = helper.make_node(kind, inputs, [output], domain=domain)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in extra.items())
        self.nodes.append(node)
        return output

    def initializers(self) -> list[onnx.TensorProto]:
        """Returns placeholders of the weights, without their content."""
        placeholders = []
        for name in self.used:
            tensor = TensorProto(
                name=name,
                dims=self.shapes[name],
                data_type=TensorProto.FLOAT,
                data_location=TensorProto.EXTERNAL,
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
) -> bytes:
    """Returns a graph of a BERT encoder with linear heads.

    Its inputs are `ids`, `types` and `mask`, (windows, length) in 32 bits, and each head has an
    output. Matrices have one column per output, and query, key and value form one matrix,
    `layer.N.attention`.

    Args:
        shapes: Shape of each weight.
        layers: Number of layers.
        attention_heads: Number of attention heads.
        heads: Name of each head, and whether it reads every token or only the first.
        epsilon: Number added to variances.
    """
    graph = _Builder(shapes)
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
    mixed = graph.add(
        "Attention",
        [state, *(graph.weight(f"{name}.attention.{part}") for part in ("weight", "bias")), "mask"],
        f"{name}.mixed",
        _CONTRIB,
        num_heads=attention_heads,
    )
    out = graph.add("MatMul", [mixed, graph.weight(f"{name}.out.weight")], f"{name}.out")
    attended = _norm(graph, f"{name}.out", out, state, epsilon)
    wide = graph.add("MatMul", [attended, graph.weight(f"{name}.wide.weight")], f"{name}.wide")
    bent = graph.add(
        "BiasGelu", [wide, graph.weight(f"{name}.wide.bias")], f"{name}.bent", _CONTRIB
    )
    narrow = graph.add("MatMul", [bent, graph.weight(f"{name}.narrow.weight")], f"{name}.narrow")
    return _norm(graph, f"{name}.narrow", narrow, attended, epsilon)


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
