"""Models of transformers' as graphs for ONNX Runtime, and what stands in for them when they run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

__all__ = ["Axes", "Graph", "export"]

_OPSET = 17

Axes: TypeAlias = Mapping[int, str]


@dataclass(frozen=True)
class Graph:
    """A part of a model that becomes one file.

    Attributes:
        name: Of the file.
        compute: What it computes of the model and its inputs.
        inputs: An example of each.
        outputs: The names of what is computed.
        axes: Of inputs and outputs, the dimensions that differ from call to call, by name.
    """

    name: str
    compute: Callable[..., Any]
    inputs: Mapping[str, torch.Tensor]
    outputs: Sequence[str]
    axes: Mapping[str, Axes]


def export(model: PreTrainedModel, graph: Graph, folder: Path) -> None:
    """Writes a graph, its weights in float32, as `NAME.onnx` into the folder.

    It is traced: the exporter that reads Python instead takes half a minute for the smallest model.
    What tracing takes for constant that is none is found when the graph is compared.
    """
    import torch

    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")  # of what is traced, and that tracing is the older way
        torch.onnx.export(
            _traceable(model, graph.compute),
            tuple(graph.inputs.values()),
            str(folder / f"{graph.name}.onnx"),
            input_names=[*graph.inputs],
            output_names=[*graph.outputs],
            dynamic_axes={name: dict(axes) for name, axes in graph.axes.items()},
            opset_version=_OPSET,
            dynamo=False,
        )


def _traceable(model: PreTrainedModel, compute: Callable[..., Any]) -> torch.nn.Module:
    import torch

    class Traceable(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: torch.Tensor) -> Any:  # noqa: ANN401 -- as computed
            return compute(self.model, *inputs)

    return Traceable().eval()
