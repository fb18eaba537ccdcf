"""Numbers of list items: decimal, letters and Roman numerals, and counters of lists."""

import re
from dataclasses import dataclass

from leporello.loaders.tables.rows import letters

_ROMAN = {
    1000: "M", 900: "CM", 500: "D", 400: "CD", 100: "C", 90: "XC", 50: "L", 40: "XL", 10: "X",
    9: "IX", 5: "V", 4: "IV", 1: "I",
}  # fmt: skip
_MOST_ROMAN = 3999
_WHOLE = re.compile(r"\s*-?\d{1,9}\s*", re.ASCII)


def numeral(number: int, form: str) -> str:
    """Returns a number as text; numbers that a form does not have are decimal.

    The form is its first number: `1`, `01`, `a`, `A`, `i` or `I`.
    """
    if form == "01":
        return f"{number:02}"
    if number < 1 or form not in ("a", "A", "i", "I"):
        return str(number)
    if form in ("a", "A"):
        text = letters(number - 1)
    elif number > _MOST_ROMAN:
        return str(number)
    else:
        text = ""
        for value, sign in _ROMAN.items():
            text += sign * (number // value)
            number %= value
    return text if form.isupper() else text.lower()


def whole(text: str | None, default: int = 0) -> int:
    """Returns an attribute as a whole number; the default for other text."""
    is_number = text is not None and _WHOLE.fullmatch(text) is not None
    return int(text) if text and is_number else default


@dataclass(slots=True)
class Counter:
    """Counter of a list."""

    following: int = 1  # number of the next item
    form: str = "1"  # form of its numbers, as in `numeral`; empty for items without numbers

    def count(self) -> str:
        """Counts an item, and returns its number with a dot; empty for items without numbers."""
        current = self.following
        self.following += 1
        return f"{numeral(current, self.form)}." if self.form else ""
