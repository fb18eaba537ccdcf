"""The user's files over the built-in ones: `extends` resolved, `--set` applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from leporello.config.built_in import SECTIONS, Entries, built_in_names, built_in_tree
from leporello.config.parameters import sounds_secret
from leporello.config.placement import kept_under
from leporello.core.environment.input_limits import ANCESTORS
from leporello.core.errors import ConfigError, Fault, did_you_mean, no_such
from leporello.core.files import at_home
from leporello.core.protocols import ANSWER, KINDS
from leporello.core.yaml.tree import ConfigSource, Tree, parse, read_tree
from leporello.storage import is_url

_TOP = ("default", "pipelines", "tasks", "collections", "suites")
# What a run's directory holds beside the results of its pipelines.
_RESERVED = ("journal", "manifest.json", "report.html", "run.yaml")
SETTABLE = (*KINDS, "readers", "model", "normalised", "abstain", "budget", "train", "placement")
_PIPELINE = (*SETTABLE, "tasks", "extends", "description", "tuned")


@dataclass(frozen=True, slots=True)
class Override:
    """One `--set`: the path below a pipeline, and the value; several values are a sweep."""

    path: tuple[str, ...]
    value: Tree


def parse_override(text: str) -> Override:
    """Parses `retriever.k=5,10`; values are YAML, commas between them make a sweep.

    Raises:
        ConfigError: The text has no `=`, or its values are not YAML.
    """
    path, equals, values = text.partition("=")
    parts = tuple(path.strip().split("."))
    if parts[:2] == ("readers", ANSWER):
        parts = ("reader", *parts[2:])
    secret = sounds_secret(parts[-1])
    text = f"{path}=…" if secret else text
    if not equals or not all(parts) or parts[0] not in SETTABLE:
        keys = ", ".join(SETTABLE)
        fault = f"--set {text}: must be PATH=VALUE with a path such as retriever.k, from: {keys}"
        raise ConfigError([Fault(None, 0, fault)])
    try:
        items = parse(f"[{values}]", None).value
    except ConfigError as error:
        problem = "its value is not valid YAML" if secret else error.faults[0].text
        raise ConfigError(
            [Fault(None, 0, f"--set {text}: {problem} (quote text with commas)")]
        ) from None
    assert isinstance(items, list)
    listed = [Tree(item.value, None, 0) for item in items]
    if not listed:
        raise ConfigError([Fault(None, 0, f"--set {text}: there is no value")])
    value = listed[0] if len(listed) == 1 else Tree({"sweep": Tree([*listed], None, 0)}, None, 0)
    return Override(parts, value)


class Layers:
    """Several files as one: a later file replaces pipelines and tasks of the same name.

    Attributes:
        pipelines: Pipelines by name, as written.
        tasks: Tasks by name, as written.
        collections: Paths, patterns and URLs of collections by name.
        suites: Suites by name, as written; a later file adds columns and rows to one.
        default: The default pipeline and task.
        faults: Faults in the shape of the user's files.
    """

    def __init__(self, files: Iterable[ConfigSource] = ()) -> None:
        """Lays the user's files over the built-in ones, in order.

        Raises:
            UserError: A file cannot be read.
            ConfigError: A file is not YAML.
        """
        self.pipelines, self.tasks, self.suites = map(Entries, SECTIONS)
        self.collections: dict[str, tuple[str, ...]] = {}
        built_in = built_in_tree("pipelines.yaml")
        self.default = built_in.items.get("default", built_in.with_value({}))
        self.faults: list[Fault] = []
        for file in {s if isinstance(s, Path) else id(s): s for s in files}.values():
            self._add(read_tree(file))

    def _add(self, tree: Tree) -> None:
        """Lays a file over those added before."""
        if not isinstance(tree.value, dict):
            self.faults.append(tree.fault(f"the file must be a mapping with {', '.join(_TOP)}"))
        for key, child in tree.items.items():
            if key not in _TOP:
                self.faults.append(child.fault(f"unknown key {key!r}{did_you_mean(key, _TOP)}"))
            elif not isinstance(child.value, dict):
                self.faults.append(child.fault(f"{key} must be a mapping of names"))
        self.pipelines.own.update(self._section(tree, "pipelines"))
        self.tasks.own.update(self._section(tree, "tasks"))
        for name, entry in tree.items.get("collections", Tree({}, None, 0)).items.items():
            self.collections[name] = self._paths(name, entry)
        for name, suite in self._section(tree, "suites").items():
            self.suites.own[name] = _laid_over(self.suites.get(name), suite)
        self.default = tree.items.get("default", self.default)

    def _paths(self, name: str, entry: Tree) -> tuple[str, ...]:
        """Returns the paths of a collection, which count from the file that names them."""
        plain = entry.plain()
        listed = [*plain] if isinstance(plain, list) else [plain]
        paths = [path for path in listed if isinstance(path, str)]
        if not paths or len(paths) < len(listed):
            text = f"collections.{name}: must be a list of paths, patterns and URLs, got {plain!r}"
            self.faults.append(entry.fault(text))
        return tuple(p if is_url(p) else str(entry.folder / at_home(p)) for p in paths)

    def _section(self, tree: Tree, key: str) -> dict[str, Tree]:
        entries = tree.items.get(key, Tree({}, None, 0)).items
        for name, entry in entries.items():
            where = name if key == "pipelines" else f"{key}.{name}"
            if not isinstance(entry.value, dict):
                text = f"{where}: must be a mapping, got {entry.plain()!r}"
                self.faults.append(entry.fault(text))
            # A point of a sweep, as in a run.yaml, has values after the @, which may be any.
            if not _is_name(name.partition("@")[0] if key == "pipelines" else name):
                text = f"{where!r} is no name: folders are made of it, so parts between slashes may"
                rule = f"not be empty, nor begin with a dot, nor be {', '.join(_RESERVED)}"
                fault = f"{text} {rule}, nor hold characters that cannot be printed"
                self.faults.append(entry.fault(fault))
        return {name: entry for name, entry in entries.items() if isinstance(entry.value, dict)}

    def resolve(
        self, name: str, faults: list[Fault], replaced: list[Fault], below: tuple[str, ...] = ()
    ) -> dict[str, Tree] | None:
        """Returns a pipeline merged with those that it extends; None if `extends` leads nowhere.

        Args:
            name: Name of the pipeline.
            faults: Faults, to which those in its form are added.
            replaced: Faults, to which pipelines of the user's are added that it extends though it
                is built in: they explain what else is wrong with it.
            below: Names of pipelines that extend it.
        """
        own = self.pipelines[name].items.items()
        keys = {key: child.as_class() if key in KINDS else child for key, child in own}
        keys = _with_answering(name, keys, faults)
        for key, child in self.pipelines[name].items.items():
            if key not in _PIPELINE:
                hint = did_you_mean(key, _PIPELINE)
                faults.append(child.fault(f"{name}: unknown key {key!r}{hint}"))
        extends = keys.pop("extends", None)
        if extends is None:
            return keys
        parent_name = str(extends.value)
        if parent_name in self.pipelines.own and name not in self.pipelines.own:
            text = f"{parent_name}: {name} extends it{self._replaced(parent_name)}"
            replaced.append(self.pipelines[parent_name].fault(text))
        problem = self._problem_with(extends, name, below)
        if problem:
            faults.append(extends.fault(f"{name}.extends: {problem}"))
            return None
        parent = self.resolve(parent_name, faults, replaced, (*below, name))
        if parent is None:
            return None
        parent.pop("description", None)
        return {**parent, **{k: _merge(parent.get(k), child, k) for k, child in keys.items()}}

    def _replaced(self, name: object) -> str:
        """Returns advice where a pipeline of the user's has the name of a built-in one."""
        if name not in self.pipelines.own or name not in built_in_names()["pipelines"]:
            return ""
        return f"; your {name!r} replaces the built-in pipeline: give it another name"

    def _problem_with(self, extends: Tree, name: str, below: tuple[str, ...]) -> str | None:
        chain = (*below, name)
        if extends.value in chain:
            circle = " -> ".join([*chain, str(extends.value)])
            return f"goes in a circle: {circle}{self._replaced(extends.value)}"
        if not isinstance(extends.value, str):
            return f"must be the name of one pipeline, got {extends.plain()!r}"
        if extends.value not in self.pipelines:
            return no_such("pipeline", extends.value, self.pipelines)
        if len(below) >= ANCESTORS:
            return f"{ANCESTORS} pipelines extend each other, and that is the most: leave some out"
        return None


