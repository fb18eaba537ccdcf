"""Fields of an object, for readers that answer one question at a time, and units of numbers."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from leporello.core.coverage import Span
from leporello.core.records import JSON
from leporello.text.typed.parse import kind_of, without_null
from leporello.text.typed.values import numbers

_DEEPEST = 5  # objects within objects
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\W]+")


@dataclass(frozen=True, slots=True)
class AnswerField:
    """A field of an object, or of an object within it."""

    pointer: str  # JSON Pointer of the field
    question: str  # question that asks for the field: its description, or its name in words
    schema: str  # JSON Schema of its value, as text
    nullable: bool  # whether it may be null


@lru_cache(maxsize=256)
def fields_of(schema: str) -> tuple[AnswerField, ...]:
    """Returns the innermost fields of an object; empty if the type is not an object."""
    root = json.loads(schema)
    return (*_fields(root, root, "", 0),) if kind_of(root) == "object" else ()


def _fields(
    schema: Mapping[str, Any], root: Mapping[str, Any], pointer: str, depth: int
) -> Iterator[AnswerField]:
    for name, inner in without_null(schema, root).get("properties", {}).items():
        field_pointer = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
        if kind_of(inner, root) == "object" and depth < _DEEPEST:
            yield from _fields(inner, root, field_pointer, depth + 1)
            continue
        plain = without_null(inner, root)
        shared = {"$defs": root["$defs"]} if "$defs" in root else {}
        question = inner.get("description") or plain.get("description") or in_words(name)
        text = json.dumps({**shared, **plain}, ensure_ascii=False)
        yield AnswerField(field_pointer, question, text, plain is not inner and "$ref" not in inner)


def in_words(name: str) -> str:
    """Returns a field's name in words: `governing_law` becomes `governing law`."""
    return " ".join(word.lower() if word.istitle() else word for word in _WORDS.split(name) if word)


