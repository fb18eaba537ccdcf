"""Declarations of a class: annotations of its parameters with their marks, and its dependencies.

depends_on = ("words.txt", "env:LANGUAGE")    # paths are relative to the class's source file
repeatable = False                            # a server or a clock: nothing is cached
"""

import dataclasses
import inspect
import os
import re
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from leporello.core.errors import UserError

# Patterns of docstrings in Google's style, the only descriptions of parameters: tables in guides
# contradicted the code. griffe would be a dependency of `list` (decision 42).
_SECTION = re.compile(r"^(?:Args|Attributes):\n((?:(?: {4}.*)?\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)


_VARIABLE = "env:"
_NAME = re.compile(r"[^\s=\0]+")


@dataclass(frozen=True, slots=True, eq=False)
class _Mark:
    """Mark of a parameter in an `Annotated`; each alias in `protocols` has one."""

    shown: str

    def __repr__(self) -> str:
        return self.shown


MODEL_MARK = _Mark("model")
BACKEND_MARK = _Mark("backend")
SECRET_MARK = _Mark("$VARIABLE")
ROLE_MARK = _Mark("role")


def annotations_of(cls: type[Any]) -> dict[str, Any]:
    """Returns the annotations of a constructor's parameters."""
    owner = next(base for base in cls.__mro__ if "__init__" in vars(base))
    if "__dataclass_params__" not in vars(owner) or not vars(owner)["__dataclass_params__"].init:
        return get_type_hints(cls.__init__, include_extras=True)
    hints: dict[str, Any] = {}
    parameters = inspect.signature(cls).parameters
    # In the module of the class that defines a field: a subclass elsewhere may lack the names.
    for base in reversed(owner.__mro__):
        annotations = inspect.get_annotations(base)
        fields = {name: annotations[name] for name in parameters if name in annotations}
        names = vars(sys.modules[base.__module__])
        holder = types.SimpleNamespace(__annotations__=fields)
        hints |= get_type_hints(holder, names, include_extras=True)
    return hints


def docstring(cls: type[Any]) -> tuple[str, dict[str, str]]:
    """Returns a class's docstring, and the descriptions of its own and inherited parameters."""
    descriptions: dict[str, str] = {}
    text = ""
    # Base classes first, so that the class's own description of a parameter replaces theirs.
    for base in reversed(cls.__mro__[:-1]):
        text = f"{inspect.cleandoc(vars(base).get('__doc__') or '')}\n"
        for section in _SECTION.findall(text):
            entries = _ENTRY.findall(section)
            descriptions |= {name: " ".join(lines.split()) for name, lines in entries}
    return _SECTION.sub("", text).strip(), descriptions


def marked(annotation: Any, mark: object) -> bool:  # noqa: ANN401 -- annotations have no common type
    """Returns whether an annotation, or any part of it, is `Annotated` with this mark."""
    return any(part is mark or marked(part, mark) for part in get_args(annotation))


def roles_of(cls: type[Any], parameters: Mapping[str, object]) -> Iterator[str]:
    """Yields the roles of the readers that a stage calls itself, without its nested stages."""
    for name, annotation in annotations_of(cls).items():
        value = parameters.get(name)
        if marked(annotation, ROLE_MARK):
            roles = value if isinstance(value, (tuple, list)) else (value,)
            yield from (role for role in roles if isinstance(role, str) and role)


def is_repeatable(cls: type) -> bool:
    """Returns whether equal inputs give equal results, so that results may be cached."""
    return bool(getattr(cls, "repeatable", True))


def declared_variables(cls: type) -> list[str]:
    """Returns the names of the environment variables in `depends_on`."""
    entries = (entry for _, entry in _entries(cls))
    return [e.removeprefix(_VARIABLE) for e in entries if e.startswith(_VARIABLE)]


def declared_files(cls: type) -> list[tuple[str, Path]]:
    """Returns the files and folders in `depends_on`: the entries with their resolved paths."""
    return [
        (entry, _file(base, entry))
        for base, entry in _entries(cls)
        if not entry.startswith(_VARIABLE)
    ]


def fault_of_declarations(cls: type) -> str | None:
    """Returns the fault of `depends_on` or `repeatable` of a class, or None."""
    fields = {f.name for f in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    for name, annotation in (("depends_on", "tuple[str, ...]"), ("repeatable", "bool")):
        if name in fields:
            return (
                f"{cls.__name__}.{name} is a parameter: annotate it as ClassVar[{annotation}],"
                " or not at all"
            )
    if not isinstance(value := getattr(cls, "repeatable", True), bool):
        return f"{cls.__name__}.repeatable is {value!r}; it must be True or False"
    try:
        declared_files(cls)
    except UserError as error:
        return str(error)
    return None


def _entries(cls: type) -> Iterator[tuple[type, str]]:
    """Yields the entries of `depends_on` of a class and its bases, with the class of each entry."""
    # Declarations of base classes apply too, because their code is part of the class.
    for base in cls.__mro__:
        entries = vars(base).get("depends_on", ())
        if not isinstance(entries, tuple) or not all(isinstance(e, str) and e for e in entries):
            raise UserError(
                f"{base.__name__}.depends_on is {entries!r}; it must be a tuple of files and"
                ' variables, such as ("words.txt", "env:LANGUAGE")'
            )
        for entry in entries:
            if entry.startswith(_VARIABLE) and not _NAME.fullmatch(entry, len(_VARIABLE)):
                raise UserError(
                    f"{base.__name__}.depends_on has {entry!r}; an environment variable is env:NAME"
                )
            yield base, entry


def _file(base: type, entry: str) -> Path:
    source = getattr(sys.modules.get(base.__module__), "__file__", None)
    folder = Path(source).resolve().parent if source else None
    path = (folder or Path()) / entry
    # Not by `Path`, which raises for names that are too long. Pipes have no content to compare.
    if not path.is_absolute() or not (os.path.isfile(path) or os.path.isdir(path)):  # noqa: PTH112, PTH113
        raise UserError(
            f"{base.__name__}.depends_on has {entry!r}, but {path} does not exist; a file is"
            " relative to the class's source file"
        )
    return path
