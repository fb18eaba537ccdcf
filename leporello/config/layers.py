"""Merges the user's files with the built-in ones, resolves `extends` and applies `--set`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from leporello.config.built_in import SECTIONS, Entries, built_in_names, built_in_tree
from leporello.config.parameters import is_secret_name
from leporello.config.placement import RAY_ONLY
from leporello.config.specs import ROLES
from leporello.core.environment.input_limits import ANCESTORS
from leporello.core.errors import ConfigError, Fault, did_you_mean, likely, no_such
from leporello.core.files import at_home
from leporello.core.protocols import ANSWER, KINDS
from leporello.core.yaml.tree import ConfigSource, Tree, parse, read_tree
from leporello.storage import is_url

_TOP = ("default", "pipelines", "tasks", "collections", "suites")
# Files in a run's directory next to the results of its pipelines.
_RESERVED = ("journal", "manifest.json", "report.html", "run.yaml")
SETTABLE = (*KINDS, "readers", "model", "normalised", "abstain", "budget", "train", "placement")
_PIPELINE = (*SETTABLE, "tasks", "extends", "description", "tuned")


@dataclass(frozen=True, slots=True)
class Override:
    """One `--set`: a path in the pipeline, and its value; several values form a sweep."""

    path: tuple[str, ...]
    value: Tree


def parse_override(text: str) -> Override:
    """Parses `retriever.k=5,10`; values are YAML, and commas between them make a sweep."""
    path, equals, values = text.partition("=")
    parts = tuple(path.strip().split("."))
    secret = is_secret_name(parts[-1])
    text = f"{path}=…" if secret else text
    has_role = parts[0] != "readers" or "".join(parts[1:2]).isidentifier()
    if not equals or not all(parts) or parts[0] not in SETTABLE or not has_role:
        hint = likely(parts[0], SETTABLE) if equals and parts[0] not in SETTABLE else ""
        keys = ", ".join(SETTABLE)
        form = "must be PATH=VALUE with a path such as retriever.k or readers.ROLE"
        fault = f"--set {text}: {form}{hint}; paths begin with: {keys}"
        raise ConfigError([Fault(None, 0, fault)])
    try:
        several = parse(f"[{values}]", None)
    except ConfigError as error:
        problem = "its value is not valid YAML" if secret else error.faults[0].text
        raise ConfigError(
            [Fault(None, 0, f"--set {text}: {problem} (quote text with commas)")]
        ) from None
    assert isinstance(several.value, list)
    if not several.value:
        raise ConfigError([Fault(None, 0, f"--set {text}: the value is missing")])
    is_sweep = len(several.value) > 1
    if parts[0] == "readers":
        parts = (_key_of(parts[1]), *parts[2:])
    return Override(parts, several.with_value({"sweep": several}) if is_sweep else several.value[0])


class Layers:
    """Several files merged; a later file replaces pipelines and tasks of the same name."""

    def __init__(self, files: Iterable[ConfigSource] = ()) -> None:
        """Adds the user's files to the built-in ones, in order."""
        self.pipelines, self.tasks, self.suites = map(Entries, SECTIONS)
        self.collections: dict[str, tuple[str, ...]] = {}
        self.default = built_in_tree("pipelines.yaml").at("default")
        self.faults: list[Fault] = []
        for file in files:
            self._add(read_tree(Path(file) if isinstance(file, str) else file))

    def _add(self, tree: Tree) -> None:
        if not isinstance(tree.value, dict):
            self.faults.append(tree.fault(f"the file must be a mapping with {', '.join(_TOP)}"))
        for key, child in tree.items.items():
            if key not in _TOP:
                self.faults.append(child.fault(f"unknown key {key!r}{did_you_mean(key, _TOP)}"))
            elif not isinstance(child.value, dict):
                self.faults.append(child.fault(f"{key} must be a mapping of names"))
        self.pipelines.add(self._section(tree, "pipelines"))
        self.tasks.add(self._section(tree, "tasks"))
        for name, entry in tree.at("collections").items.items():
            self.collections[name] = self._paths(name, entry)
        # Extended, not replaced, so that a user's pipelines join a paper's table (decision 45).
        suites = self._section(tree, "suites").items()
        self.suites.add({name: _extended(self.suites.get(name), suite) for name, suite in suites})
        self.default = tree.items.get("default", self.default)

    def _paths(self, name: str, entry: Tree) -> tuple[str, ...]:
        """Returns the paths of a collection, resolved from the folder of its file."""
        plain = entry.plain()
        listed = [*plain] if isinstance(plain, list) else [plain]
        paths = [path for path in listed if isinstance(path, str)]
        if not paths or len(paths) < len(listed):
            text = f"collections.{name}: must be a list of paths, patterns and URLs, got {plain!r}"
            self.faults.append(entry.fault(text))
        return tuple(p if is_url(p) else str(entry.folder / at_home(p)) for p in paths)

    def _section(self, tree: Tree, key: str) -> dict[str, Tree]:
        entries, reserved = tree.at(key).items, ", ".join(_RESERVED)
        for name, entry in entries.items():
            where = name if key == "pipelines" else f"{key}.{name}"
            if not isinstance(entry.value, dict):
                text = f"{where}: must be a mapping, got {entry.plain()!r}"
                self.faults.append(entry.fault(text))
            # In a run.yaml, a point of a sweep has arbitrary values after the @.
            if not _is_name(name.partition("@")[0] if key == "pipelines" else name):
                text = f"{where!r} is not a valid name, because folders are named after it: parts"
                rule = f"between slashes must not be empty, begin with a dot, be {reserved}"
                fault = f"{text} {rule}, or contain characters that cannot be printed"
                self.faults.append(entry.fault(fault))
        return {name: entry for name, entry in entries.items() if isinstance(entry.value, dict)}

    def resolve(
        self, name: str, faults: list[Fault], replaced: list[Fault], below: tuple[str, ...] = ()
    ) -> dict[str, Tree] | None:
        """Returns a pipeline merged with those that it extends; None if `extends` is faulty.

        Its faults are added to `faults`. A fault is added to `replaced` for each pipeline of the
        user that a built-in pipeline extends; these explain the other faults of the built-in
        pipeline. `below` has the names of pipelines that extend it.
        """
        keys = _flat(name, self.pipelines[name].items, faults)
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
        """Returns advice if a pipeline of the user has the name of a built-in one."""
        if name not in self.pipelines.own or name not in built_in_names()["pipelines"]:
            return ""
        return f"; your {name!r} replaces the built-in pipeline: give it another name"

    def _problem_with(self, extends: Tree, name: str, below: tuple[str, ...]) -> str | None:
        chain = (*below, name)
        if extends.value in chain:
            circle = " -> ".join([name, *chain[chain.index(extends.value) :]])
            return f"is circular: {circle}{self._replaced(extends.value)}"
        if not isinstance(extends.value, str):
            return f"must be the name of one pipeline, got {extends.plain()!r}"
        if extends.value not in self.pipelines:
            return no_such("pipeline", extends.value, self.pipelines)
        if len(below) >= ANCESTORS:
            return f"at most {ANCESTORS} pipelines may extend each other: leave some out"
        return None