def filled(fields: Sequence[AnswerField], values: Sequence[JSON]) -> JSON:
    """Returns the object with these values, without invalid nulls; None if all are null."""
    if all(value is None for value in values):
        return None
    root: dict[str, Any] = {}
    for field, value in zip(fields, values, strict=True):
        *above, name = [
            p.replace("~1", "/").replace("~0", "~") for p in field.pointer[1:].split("/")
        ]
        node = root
        for part in above:
            node = node.setdefault(part, {})
        if value is not None or field.nullable:
            node[name] = value
    return root


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of measure."""

    name: str  # name of the unit
    kind: str  # quantity that it measures; units of one kind can be converted
    size: float  # size in the smallest unit of its kind. Currencies have no fixed size; theirs is 0


# Days and months cannot be converted into each other. The first word is the name, in the plural.
_KINDS: Mapping[str, Mapping[float, str]] = {
    "time": {
        1: "seconds second sec secs s", 60: "minutes minute min mins", 3600: "hours hour hrs hr h",
        86_400: "days day", 604_800: "weeks week",
    },
    "months": {1: "months month", 3: "quarters quarter", 12: "years year yrs yr"},
    "length": {
        0.001: "millimetres millimetre millimeters millimeter mm",
        0.01: "centimetres centimetre centimeters centimeter cm",
        1: "metres metre meters meter m",
        1000: "kilometres kilometre kilometers kilometer km",
        0.0254: "inches inch", 0.3048: "feet foot ft", 0.9144: "yards yard", 1609.344: "miles mile",
    },
    "weight": {
        0.001: "milligrams milligram mg", 1: "grams gram g", 1000: "kilograms kilogram kg kgs",
        1_000_000: "tonnes tonne", 28.349523125: "ounces ounce oz",
        453.59237: "pounds pound lb lbs",
    },
    "share": {1: "fraction", 0.01: "percent percentage pct %", 0.0001: "bps bp"},
}  # fmt: skip
_MONEY = (
    "dollars dollar usd $", "euros euro eur €", "sterling gbp £", "yen jpy ¥", "francs franc chf",
)  # fmt: skip
_UNITS = {
    word: Unit(words.split()[0], kind, size)
    for kind, sizes in _KINDS.items()
    for size, words in sizes.items()
    for word in words.split()
} | {word: Unit(words.split()[0], "money", 0) for words in _MONEY for word in words.split()}
_POUNDS = {"pounds", "sterling"}  # "pounds" may be money
_SPELLED = (
    (re.compile(r"\bper\s+cent\b", re.IGNORECASE), "percent"),
    (re.compile(r"\bbasis\s+points\b", re.IGNORECASE), "bps"),
    (re.compile(r"\bpounds\s+sterling\b", re.IGNORECASE), "sterling"),
)
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_SCALED = re.compile(
    r"(?:thousand|million|billion|trillion|mn|bn)$|\d\s?(?-i:k|K|M)$", re.IGNORECASE
)


def _words(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


# A unit that a field asks for is a plural: `year` is more often a date, `second` an ordinal.
_ASKED = {
    word: unit
    for word, unit in _UNITS.items()
    if unit.kind == "money"
    or (not (word.isalpha() and len(word) == 1) and not {word + "s", word + "es"} & _UNITS.keys())
}
_QUESTION = re.compile(
    r"(?:\bin|\bhow many|\bnumber of|\bas an?|\bwhat|\()\s*"
    rf"(?:(?P<scale>{_words(_SCALES)})s?\b)?(?:\s+of)?\s*(?P<unit>(?:{_words(_ASKED)})(?!\w))?",
    re.IGNORECASE,
)
_AFTER = re.compile(rf"(?:\s?\(\d+\))?[\s-]?({_words(_UNITS)})(?!\w)", re.IGNORECASE)
_SIGNS = "$€£¥"
_BEFORE = re.compile(rf"(\b(?:usd|eur|gbp|jpy|chf)|[{_SIGNS}])\s?$", re.IGNORECASE)
_NEAR = 40  # characters around a number that may contain its unit


class UnitError(ValueError):
    """Raised for a number that cannot be converted to the unit of a field."""


def in_unit(value: float, text: str, span: Span, field: str, question: str) -> tuple[float, str]:
    """Returns a number of a text in the unit that its field asks for, and the name of the unit.

    The unit is empty if neither the field nor the text names one. Money is not converted. The span
    has the number, perhaps with text around it. Raises UnitError for another quantity or currency.
    """
    number = next((n for n in numbers(text[span.start : span.end]) if n.value == value), None)
    if number is None:
        return value, ""
    start, end = span.start + number.start, span.start + number.end
    wanted, scale = _asked(field, question)
    unit, length = _unit_at(text, start, end, wanted)
    quoted = " ".join(text[start : end + length].split())
    if unit and unit.size:
        total = value * unit.size + _remainder(text, end + length, unit)
        value = total / unit.size
    if wanted and unit and wanted != unit and {wanted.name, unit.name} != _POUNDS:
        if wanted.kind != unit.kind or not wanted.size:
            raise UnitError(f"{quoted!r} in the document cannot be converted to {wanted.name}")
        value = total / wanted.size
    if scale and (abs(value) >= _SCALES[scale] or _SCALED.search(text[start:end])):
        value /= _SCALES[scale]
    shown = wanted or unit
    name = shown.name if shown else ""
    value = round(value, 6)
    return int(value) if float(value).is_integer() else value, f"{scale} {name}".strip()


def _asked(field: str, question: str) -> tuple[Unit | None, str]:
    """Returns the unit and the scale that a field's name asks for, otherwise its description."""
    words = in_words(field).lower().split()
    units = [_ASKED[word] for word in words if word in _ASKED]
    scales = [w.rstrip("s") for w in words if w.rstrip("s") in _SCALES]
    for match in _QUESTION.finditer(_spelled(question)):
        units += [_ASKED[match["unit"].lower()]] if match["unit"] else []
        scales += [match["scale"].lower()] if match["scale"] else []
    return next(iter(units), None), next(iter(scales), "")


def _unit_at(text: str, start: int, end: int, wanted: Unit | None) -> tuple[Unit | None, int]:
    """Returns the unit of a number in a text, and how many characters it takes after the number."""
    before = _BEFORE.search(text[max(0, start - _NEAR) : start])
    # The characters of a number include the sign of a currency.
    sign = before[1] if before else text[start] if text[start] in _SIGNS else ""
    if sign:
        return _UNITS[sign.lower()], 0
    after = _AFTER.match(_spelled(text[end : end + _NEAR]))
    if after is None:
        return None, 0
    unit = _UNITS[after[1].lower()]
    # A single letter may be anything, such as the name of a clause.
    is_letter = len(after[1]) == 1 and after[1].isalpha()
    if is_letter and (wanted is None or wanted.kind != unit.kind):
        return None, 0
    return unit, after.end()


def _remainder(text: str, end: int, unit: Unit) -> float:
    """Returns the rest of a quantity, as in `1 year and 6 months`, in the smallest unit."""
    following = _spelled(text[end : end + _NEAR])
    joined = re.match(r"\s+(?:and\s+)?", following)
    number = next(numbers(following[joined.end() :]), None) if joined else None
    if joined is None or number is None or number.start:
        return 0
    further, _ = _unit_at(following, joined.end(), joined.end() + number.end, unit)
    if further is None or further.kind != unit.kind or further.size >= unit.size:
        return 0
    return float(str(number.value)) * further.size


def _spelled(text: str) -> str:
    """Returns a text with units of two words as one word."""
    for words, word in _SPELLED:
        text = words.sub(word, text)
    return text
