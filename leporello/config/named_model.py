"""A pipeline's `model:` -> the reader that reads with it, in place of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping

from leporello.config.parameters import Parameter, parameters, path_from_file
from leporello.core.annotations import MODEL_MARK, marked
from leporello.core.environment.classes import ClassError, find_class
from leporello.core.errors import UserError
from leporello.core.protocols import KINDS, ModelSource
from leporello.core.yaml.scalars import Scalar
from leporello.core.yaml.tree import Tree
from leporello.models.naming import NamedModel, is_served, resolve

# What a pipeline says of its reader that holds for a reader of another class too.
_KEPT = (
    "prompt", "separator", "system", "on_overflow", "max_new_tokens", "max_input_tokens",
    "examples", "shots", "seed", "unanswerable",
)  # fmt: skip
# What it says of the model that it had, and of no other.
_OF_MODEL = (
    "api_key", "mode", "tokenizer", "max_tokens_field", "temperature", "input_price",
    "output_price",
)  # fmt: skip
# Combiners that compare scores, some of them by one value of a parameter, and those of pairs.
_SCORED = {"ReadEach": ("keep", "best"), "Mean": None, "OrderByCoherence": None}
_PAIRS = ("AssignAuthors", "ClusterAuthors")


def with_model(keys: Mapping[str, Tree]) -> dict[str, Tree]:
    """Returns a pipeline's keys with the reader that its `model` means, and without `model`.

    Raises:
        UserError: The word means nothing that is there, or nothing that reads.
    """
    changed = dict(keys)
    named = changed.pop("model")
    swept = named.items.get("sweep")
    words = swept.value if swept and isinstance(swept.value, list) else [named]
    readers = [_reader(word, keys.get("reader")) for word in words]
    several = named.with_value({"sweep": named.with_value([*readers])})
    return {**changed, "reader": several if swept else readers[0]}


def check_combiner(keys: Mapping[str, Tree]) -> None:
    """Refuses a pipeline whose combiner needs what its reader cannot give.

    Raises:
        UserError: It does; the message says what to change.
    """
    items, readers = keys["combiner"].items if "combiner" in keys else {}, keys["reader"]
    name = str(items["class"].plain()) if "class" in items else "Stuff"
    classes = re.findall(r"'class': '(\w+)'", str(readers.plain()))
    compared = _SCORED.get(name)
    value = items[compared[0]].value if compared and compared[0] in items else None
    if "Endpoint" in classes and name in _SCORED and (not compared or value == compared[1]):
        instead = "combiner.keep=vote" if compared else "combiner.class=Stuff"
        raise UserError(
            f"the combiner {name} compares scores, and servers tell none: add --set {instead}"
        )
    if name in _PAIRS and "PairClassifier" not in classes:
        raise UserError(
            f"the combiner {name} compares pairs of texts, and {classes[0]} reads none: name a"
            " model of PairClassifier, or another pipeline"
        )


def _reader(word: Tree, old: Tree | None) -> Tree:
    if not isinstance(word.value, str):
        raise UserError(f"model: must be one word, got {word.plain()!r}")
    items = old.items if old and "class" in old.items else {}
    if wrapped := items.get("reader"):  # of a reader that wraps another
        return word.with_value({**items, "reader": _reader(word, wrapped)})
    current = items["class"] if items else word.with_value("")
    known, name = _parameters(current), str(path_from_file(word, ModelSource))
    takes = "model" in known and marked(known["model"].annotation, MODEL_MARK)
    if takes and not is_served(name) and not str(current.value).isidentifier():  # the user's own
        return word.with_value({**items, "model": word.with_value(name)})
    model = resolve(name, ask=word.file is None)
    chosen = _chosen(model, str(current.value), takes=takes)
    allowed = known if chosen == current.value else _parameters(word.with_value(chosen))
    kept = {n: t for n, t in items.items() if n not in _OF_MODEL}
    if chosen != current.value:
        kept = {n: t for n, t in kept.items() if n not in known or (n in _KEPT and n in allowed)}
    sizes = _sizes(model, chosen, kept, allowed)
    given: dict[str, Scalar] = {"class": chosen, **model.parameters, **sizes}
    return word.with_value({**kept, **{n: word.with_value(value) for n, value in given.items()}})


def _chosen(model: NamedModel, current: str, *, takes: bool) -> str:
    """Returns the class that reads: the pipeline's own, if it can."""
    if current in model.readers or (takes and not model.readers):
        return current
    if model.readers and model.readers[0]:
        return model.readers[0]
    others = " or ".join(filter(None, model.readers))
    raise UserError(
        f"model {model.parameters['model']!r} is {model.kind}, which no reader answers with"
        f"{f' but {others}, if the pipeline names it' * bool(others)}: choose one that writes"
        " (ForCausalLM, ForConditionalGeneration) or marks answers (ForQuestionAnswering)"
    )


def _sizes(
    model: NamedModel, reader: str, kept: Mapping[str, Tree], known: Mapping[str, Parameter]
) -> dict[str, int]:
    """Returns the tokens of window and answer, as the pipeline has them if the model has room."""
    writes, reads = known.get("max_new_tokens"), known.get("max_input_tokens")
    written = _number(kept.get("max_new_tokens"), model.written or writes.default if writes else 0)
    sizes = {"max_new_tokens": written} if model.written else {}
    if model.window and reads:
        room = max(1, model.window - (0 if reader == "Seq2Seq" else written))
        wanted = _number(kept.get("max_input_tokens"), room if writes else reads.default)
        sizes["max_input_tokens"] = min(room, wanted)
    return sizes


def _number(tree: Tree | None, default: int) -> int:
    return tree.value if tree and isinstance(tree.value, int) else default


def _parameters(named: Tree) -> Mapping[str, Parameter]:
    """Returns the parameters of a class; none where it cannot be had, which is told elsewhere."""
    try:
        return parameters(find_class(str(named.value), KINDS["reader"], named.folder))
    except (ClassError, NameError):
        return {}
