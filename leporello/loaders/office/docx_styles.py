"""Styles and numbers of Word: levels of headings, numbers of paragraphs, raised and hidden text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from leporello.loaders.numbering import numeral, whole
from leporello.loaders.office.archive import Element
from leporello.loaders.office.parts import attribute

_DEEPEST = 20  # styles that are based on each other
_FORMS = {
    "decimal": "1", "decimalZero": "01", "lowerLetter": "a", "upperLetter": "A",
    "lowerRoman": "i", "upperRoman": "I",
}  # fmt: skip
_WITHOUT_NUMBER = {"bullet", "none"}
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_PLACE = re.compile(r"%([1-9])")


class WordStyles:
    """Styles of paragraphs and text, by id."""

    def __init__(self, root: Element) -> None:
        self._styles = {attribute(s, "styleId") or "": s for s in root.iter("{*}style")}
        # Most paragraphs have one of few styles.
        self.heading = cache(self._heading)
        self.text_value = cache(self._text_value)
        self.numbering = cache(self._numbering)

    def _line(self, id_: str) -> Iterator[tuple[str, Element]]:
        """Yields a style, and the styles that it is based on, with their ids."""
        for _ in range(_DEEPEST):
            style = self._styles.get(id_)
            if style is None:
                return
            yield id_, style
            id_ = attribute(style.find("{*}basedOn")) or ""

    def _heading(self, id_: str) -> int:
        """Returns the level of headings of a style; 0 for other paragraphs."""
        for _, style in self._line(id_):
            name = attribute(style.find("{*}name")) or ""  # in English for built-in styles
            if name == "Title":
                return 1
            if match := _HEADING.fullmatch(name):
                return int(match[1])
            if (level := outline_level(style.find("{*}pPr"))) is not None:
                return level
        return 0

    def _text_value(self, id_: str, name: str) -> str | None:
        """Returns a property of text that a style has or inherits; None without it."""
        elements = (style.find(f"{{*}}rPr/{{*}}{name}") for _, style in self._line(id_))
        element = next((e for e in elements if e is not None), None)
        return None if element is None else attribute(element) or "true"

    def _numbering(self, id_: str) -> tuple[str | None, str | None, str]:
        """Returns the numbering and level of a style, and the style that defines them."""
        for name, style in self._line(id_):
            numbers = style.find("{*}pPr/{*}numPr")
            if numbers is not None and (number := attribute(numbers.find("{*}numId"))) is not None:
                return number, attribute(numbers.find("{*}ilvl")), name
        return None, None, ""


def outline_level(properties: Element | None) -> int | None:
    """Returns the level of headings that a paragraph has; 0 for body text, None without it."""
    value = None if properties is None else attribute(properties.find("{*}outlineLvl"))
    if value is None or not value.isdecimal():
        return None
    return int(value) + 1 if int(value) < 9 else 0  # noqa: PLR2004 -- 9 is body text


@dataclass(frozen=True, slots=True)
class Level:
    """A level of a numbering."""

    form: str  # form of the number, as in `numeral`; empty without number
    text: str  # text with a place `%2` for the number of each level; empty for bullets
    start: int = 1  # first number
    style: str = ""  # id of the style whose paragraphs have this level
    is_legal: bool = False  # whether the numbers of all levels are decimal


class WordNumbers:
    """Numbers of paragraphs, counted in the order of the document."""

    def __init__(self, root: Element, styles: WordStyles) -> None:
        self._styles = styles
        self._abstract = {
            attribute(e, "abstractNumId") or "": e for e in root.iterfind("{*}abstractNum")
        }
        self._numbers = {attribute(e, "numId") or "": e for e in root.iterfind("{*}num")}
        self._restarts = {  # first numbers, by numbering and level, until they are used
            (id_, whole(attribute(override, "ilvl"))): whole(attribute(start), 1)
            for id_, number in self._numbers.items()
            for override in number.iterfind("{*}lvlOverride")
            if (start := override.find("{*}startOverride")) is not None
        }
        self._levels = cache(self._read_levels)
        self._counts: dict[str, dict[int, int]] = {}  # last numbers, by list and level

    def number(self, properties: Element | None, style: str) -> str | None:
        """Counts a paragraph, and returns its number; empty for bullets, None without either."""
        numbers = None if properties is None else properties.find("{*}numPr")
        id_ = None if numbers is None else attribute(numbers.find("{*}numId"))
        at = None if numbers is None else attribute(numbers.find("{*}ilvl"))
        by_style = style
        if id_ is None:
            id_, level_of_style, by_style = self._styles.numbering(style)
            at = at or level_of_style
        if not id_ or id_ == "0":
            return None
        abstract, levels = self._levels(id_)
        of_style = (i for i, level in levels.items() if by_style and level.style == by_style)
        level = whole(at) if at is not None else next(of_style, 0)
        return self._text(id_, abstract, levels, level) if level in levels else None

    def _read_levels(self, id_: str) -> tuple[str, dict[int, Level]]:
        """Returns the id of the list that a numbering counts, and its levels."""
        first = number = self._numbers.get(id_)
        abstract, levels = "", dict[int, Level]()
        for _ in range(_DEEPEST):  # a style may refer to another numbering
            if number is None:
                break
            abstract = attribute(number.find("{*}abstractNumId")) or ""
            if (source := self._abstract.get(abstract)) is None:
                break
            levels = dict(map(_level, source.iterfind("{*}lvl")))
            link = attribute(source.find("{*}numStyleLink"))
            number = self._numbers.get(self._styles.numbering(link)[0] or "") if link else None
        for override in () if first is None else first.iterfind("{*}lvlOverride"):
            if (level := override.find("{*}lvl")) is not None:
                levels[whole(attribute(override, "ilvl"))] = _level(level)[1]
        return abstract, levels

    def _text(self, id_: str, abstract: str, levels: dict[int, Level], at: int) -> str:
        counts = self._counts.setdefault(abstract, {})
        start = self._restarts.pop((id_, at), None)
        if start is not None:
            counts[at] = start
        else:
            counts[at] = counts[at] + 1 if at in counts else levels[at].start
        for deeper in [number for number in counts if number > at]:
            del counts[deeper]
        level = levels[at]
        for outer in range(at):  # a level that is left out counts as one item
            if outer in levels:
                counts.setdefault(outer, levels[outer].start)

        def shown(place: re.Match[str]) -> str:
            outer = int(place[1]) - 1
            part = levels.get(outer, Level("1", ""))
            form = "1" if level.is_legal and part.form else part.form
            return numeral(counts.get(outer, part.start), form) if form else ""

        return _PLACE.sub(shown, level.text).strip()


def _level(element: Element) -> tuple[int, Level]:
    kind = attribute(element.find("{*}numFmt")) or "decimal"
    form = "" if kind in _WITHOUT_NUMBER else _FORMS.get(kind, "1")
    text = "" if kind == "bullet" else attribute(element.find("{*}lvlText")) or ""
    return whole(attribute(element, "ilvl")), Level(
        form,
        text,
        whole(attribute(element.find("{*}start"))),
        attribute(element.find("{*}pStyle")) or "",
        is_on(element.find("{*}isLgl")),
    )


def is_on(element: Element | None) -> bool:
    """Returns whether a property that can be switched off is on."""
    return element is not None and (attribute(element) or "true") not in ("0", "false", "off")
