"""YAML text -> a tree that remembers the file and line of everything in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.composer import MaxDepthExceededError
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from leporello.core.environment.input_limits import (
    CONFIG_BYTES,
    CONFIG_DEPTH,
    CONFIG_MARKS,
    CONFIG_NODES,
    NUMBER_LETTERS,
)
from leporello.core.errors import ConfigError, Fault, UserError
from leporello.core.files import opened
from leporello.core.records import JSON

ConfigSource: TypeAlias = Path | Mapping[str, Any]
Scalar: TypeAlias = bool | int | float | str | None
_STANDARD = "tag:yaml.org,2002:"
_TYPED = frozenset(_STANDARD + name for name in ("null", "bool", "int", "float"))
# What is neither of these (a date, `<<`) is text, as in YAML 1.2's core schema.
_ALLOWED = _TYPED | {
    _STANDARD + name for name in ("str", "seq", "map", "timestamp", "merge", "value")
}
_TOO_DEEP = f"is nested too deeply: at most {CONFIG_DEPTH} mappings and lists lie in each other"
_LONGEST = 1_000  # letters of a message, which may repeat what the file says


@dataclass(frozen=True, slots=True)
class Tree:
    """A mapping, a list or a scalar, with its place.

    Attributes:
        value: Children are trees too.
        file: File in which it was written; None for the command line.
        line: Line from 1; that of the key, for what stands under a key.
    """

    value: dict[str, Tree] | list[Tree] | Scalar
    file: Path | None
    line: int

    @property
    def items(self) -> dict[str, Tree]:
        """The children of a mapping; empty for anything else."""
        return self.value if isinstance(self.value, dict) else {}

    def with_value(self, value: dict[str, Tree] | list[Tree] | Scalar) -> Tree:
        """Returns another value at the same place."""
        return Tree(value, self.file, self.line)

    def as_class(self) -> Tree:
        """Returns `{class: NAME}` for a bare name, and anything else as it is."""
        return self.with_value({"class": self}) if isinstance(self.value, str) else self

    def plain(self) -> JSON:
        """Returns the value without places, as JSON would hold it."""
        if isinstance(self.value, dict):
            return {key: child.plain() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain() for child in self.value]
        return self.value

    def fault(self, text: str) -> Fault:
        """Returns a fault at this place."""
        told = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        return Fault(self.file, self.line, told)


def read_tree(path: ConfigSource) -> Tree:
    """Reads a YAML file, or a mapping that says what one would.

    Raises:
        UserError: The file is missing, unreadable or not UTF-8.
        ConfigError: The file is not YAML, or gives a key twice.
    """
    if isinstance(path, Mapping):
        text = json.dumps(path, default=str, ensure_ascii=False)
        return parse(text, Path("<mapping>"))
    try:
        with opened(path) as file:
            data = file.read(CONFIG_BYTES + 1)
        # Windows' editors put a byte order mark in front; what is too large may be cut anywhere.
        text = data.decode("utf-8-sig", "replace" if len(data) > CONFIG_BYTES else "strict")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: not UTF-8 text (byte {error.start} is {error.object[error.start]:#04x});"
            " save the file as UTF-8"
        ) from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    return parse(text, path)


def parse(text: str, file: Path | None) -> Tree:
    """Parses YAML 1.2 text; an empty text is an empty mapping.

    Raises:
        ConfigError: With all keys given twice, or the first syntax error; or the text is larger
            than a config may be.
    """
    if len(text) > CONFIG_BYTES or sum(map(text.count, "\n,[{")) > CONFIG_MARKS:
        most = f"{CONFIG_BYTES >> 20} MiB, nor {CONFIG_MARKS:,} lines, commas and brackets"
        raise ConfigError([Fault(file, 0, f"is too large: a config has no more than {most}")])
    yaml = YAML(typ="safe", pure=True)
    yaml.max_depth = CONFIG_DEPTH
    try:
        node = yaml.compose(text)
    except YAMLError as error:
        raise ConfigError([_syntax_fault(error, file)]) from None
    if node is None:
        return Tree({}, file, 1)
    return _NodeConverter(yaml, file).convert_root(node)


def _syntax_fault(error: YAMLError, file: Path | None) -> Fault:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if isinstance(error, MaxDepthExceededError):
        return Fault(file, mark.line + 1 if mark else 0, _TOO_DEEP)
    problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
    return Fault(file, mark.line + 1 if mark else 0, f"not valid YAML: {problem}")


class _NodeConverter:
    def __init__(self, yaml: YAML, file: Path | None) -> None:
        self.yaml, self.file = yaml, file
        self.faults: list[Fault] = []
        self.open: set[int] = set()  # nodes being converted: an alias may point at its own parent
        self.count = 0

    def convert_root(self, node: Node) -> Tree:
        tree = self.convert(node, _line(node))
        if self.faults:
            raise ConfigError(self.faults)
        return tree

    def convert(self, node: Node, line: int) -> Tree:
        if id(node) in self.open:
            self.fault(node, "an alias may not point at what contains it")
            return Tree(None, self.file, line)
        self.count += 1
        if self.count > CONFIG_NODES or len(self.open) > CONFIG_DEPTH:
            many = f"aliases make it more than {CONFIG_NODES:,} mappings, lists and values"
            text = _TOO_DEEP if len(self.open) > CONFIG_DEPTH else many
            raise ConfigError([Fault(self.file, _line(node), text)])
        self.open.add(id(node))
        value = self.value(node)
        self.open.discard(id(node))
        return Tree(value, self.file, line)

    def value(self, node: Node) -> dict[str, Tree] | list[Tree] | Scalar:
        # No tag makes an object: a config names classes by `class`, and nowhere else.
        if str(node.tag) not in _ALLOWED:
            self.fault(node, f"the tag {node.tag!r} is not allowed; plain YAML only")
        if isinstance(node, MappingNode):
            return dict(self.pairs(node))
        if isinstance(node, SequenceNode):
            return [self.convert(child, _line(child)) for child in node.value]
        assert isinstance(node, ScalarNode)
        return self.scalar(node)

    def pairs(self, node: MappingNode) -> Iterator[tuple[str, Tree]]:
        lines: dict[str, int] = {}
        for key_node, child in node.value:
            key, line = str(key_node.value), _line(key_node)
            if not isinstance(key_node, ScalarNode):
                self.fault(key_node, "a key must be a plain name")
            # YAML forbids it, and most parsers keep the last one without a word.
            elif key in lines:
                self.fault(key_node, f"key {key!r} is given twice (first in line {lines[key]})")
            else:
                lines[key] = line
                yield key, self.convert(child, line)

    def scalar(self, node: ScalarNode) -> Scalar:
        if node.tag not in _TYPED:
            return str(node.value)
        if len(node.value) > NUMBER_LETTERS:
            text = f"a number of {len(node.value):,} letters is too long: at most {NUMBER_LETTERS}"
            self.fault(node, text)
            return None
        try:
            value: Scalar = self.yaml.constructor.construct_object(node)
        except (ValueError, YAMLError):  # `!!int abc`
            self.fault(node, f"{node.value!r:.60} is not a value of the type that its tag says")
            return None
        return value

    def fault(self, node: Node, text: str) -> None:
        self.faults.append(Fault(self.file, _line(node), text))


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def check_settings(
    path: str, tree: Tree, check: Callable[[str, Tree], tuple[Any, str | None]]
) -> tuple[dict[str, Any], list[Fault]]:
    """Checks a mapping of settings, one by one.

    Args:
        path: Place of the settings, for messages: `mine.train`.
        tree: The tree that stands there.
        check: Function of the name of a setting and its value that returns the value to keep, and
            what is wrong with it, or None.

    Returns:
        What it says by setting, and all that is wrong with it.
    """
    if not isinstance(tree.value, dict):
        return {}, [tree.fault(f"{path}: must be a mapping of settings, got {tree.plain()!r}")]
    checked = {name: check(name, child) for name, child in tree.items.items()}
    faults = [
        tree.items[name].fault(f"{path}.{name}: {problem}")
        for name, (_, problem) in checked.items()
        if problem
    ]
    return {name: value for name, (value, _) in checked.items()}, faults
