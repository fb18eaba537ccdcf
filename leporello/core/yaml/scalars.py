"""Scalar types of YAML 1.2's core schema: `no` and `1:30` are text, `1e-5` and `0o17` numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import NoneType
from typing import TypeAlias

from leporello.core.numbers import integer, real

Scalar: TypeAlias = bool | int | float | str | None

STANDARD = "tag:yaml.org,2002:"  # prefix of the schema's tags, such as `!!int`
TAGS: Mapping[type, str] = {
    NoneType: f"{STANDARD}null",
    **{kind: STANDARD + kind.__name__ for kind in (bool, int, float, str)},
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
    """Returns the value of a plain scalar, which may have underscores between digits.

    Raises:
        ValueError: The scalar is a number that is too long or too large.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _BEGIN:
        return text
    is_integer = _INTEGER.fullmatch(text)
    if not is_integer and not _FLOAT.fullmatch(text):
        return text
    base = _BASES.get(text.lstrip("+-")[:2], 10)
    return integer(text, base) if is_integer else real(text)


def typed_scalar(text: str, tag: str | None) -> Scalar:
    """Returns the value of a scalar with a tag, such as `!!int 5` or `!!float 3`.

    Raises:
        ValueError: The text is not a value of this type, or a number that is too long or too large.
    """
    if tag in (None, TAGS[str]) or tag not in TAGS.values():
        return text
    value = scalar_of(text)
    if tag == TAGS[float] and type(value) is int:
        return float(value)
    if TAGS[type(value)] != tag:
        raise ValueError(f"{text!r:.60} is not a value of the type of its tag")
    return value
