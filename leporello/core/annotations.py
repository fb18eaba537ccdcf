"""Annotations of a constructor, resolved, and the marks that they carry."""

from __future__ import annotations

import inspect
import re
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

# In a docstring of Google's style.
_SECTION = re.compile(r"^(?:Args|Attributes):\n((?:(?: {4}.*)?\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True, eq=False)
class _Mark:
    """Marks a parameter in an `Annotated`; one mark per alias in `protocols`."""

    shown: str

    def __repr__(self) -> str:
        return self.shown


MODEL_MARK = _Mark("model")
BACKEND_MARK = _Mark("backend")
SECRET_MARK = _Mark("$VARIABLE")
ROLE_MARK = _Mark("role")


def annotations_of(cls: type[Any]) -> dict[str, Any]:
    """Returns the annotations of a constructor's parameters.

    Those of a dataclass's own stand where its fields do: what a base class in another module calls
    `Positive` means nothing in the module of a class that inherits it.

    Raises:
        NameError: An annotation names something that its module does not have.
    """
    owner = next(base for base in cls.__mro__ if "__init__" in vars(base))
    if "__dataclass_params__" not in vars(owner) or not vars(owner)["__dataclass_params__"].init:
        return get_type_hints(cls.__init__, include_extras=True)
    hints: dict[str, Any] = {}
    given = inspect.signature(cls).parameters
    for base in reversed(owner.__mro__):
        own = inspect.get_annotations(base)
        fields = {name: own[name] for name in given if name in own}
        names = vars(sys.modules[base.__module__])
        written = types.SimpleNamespace(__annotations__=fields)
        hints |= get_type_hints(written, names, include_extras=True)
    return hints


def docstring(cls: type[Any]) -> tuple[str, dict[str, str]]:
    """Returns what a class's docstring says, and its description of each parameter.

    Descriptions stand under `Args` or `Attributes`; those of base classes hold too.
    """
    found: dict[str, str] = {}
    text = ""
    for base in reversed(cls.__mro__[:-1]):
        text = f"{inspect.cleandoc(vars(base).get('__doc__') or '')}\n"
        for section in _SECTION.findall(text):
            found |= {name: " ".join(told.split()) for name, told in _ENTRY.findall(section)}
    return _SECTION.sub("", text).strip(), found


def marked(annotation: Any, mark: object) -> bool:  # noqa: ANN401 -- annotations have no common type
    """Returns whether an annotation, or any part of it, is `Annotated` with this mark."""
    arguments = get_args(annotation)
    return any(each is mark or marked(each, mark) for each in arguments)


def roles_of(cls: type[Any], given: Mapping[str, object]) -> Iterator[str]:
    """Yields the roles that an object asks, by its class and parameters, not those nested in it."""
    for name, annotation in annotations_of(cls).items():
        value = given.get(name)
        if marked(annotation, ROLE_MARK):
            roles = value if isinstance(value, (tuple, list)) else (value,)
            yield from (role for role in roles if isinstance(role, str) and role)
