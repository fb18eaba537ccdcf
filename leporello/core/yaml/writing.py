"""Writes YAML that `tree` reads back unchanged."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from leporello.core.files import atomically
from leporello.core.yaml.scalars import TAGS, scalar_of


class _Dumper(yaml.SafeDumper):
    """Quotes texts that YAML 1.2, or 1.1 as in most programs, would read as another type."""

    def resolve(self, kind: type, value: Any, implicit: Any) -> str:  # noqa: ANN401 -- PyYAML's
        tag = str(super().resolve(kind, value, implicit))  # type: ignore[no-untyped-call]
        if kind is not yaml.ScalarNode or not implicit[0]:
            return tag
        try:
            value = scalar_of(value)
        except ValueError:  # the number is too long
            return TAGS[int]
        return tag if isinstance(value, str) else TAGS[type(value)]


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = None if value.isprintable() else '"'  # other styles change some kinds of line breaks
    return dumper.represent_scalar(TAGS[str], value, style)


def _number(dumper: _Dumper, value: float) -> yaml.ScalarNode:
    if not math.isfinite(value):
        return dumper.represent_float(value)
    # PyYAML's `represent_float` would add the dot that YAML 1.1 requires.
    return dumper.represent_scalar(TAGS[float], repr(value))


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