def _with_answering(name: str, keys: dict[str, Tree], faults: list[Fault]) -> dict[str, Tree]:
    """Returns a pipeline's keys with the reader of answers as its `reader`."""
    readers = keys.get("readers", Tree({}, None, 0)).items
    if ANSWER not in readers:
        return keys
    if "reader" in keys:
        text = f"{name}.readers.{ANSWER}: the pipeline has a `reader` too: give one of them"
        faults.append(readers[ANSWER].fault(text))
    others = {role: child for role, child in readers.items() if role != ANSWER}
    kept = {**keys, "reader": readers[ANSWER].as_class()}
    del kept["readers"]
    return {**kept, "readers": keys["readers"].with_value(others)} if others else kept


def _is_name(name: str) -> bool:
    """Returns whether folders can be made of a pipeline's or a task's name, and stay where put."""
    parts = name.split("/")
    sound = all(part and not part.startswith(".") for part in parts)
    return sound and name.isprintable() and name not in _RESERVED


def _merge(parent: Tree | None, child: Tree, key: str = "") -> Tree:
    """A stage that names a class replaces the parent's; one that does not is merged into it.

    So do settings of training that name a preset. Those of a placement are merged.
    """
    if key == "placement" and parent is not None and child.items:
        inherited = _beneath(parent, child.items.get("executor"))
        return child.with_value({**inherited.items, **child.items})
    if key == "readers" and parent is not None and child.items:
        own = child.items.items()
        roles = {role: _merge(parent.items.get(role), one.as_class()) for role, one in own}
        return child.with_value({**parent.items, **roles})
    if key == "train" and parent is not None and "preset" not in child.items and child.items:
        return child.with_value({**parent.items, **child.items})
    if parent is None or not child.items or not {"class", "sweep"}.isdisjoint(child.items):
        return child
    swept = parent.items.get("sweep")
    if swept is not None and isinstance(swept.value, list):
        merged = [_merge(item, child) for item in swept.value]
        return child.with_value({"sweep": swept.with_value([*merged])})
    return child.with_value({**parent.items, **child.items}) if "class" in parent.items else child


