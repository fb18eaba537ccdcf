"""Marks of a sheet's cells that are not values: merged, hidden, errors, formats of numbers."""

import re
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from leporello.core.errors import UserError

# First row, first column, last row and last column of merged cells, from 0.
Merged: TypeAlias = tuple[int, int, int, int]

PERCENT = {"9": "0%", "10": "0.00%"}  # formats that a file need not define, by number
MOST_CELLS = 40_000_000  # of a sheet's rectangle; even an empty cell takes 24 bytes
_EXACT = 10**21  # larger numbers are written with an exponent
_IN_FORMAT = re.compile(
    r'(?s)"([^"]*)"|\[\$([^][-]*+)[^][]*+\]|\[[^][]*+\]|\\(.)|[_*].|([$€£¥%\s])|([0#?.,]+(?:[Ee][-+]0+)?)|.'
)
_CONDITION = re.compile(r"\[[<>=]")


@dataclass(slots=True)
class Marks:
    """Marks of a sheet's cells; rows and columns count from 0."""

    # Merged cells, if calamine does not return them
    merged: list[Merged] = field(default_factory=list)
    rows: list[range] = field(default_factory=list)  # hidden rows
    columns: list[range] = field(default_factory=list)  # hidden columns
    # Texts that calamine does not return, such as errors and units, by row and column
    texts: dict[tuple[int, int], str] = field(default_factory=dict)
    uncomputed: int = 0  # number of formulas without a value


def check_size(cells: int, path: Path) -> None:
    """Raises UserError for a sheet of over 40 million cells, which would fill the memory."""
    if cells > MOST_CELLS:
        raise UserError(f"{path}: has a sheet of {cells:,} cells, too many")


def number(value: float) -> str:
    """Returns the usual spelling of a number.

    It has the 15 digits that spreadsheet programs show: 0.1 + 0.2 is 0.3.
    """
    if value % 1 or abs(value) >= _EXACT:
        return f"{value:.15g}"
    text = repr(value + 0.0)  # no minus before a zero
    return text[:-2] if text.endswith(".0") else f"{Decimal(text):f}"


def has_unit(code: str) -> bool:
    """Returns whether a number format shows a unit, a currency, per cent or leading zeros."""
    return formatted(1, code) != "1"


def formatted(value: float, code: str) -> str:
    """Returns a number with the unit, currency or per cent of its format, but with all digits."""
    before, after, zeros = _units(code)
    text = number(abs(value))
    if "%" in before + after:
        text = f"{(Decimal(text) * 100).normalize():f}"
    text = text.zfill(zeros) if text.isdigit() else text
    return ("-" if value < 0 else "") + before + text + after


@lru_cache(1000)
def _units(code: str) -> tuple[str, str, int]:
    """Returns the texts before and after the digits of a number format, and its leading zeros."""
    around, digits = ["", ""], ""
    for match in _IN_FORMAT.finditer(code):
        if match[0] == ";":  # formats of negative numbers and texts follow
            break
        digits = digits or match[5] or ""
        around[bool(digits)] += "".join(text or "" for text in match.groups()[:4])
    if not digits or digits.endswith(",") or _CONDITION.search(code):
        return "", "", 0  # shows texts, thousands, or one of several formats
    return around[0].lstrip(), around[1].rstrip(), len(digits) if {*digits} == {"0"} else 0