def _flat(name: str, items: Mapping[str, Tree], faults: list[Fault]) -> dict[str, Tree]:
    """Returns a pipeline's keys, with one key for each of its `readers`."""
    keys = {key: child.as_class() if key in KINDS else child for key, child in items.items()}
    readers = keys.pop("readers", None)
    if readers and not (readers.items and all(map(str.isidentifier, readers.items))):
        text = f"{name}.readers: must be a mapping of roles to readers, got {readers.plain()!r}"
        faults.append(readers.fault(text))
    for role, child in readers.items.items() if readers else ():
        if role == ANSWER and "reader" in keys:
            text = f"{name}.readers.{role}: the pipeline has a `reader` too: give only one of them"
            faults.append(child.fault(text))
        keys[_key_of(role)] = child.as_class()
    return keys


def _key_of(role: str) -> str:
    """Returns the key of a stage that is the reader of a role."""
    return "reader" if role == ANSWER else f"{ROLES}{role}"


def _is_name(name: str) -> bool:
    parts = name.split("/")
    is_safe = all(part and not part.startswith(".") for part in parts)
    return is_safe and name.isprintable() and name not in _RESERVED


def _merge(parent: Tree | None, child: Tree, key: str = "") -> Tree:
    """Returns a key of a pipeline, merged with the same key of its parent.

    A stage that names a class, or a training preset, replaces the parent's; all else is merged.
    """
    if key == "placement" and parent is not None and child.items:
        remaining = _under_executor(parent, child.items.get("executor"))
        return child.with_value({**remaining.items, **child.items})
    if key == "train" and parent is not None and "preset" not in child.items and child.items:
        return child.with_value({**parent.items, **child.items})
    if parent is None or not child.items or not {"class", "sweep"}.isdisjoint(child.items):
        return child
    swept = parent.items.get("sweep")
    if swept is not None and isinstance(swept.value, list):
        merged = [_merge(item, child) for item in swept.value]
        return child.with_value({"sweep": swept.with_value([*merged])})
    return child.with_value({**parent.items, **child.items}) if "class" in parent.items else child


