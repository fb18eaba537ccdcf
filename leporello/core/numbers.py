"""Numbers in files, replies and requests: each conversion has a limit of length and of value."""

from __future__ import annotations

import json
import math
from typing import Any

from leporello.core.environment.input_limits import COUNT, NUMBER_LETTERS


def integer(text: str, base: int = 10) -> int:
    """Returns an integer that a float can represent too, so that arithmetic cannot overflow.

    Raises:
        ValueError: The number is too long or too large.
    """
    _check_length(text)
    value = int(text, base)
    try:
        float(value)
    except OverflowError:
        raise _too_large(text) from None
    return value


def real(text: str) -> float:
    """Returns a finite float.

    Raises:
        ValueError: The number is too long or too large.
    """
    _check_length(text)
    value = float(text)
    if not math.isfinite(value):
        raise _too_large(text)
    return value


def count_of(value: object) -> int | None:
    """Returns a count; None if the value is not a count."""
    return value if type(value) is int and 0 <= value <= COUNT else None


def loads(text: str) -> Any:  # noqa: ANN401 -- any JSON
    """Returns the value of JSON text.

    Raises:
        ValueError: The text is not JSON, or a number in it is too long or too large.
    """
    return _DECODER.decode(text)


_DECODER = json.JSONDecoder(parse_int=integer, parse_float=real)


def _check_length(text: str) -> None:
    if len(text) > NUMBER_LETTERS:
        raise ValueError(f"a number of {len(text):,} letters is too long: at most {NUMBER_LETTERS}")


def _too_large(text: str) -> ValueError:
    return ValueError(f"the number {text:.20} of {len(text)} letters is too large: at most 1.8e308")