def _laid_over(earlier: Tree | None, suite: Tree) -> Tree:
    """Returns a suite of an earlier file with what a later one says of it."""
    if earlier is None:
        return suite
    below = {
        key: tree.with_value({**earlier.items[key].items, **tree.items})
        for key, tree in suite.items.items()
        if key in ("columns", "rows") and key in earlier.items
    }
    return suite.with_value({**earlier.items, **suite.items, **below})


def _beneath(placement: Tree, executor: Tree | None) -> Tree:
    """Returns a placement as it holds under what names this executor, if it names one."""
    if executor is None or not placement.items:
        return placement
    return placement.with_value({**kept_under(placement.items, executor.value)})


def apply(overrides: Iterable[Override], stages: Mapping[str, Tree]) -> dict[str, Tree]:
    """Returns a pipeline's keys with every `--set` applied, in order.

    Raises:
        KeyError: A path leads nowhere; its argument says where.
    """
    changed = dict(stages)
    for override in overrides:
        key, *rest = override.path
        tree = changed.get(key, Tree({}, None, 0))
        if override.path == ("placement", "executor"):  # as in a pipeline that extends this one
            tree = _beneath(tree, override.value)
        changed[key] = _set(tree, rest, override.value, key)
    return changed


def _each(value: Tree, make: Callable[[Tree], Tree]) -> Tree:
    """Returns what is made of a value, or a sweep of what is made of each value swept."""
    swept = value.items.get("sweep")
    if swept is None or not isinstance(swept.value, list):
        return make(value)
    return value.with_value({"sweep": swept.with_value([make(item) for item in swept.value])})


def _set(tree: Tree, path: Sequence[str], value: Tree, place: str) -> Tree:
    if not path:
        return value
    key, *rest = path
    tree = tree.as_class()
    if isinstance(tree.value, list):
        if not key.isdecimal() or int(key) >= len(tree.value):
            raise KeyError(f"{place} is a list of {len(tree.value)}; {key!r} is no place in it")
        items = list(tree.value)
        items[int(key)] = _set(items[int(key)], rest, value, f"{place}.{key}")
        return tree.with_value(items)
    if not isinstance(tree.value, dict):
        raise KeyError(f"{place} is {tree.plain()!r}, which has no {key!r}")
    if key == "class" and not rest:  # as in a file: naming a class replaces the stage
        return _each(value, lambda item: Tree({"class": item}, None, 0))
    child = tree.items.get(key, Tree({}, None, 0))
    return tree.with_value({**tree.items, key: _set(child, rest, value, f"{place}.{key}")})
