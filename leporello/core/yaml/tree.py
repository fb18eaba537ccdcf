"""Parses YAML text into a tree that keeps the file and line of each value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml
from yaml.reader import Reader

from leporello.core.environment.input_limits import (
    CONFIG_BYTES,
    CONFIG_DEPTH,
    CONFIG_DIRECTIVES,
    CONFIG_MARKS,
    CONFIG_NODES,
)
from leporello.core.errors import ConfigError, Fault, UserError
from leporello.core.files import opened
from leporello.core.records import JSON
from leporello.core.yaml.scalars import Scalar, scalar_of

ConfigSource: TypeAlias = Path | Mapping[str, Any]
_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # some builds lack libyaml
_TOO_DEEP = f"is nested too deeply: at most {CONFIG_DEPTH} mappings and lists within each other"
_TOO_MANY = f"with its aliases has more than {CONFIG_NODES:,} mappings, lists and values"
_LONGEST = 1_000  # letters of a message, which may quote the file


@dataclass(frozen=True, slots=True)
class Tree:
    """A mapping, a list or a scalar, with its position."""

    value: dict[str, Tree] | list[Tree] | Scalar
    file: Path | None  # file that contains it; None for the command line
    line: int  # line from 1; for the value of a key, the line of the key

    @property
    def items(self) -> dict[str, Tree]:
        """The children of a mapping; empty for other values."""
        return self.value if isinstance(self.value, dict) else {}

    def at(self, *path: str) -> Tree:
        """Returns the value at a path of keys; an empty mapping if it is absent."""
        tree = self
        for key in path:
            tree = tree.items.get(key) or Tree({}, self.file, self.line)
        return tree

    @property
    def folder(self) -> Path:
        """Folder that relative paths in the file refer to."""
        return self.file.parent.resolve() if self.file else Path.cwd()

    def with_value(self, value: dict[str, Tree] | list[Tree] | Scalar) -> Tree:
        """Returns another value with the same position."""
        return Tree(value, self.file, self.line)

    def as_class(self) -> Tree:
        """Returns `{class: NAME}` for a bare name, and other values unchanged."""
        return self.with_value({"class": self}) if isinstance(self.value, str) else self

    def plain(self) -> JSON:
        """Returns the value as JSON, without positions."""
        if isinstance(self.value, dict):
            return {key: child.plain() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain() for child in self.value]
        return self.value

    def fault(self, text: str) -> Fault:
        """Returns a fault at this position."""
        text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        return Fault(self.file, self.line, text)


def read_tree(path: ConfigSource) -> Tree:
    """Reads a YAML file, or a mapping with such content; raises UserError or ConfigError."""
    if isinstance(path, Mapping):
        text = json.dumps(path, default=str, ensure_ascii=False)
        return parse(text, Path("<mapping>"))
    try:
        with opened(path) as file:
            data = file.read(CONFIG_BYTES + 1)
        # Editors on Windows add a byte order mark; a file over the limit may end within a letter.
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
    """Parses YAML 1.2 text, empty text as an empty mapping; raises ConfigError."""
    marks, directives = sum(map(text.count, "\n,[{")), text.count("%TAG")
    if len(text) > CONFIG_BYTES or marks > CONFIG_MARKS or directives > CONFIG_DIRECTIVES:
        limits = f"{CONFIG_BYTES >> 20} MiB, {CONFIG_MARKS:,} lines, commas and brackets,"
        limits += f" and {CONFIG_DIRECTIVES} %TAG directives"
        raise ConfigError([Fault(file, 0, f"is too large: the limits are {limits}")])
    if match := Reader.NON_PRINTABLE.search(text):
        line, letter = text.count("\n", 0, match.start()) + 1, match.group()
        problem = f"not valid YAML: special characters are not allowed: {letter!r}"
        raise ConfigError([Fault(file, line, problem)])
    builder = _TreeBuilder(yaml.parse(text, Loader=_PARSER), file)
    try:
        tree = builder.document()
    except yaml.MarkedYAMLError as error:
        raise ConfigError([_syntax_fault(error, text, file)]) from None
    except (ValueError, OverflowError):  # only without libyaml
        problem = "not valid YAML: an escape code is beyond Unicode"
        raise ConfigError([Fault(file, 0, problem)]) from None
    if builder.faults:
        raise ConfigError(builder.faults)
    return tree


def _syntax_fault(error: yaml.MarkedYAMLError, text: str, file: Path | None) -> Fault:
    mark, begin = error.problem_mark, error.context_mark
    problem, line = f"not valid YAML: {error.problem} {error.context or ''}".rstrip(), 0
    if mark:  # libyaml does not show the letter, which often is a tab
        letter = text[mark.index : mark.index + 1]
        problem = problem.replace("character that", f"character {letter!r} that")
        line = min(mark.line + 1, len(text.splitlines()))  # libyaml may point past the last line
    if begin and begin.line + 1 < line:
        problem += f" that begins in line {begin.line + 1}"
    return Fault(file, line, problem)


class _TreeBuilder:
    """Builds a tree from a parser's events; PyYAML's recursion could crash the interpreter."""

    def __init__(self, events: Iterator[yaml.Event], file: Path | None) -> None:
        self.events, self.file = events, file
        self.faults: list[Fault] = []
        self.anchors: dict[str, Tree | None] = {}  # None until the node is complete
        self.count = 0

    def document(self) -> Tree:
        next(self.events)  # the start of the stream
        start = next(self.events)
        if not isinstance(start, yaml.DocumentStartEvent):
            return Tree({}, self.file, 1)
        if start.version not in (None, (1, 2)):
            version = "{}.{}".format(*start.version)
            self.fault(start, f"a config is YAML 1.2, not {version}; remove the line %YAML")
        tree = self.node(next(self.events), 1)
        next(self.events)  # the end of the document
        if not isinstance(second := next(self.events), yaml.StreamEndEvent):
            self.fault(second, "not valid YAML: a second document begins; a config has only one")
        return tree

    def node(self, event: yaml.Event, depth: int, line: int = 0) -> Tree:
        """Returns the tree of the node that begins with an event."""
        line = line or _line(event)
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event, depth, line)
        assert isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent))
        self.admit(event, depth)
        anchor = event.anchor
        if anchor:
            self.anchors[anchor] = None
        tree = Tree(self.value(event, depth), self.file, line)
        if anchor:
            self.anchors[anchor] = tree
        return tree

    def admit(self, event: yaml.Event, depth: int) -> None:
        self.count += 1
        if depth > CONFIG_DEPTH:
            self.fault(event, _TOO_DEEP)
        elif self.count > CONFIG_NODES:
            self.fault(event, _TOO_MANY)
        else:
            return
        raise ConfigError(self.faults)

    def value(
        self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, depth: int
    ) -> dict[str, Tree] | list[Tree] | Scalar:
        if event.tag:
            self.fault(event, f"the tag {event.tag!r} is not allowed; quote a value that is text")
        if isinstance(event, yaml.MappingStartEvent):
            return dict(self.pairs(depth + 1))
        if isinstance(event, yaml.CollectionStartEvent):
            return [self.node(child, depth + 1) for child in self.until(yaml.SequenceEndEvent)]
        try:
            return scalar_of(event.value) if event.implicit[0] else event.value
        except ValueError as error:
            self.fault(event, str(error))
            return None

    def until(self, end: type[yaml.Event]) -> Iterator[yaml.Event]:
        while not isinstance(event := next(self.events), end):
            yield event

    def pairs(self, depth: int) -> Iterator[tuple[str, Tree]]:
        lines: dict[str, int] = {}
        for event in self.until(yaml.MappingEndEvent):
            line, key = _line(event), self.key(event, depth)
            child = self.node(next(self.events), depth, line)
            # YAML forbids duplicates, but most parsers silently use the last one.
            if key in lines:
                self.fault(event, f"key {key!r} is given twice (first in line {lines[key]})")
            elif key is not None:
                lines[key] = line
                yield key, child

    def key(self, event: yaml.Event, depth: int) -> str | None:
        if isinstance(event, yaml.ScalarEvent) and not event.anchor:
            return str(event.value)
        key = self.node(event, depth).value
        if isinstance(key, str):
            return key
        self.fault(event, "a key must be a plain name")
        return None

    def alias(self, event: yaml.AliasEvent, depth: int, line: int) -> Tree:
        tree = self.anchors.get(str(event.anchor))
        if tree is None:
            text = "an alias may not point to a value that contains it"
            if event.anchor not in self.anchors:
                text = f"there is no anchor &{event.anchor}; quote a text that begins with *"
            self.fault(event, text)
            return Tree(None, self.file, line)
        self.admit_again(tree, event, depth)
        return Tree(tree.value, self.file, line)

    def admit_again(self, tree: Tree, event: yaml.Event, depth: int) -> None:
        """Counts the nodes of an alias as if they were written in its place."""
        self.admit(event, depth)
        children = tree.value if isinstance(tree.value, list) else tree.items.values()
        for child in children:
            self.admit_again(child, event, depth + 1)

    def fault(self, event: yaml.Event, text: str) -> None:
        self.faults.append(Fault(self.file, _line(event), text))


def _line(event: yaml.Event) -> int:
    assert event.start_mark
    return int(event.start_mark.line) + 1