def _extended(earlier: Tree | None, suite: Tree) -> Tree:
    """Returns a suite with the columns and rows of a later file; rows of one name are merged."""
    if earlier is None:
        return suite
    below = {
        key: tree.with_value({**earlier.items[key].items, **tree.items})
        for key, tree in suite.items.items()
        if key in ("columns", "rows") and key in earlier.items
    }
    for name, row in suite.at("rows").items.items() if "rows" in below else ():
        before, pipelines = earlier.at("rows", name, "pipelines"), row.at("pipelines")
        if pipelines.items and before.items:
            merged = pipelines.with_value({**before.items, **pipelines.items})
            below["rows"].items[name] = row.with_value({**row.items, "pipelines": merged})
    return suite.with_value({**earlier.items, **suite.items, **below})


def _under_executor(placement: Tree, executor: Tree | None) -> Tree:
    """Returns the settings of a placement that remain valid for this executor, if there is one."""
    if executor is None or not placement.items:
        return placement
    dropped = RAY_ONLY if executor.value == "local" else ()
    items = placement.items.items()
    return placement.with_value({name: tree for name, tree in items if name not in dropped})


def apply(overrides: Iterable[Override], stages: Mapping[str, Tree]) -> dict[str, Tree]:
    """Returns a pipeline's keys with every `--set` applied; raises KeyError for an absent path."""
    changed = dict(stages)
    for override in overrides:
        key, *path = override.path
        if key in KINDS and key not in changed and path and path[0] != "class":
            has = ", ".join(stage for stage in KINDS if stage in changed)
            raise KeyError(f"it has no {key} (only {has}): add `--set {key}.class=NAME` before")
        tree = changed.get(key, Tree({}, None, 0))
        if override.path == ("placement", "executor"):  # as with a child that sets it
            tree = _under_executor(tree, override.value)
        changed[key] = _set(tree, path, override.value, key)
    return changed


def map_sweep(value: Tree, make: Callable[[Tree], Tree]) -> Tree:
    """Returns a value that is made from another one, or from each value of a sweep."""
    swept = value.items.get("sweep")
    if swept is None or not isinstance(swept.value, list):
        return make(value)
    return value.with_value({"sweep": swept.with_value([make(item) for item in swept.value])})


def _set(tree: Tree, path: Sequence[str], value: Tree, where: str) -> Tree:
    if not path:
        return value
    key, *inner_path = path
    tree = tree.as_class()
    if isinstance(tree.value, list):
        if not key.isdecimal() or int(key) >= len(tree.value):
            raise KeyError(f"{where} is a list of {len(tree.value)}; {key!r} is not an index of it")
        items = list(tree.value)
        items[int(key)] = _set(items[int(key)], inner_path, value, f"{where}.{key}")
        return tree.with_value(items)
    if not isinstance(tree.value, dict):
        raise KeyError(f"{where} is {tree.plain()!r}, which has no {key!r}")
    if key == "class" and not inner_path:  # as in a file, a class replaces the stage
        return map_sweep(value, lambda item: Tree({"class": item}, None, 0))
    child = tree.items.get(key, Tree({}, None, 0))
    return tree.with_value({**tree.items, key: _set(child, inner_path, value, f"{where}.{key}")})
