"""Replaces the reader of a pipeline by a reader of its `model:`."""

import re
from collections.abc import Mapping

from leporello.config.layers import map_sweep
from leporello.config.parameters import Parameter, parameters, path_from_file
from leporello.core.annotations import MODEL_MARK, marked
from leporello.core.environment.classes import ClassError, find_class
from leporello.core.errors import UserError
from leporello.core.protocols import KINDS, ModelSource
from leporello.core.yaml.scalars import Scalar
from leporello.core.yaml.tree import Tree
from leporello.models.naming import NamedModel, is_served, resolve

# Parameters that a reader of another class keeps.
_KEPT = (
    "prompt", "separator", "system", "on_overflow", "max_new_tokens", "max_input_tokens",
    "examples", "shots", "seed", "unanswerable",
)  # fmt: skip
# Parameters that depend on the model, and are dropped with it.
_OF_MODEL = (
    "api_key", "mode", "tokenizer", "max_tokens_field", "temperature", "input_price",
    "output_price",
)  # fmt: skip
# Combiners that compare scores, some only at one value of a parameter; and combiners of pairs.
_SCORED = {"ReadEach": ("keep", "best"), "Mean": None, "OrderByCoherence": None}
_PAIRS = ("AssignAuthors", "ClusterAuthors")


def with_model(keys: Mapping[str, Tree]) -> dict[str, Tree]:
    """Returns a pipeline's keys with a `reader` for its `model`, and without `model`."""
    changed = dict(keys)
    model = changed.pop("model")
    return {**changed, "reader": map_sweep(model, lambda word: _reader(word, keys.get("reader")))}


def check_combiner(keys: Mapping[str, Tree]) -> None:
    """Raises UserError if a pipeline's reader does not give the output that its combiner needs."""
    items, readers = keys["combiner"].items if "combiner" in keys else {}, keys["reader"]
    name = str(items["class"].plain()) if "class" in items else "Stuff"
    classes = re.findall(r"'class': '(\w+)'", str(readers.plain()))
    compared = _SCORED.get(name)
    value = items[compared[0]].value if compared and compared[0] in items else None
    if "Endpoint" in classes and name in _SCORED and (not compared or value == compared[1]):
        instead = "combiner.keep=vote" if compared else "combiner.class=Stuff"
        raise UserError(
            f"the combiner {name} compares scores, which servers do not return: add --set {instead}"
        )
    if name in _PAIRS and "PairClassifier" not in classes:
        raise UserError(
            f"the combiner {name} compares pairs of texts, and {classes[0]} does not read pairs:"
            " choose a model for PairClassifier, or another pipeline"
        )


def _reader(word: Tree, old: Tree | None) -> Tree:
    if not isinstance(word.value, str):
        raise UserError(f"model: must be one word, got {word.plain()!r}")
    items = old.items if old and "class" in old.items else {}
    if wrapped := items.get("reader"):  # replace the model of the wrapped reader
        return word.with_value({**items, "reader": _reader(word, wrapped)})
    current = items["class"] if items else word.with_value("")
    params, path = _parameters(current), str(path_from_file(word, ModelSource))
    takes = "model" in params and marked(params["model"].annotation, MODEL_MARK)
    if takes and not is_served(path) and not str(current.value).isidentifier():  # a plug-in
        return word.with_value({**items, "model": word.with_value(path)})
    # Only a name from the command line queries a server; `list` and editors must not.
    model = resolve(path, ask=word.file is None)
    chosen = _chosen(model, str(current.value), takes=takes)
    allowed = params if chosen == current.value else _parameters(word.with_value(chosen))
    base = {n: t for n, t in items.items() if n not in _OF_MODEL}
    if chosen != current.value:
        base = {n: t for n, t in base.items() if n not in params or (n in _KEPT and n in allowed)}
    sizes = _sizes(model, chosen, base, allowed)
    updates: dict[str, Scalar] = {"class": chosen, **model.parameters, **sizes}
    return word.with_value({**base, **{n: word.with_value(value) for n, value in updates.items()}})


def _chosen(model: NamedModel, current: str, *, takes: bool) -> str:
    """Returns the class of the reader: the pipeline's current class, if it supports the model."""
    if current in model.readers or (takes and not model.readers):
        return current
    if model.readers and model.readers[0]:
        return model.readers[0]
    others = " or ".join(filter(None, model.readers))
    raise UserError(
        f"model {model.parameters['model']!r} is {model.kind}, which no reader supports"
        f"{f' except {others}, if the pipeline has it' * bool(others)}: choose a generative model"
        " (ForCausalLM, ForConditionalGeneration) or an extractive one (ForQuestionAnswering)"
    )


def _sizes(
    model: NamedModel, reader: str, base: Mapping[str, Tree], known: Mapping[str, Parameter]
) -> dict[str, int]:
    """Returns the token limits of input and answer: the pipeline's, if they fit the model."""
    writes, reads = known.get("max_new_tokens"), known.get("max_input_tokens")
    written = _number(base.get("max_new_tokens"), model.written or writes.default if writes else 0)
    sizes = {"max_new_tokens": written} if model.written else {}
    if model.window and reads:
        # An encoder-decoder has separate windows for input and answer.
        room = max(1, model.window - (0 if reader == "Seq2Seq" else written))
        tokens = _number(base.get("max_input_tokens"), room if writes else reads.default)
        sizes["max_input_tokens"] = min(room, tokens)
    return sizes


def _number(tree: Tree | None, default: int) -> int:
    return tree.value if tree and isinstance(tree.value, int) else default


def _parameters(class_name: Tree) -> Mapping[str, Parameter]:
    """Returns the parameters of a class; empty if it cannot be loaded, as sweeps report that."""
    try:
        return parameters(find_class(str(class_name.value), KINDS["reader"], class_name.folder))
    except (ClassError, NameError):
        return {}
