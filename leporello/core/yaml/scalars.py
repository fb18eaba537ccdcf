"""Scalar types of YAML 1.2's core schema, and a writer of YAML that `tree` reads back unchanged.

In the schema `no` and `1:30` are text, `1e-5` and `0o17` numbers.
"""

import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Any, TypeAlias

import yaml

from leporello.core.environment.input_limits import integer, real
from leporello.core.files import atomically

Scalar: TypeAlias = bool | int | float | str | None

_TAGS: Mapping[type, str] = {
    NoneType: "tag:yaml.org,2002:null",
    **{kind: f"tag:yaml.org,2002:{kind.__name__}" for kind in (bool, int, float, str)},
}
_WORDS: Mapping[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
}
_BEGIN = frozenset("+-.0123456789")  # first letters of numbers
_BASES = {"0b": 2, "0o": 8, "0x": 16}
_INTEGER = re.compile(
    r"[-+]?(?:0b_*[01][01_]*|0o_*[0-7][0-7_]*|0x_*[\da-fA-F][\da-fA-F_]*|_*\d[\d_]*)", re.ASCII
)
_FLOAT = re.compile(
    r"[-+]?(?:\d[\d_]*(?:\.[\d_]*)?(?:[eE][-+]?\d+)?|\._*\d[\d_]*(?:[eE][-+]\d+)?)", re.ASCII
)


def scalar_of(text: str) -> Scalar:
    """Returns the value of a plain scalar, which may have underscores between digits."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _BEGIN:
        return text
    is_integer = _INTEGER.fullmatch(text)
    if not is_integer and not _FLOAT.fullmatch(text):
        return text
    base = _BASES.get(text.lstrip("+-")[:2], 10)
    return integer(text, base) if is_integer else real(text)


class _Dumper(yaml.SafeDumper):
    """Quotes texts that YAML 1.2, or 1.1 as in most programs, would read as another type."""

    def resolve(self, kind: type, value: Any, implicit: Any) -> str:  # noqa: ANN401 -- PyYAML's
        tag = str(super().resolve(kind, value, implicit))  # type: ignore[no-untyped-call]
        if kind is not yaml.ScalarNode or not implicit[0]:
            return tag
        try:
            value = scalar_of(value)
        except ValueError:  # the number is too long
            return _TAGS[int]
        return tag if isinstance(value, str) else _TAGS[type(value)]


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = None if value.isprintable() else '"'  # other styles change some kinds of line breaks
    return dumper.represent_scalar(_TAGS[str], value, style)


def _number(dumper: _Dumper, value: float) -> yaml.ScalarNode:
    if not math.isfinite(value):
        return dumper.represent_float(value)
    # PyYAML's `represent_float` would add the dot that YAML 1.1 requires.
    return dumper.represent_scalar(_TAGS[float], repr(value))


_Dumper.add_representer(str, _text)
_Dumper.add_representer(float, _number)


def as_yaml(value: Mapping[str, Any]) -> str:
    """Returns a value as YAML for display, with keys in order; a mapping of scalars is one line."""
    # PyYAML folds only after the item that exceeds the width: most lines end before column 80.
    return _dump(value, width=60, sort_keys=False).strip()


def write_yaml(path: Path, value: Mapping[str, Any]) -> None:
    """Writes a YAML file atomically, sorted by key."""
    with atomically(path) as file:
        # Unlimited width: a key that is folded over several lines cannot be read back.
        file.write(_dump(value, width=sys.maxsize, sort_keys=True))


def _dump(value: Mapping[str, Any], width: int, *, sort_keys: bool) -> str:
    text: str = yaml.dump(
        value, Dumper=_Dumper, width=width, sort_keys=sort_keys, allow_unicode=True,
        default_flow_style=None,
    )  # fmt: skip
    return text
