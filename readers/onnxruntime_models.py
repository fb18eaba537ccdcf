"""Models that ONNX Runtime runs: exported once, compared with the original, and kept.

What runs is a model of transformers' own class without weights, whose computing is done by graphs:
so everything around the model, beam search and its rules among it, is transformers'.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leporello.errors import UserError
from readers.backends import Precision, require, threads
from readers.conversions import config_of, converted, refuse_type
from readers.onnxruntime_graphs import Graph, export
from readers.pretrained import Architecture, Tokens, load_model, quiet

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

__all__ = ["Kind", "Sessions", "check", "load"]

_FORMAT = 1  # of what is written here; another is exported anew
_FACTS = "leporello.json"
_TOLERANCE = 0.01  # rounding stays far below, a part that is left out or frozen far above


@dataclass(frozen=True)
class Kind:
    """A kind of model.

    Attributes:
        architecture: The class of transformers that loads the original.
        types: The model types that were tried, as config.json names them.
        graphs: The parts of a model that are exported.
        methods: What takes the place of the model's own methods, by their names.
        told: Numbers by which a model is compared with its original.
    """

    architecture: Architecture
    types: tuple[str, ...]
    graphs: Callable[[PreTrainedModel], Sequence[Graph]]
    methods: Callable[[Sessions], Mapping[str, Callable[..., Any]]]
    told: Callable[[PreTrainedModel, Tokens], Sequence[float]]


class Sessions:
    """The graphs in a folder, loaded, by the names of their files."""

    def __init__(self, folder: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads(), 1
        options.log_severity_level = logging.ERROR // 10 - 1  # its errors are 3
        self._graphs = {
            file.stem: onnxruntime.InferenceSession(
                str(file), options, providers=["CPUExecutionProvider"]
            )
            for file in sorted(folder.glob("*.onnx"))
        }

    def shapes(self, graph: str) -> dict[str, list[int | str]]:
        """Returns the shape of each input of a graph, its free dimensions as names."""
        return {given.name: given.shape for given in self._graphs[graph].get_inputs()}

    def run(self, graph: str, inputs: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Returns what a graph computes; inputs that it does not know are left out."""
        import torch

        known = self.shapes(graph)
        given = {name: each.numpy() for name, each in inputs.items() if name in known}
        return list(map(torch.from_numpy, self._graphs[graph].run(None, given)))


def check(model: str, kind: Kind, dtype: Precision) -> None:
    """Refuses, by a ValueError, models of another type and what is no precision of this backend."""
    if dtype != "float32":
        raise ValueError(
            f"dtype {dtype!r}: backend onnxruntime computes in float32 only; ctranslate2 has int8"
        )
    if config := config_of(model):
        refuse_type(model, config.get("model_type"), kind.types, "onnxruntime")


@lru_cache(maxsize=1)  # readers that differ in their prompt or window share one copy
def load(model: str, kind: Kind, device: str) -> PreTrainedModel:
    """Returns the model, ready to read; exports it before its first use.

    Args:
        model: Path, hub id, or name of a wheel.
        kind: What it must be.
        device: `cpu`, or `auto`, which is the same here.

    Raises:
        UserError: It cannot be had, or exported; or the device is another.
    """
    require("onnxruntime", "onnxruntime", "onnx")
    if device not in ("auto", "cpu"):
        raise UserError(
            f"backend: onnxruntime runs on the CPU, not on device {device!r}: leave device out, or"
            " backend"
        )
    folder = converted(model, "ONNX Runtime", [_FORMAT], lambda place: _export(model, kind, place))
    return _model(folder, kind)


def _export(model: str, kind: Kind, folder: Path) -> None:
    # A copy of its own, past the cache: its attention is computed in the way that can be traced.
    found: PreTrainedModel = load_model.__wrapped__(model, kind.architecture, "float32", "cpu")
    refuse_type(model, found.config.model_type, kind.types, "onnxruntime")
    tokens = Tokens(model)
    expected = kind.told(found, tokens)
    found.set_attn_implementation("eager")
    folder.mkdir()
    with quiet():
        for graph in kind.graphs(found):
            export(found, graph, folder)
        found.config.save_pretrained(folder)
        if found.can_generate():
            assert found.generation_config is not None
            found.generation_config.save_pretrained(folder)
    (folder / _FACTS).write_text(json.dumps({"class": type(found).__name__}), encoding="utf-8")
    pairs = zip(kind.told(_model(folder, kind), tokens), expected, strict=True)
    off = max(abs(one - other) for one, other in pairs)
    if not off <= _TOLERANCE:  # NaN is not
        raise ValueError(f"the exported model differs from the original, by {off:.2g} in a score")


def _model(folder: Path, kind: Kind) -> PreTrainedModel:
    """Returns a model of its class in transformers, without weights, that computes by graphs."""
    import torch
    import transformers

    facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
    original = getattr(transformers, facts["class"])
    methods = kind.methods(Sessions(folder))
    cpu = property(lambda _: torch.device("cpu"))
    kept = {"device": cpu, **methods}
    with torch.device("meta"):  # it knows its shapes, and takes no memory
        config = original.config_class.from_pretrained(folder)
        made: PreTrainedModel = type(original.__name__, (original,), kept)(config)
    if (folder / "generation_config.json").exists():
        made.generation_config = transformers.GenerationConfig.from_pretrained(folder)
    made.train(False)
    return made
