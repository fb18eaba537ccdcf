"""Styles and numbers of Word: levels of headings, numbers of paragraphs, raised and hidden text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from leporello.loaders.numbering import numeral, whole
from leporello.loaders.office.archive import Element
from leporello.loaders.office.parts import attribute

_DEEPEST = 20  # styles that are based on each other
_FORMS = {
    "decimal": "1", "decimalZero": "01", "lowerLetter": "aa", "upperLetter": "AA",
    "lowerRoman": "i", "upperRoman": "I",
}  # fmt: skip
_WITHOUT_NUMBER = {"bullet", "none"}
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_PLACE = re.compile(r"%([1-9])")


@dataclass(frozen=True, slots=True)
class WordStyle:
    """A style of paragraphs or of text."""

    name: str  # name, in English for built-in styles
    base: str  # id of the style that it is based on
    paragraph: Element | None  # properties of paragraphs
    text: Element | None  # properties of text


class WordStyles:
    """Styles by id."""

    def __init__(self, root: Element) -> None:
        self._styles = {
            attribute(style, "styleId") or "": WordStyle(
                attribute(style.find("{*}name")) or "",
                attribute(style.find("{*}basedOn")) or "",
                style.find("{*}pPr"),
                style.find("{*}rPr"),
            )
            for style in root.iter("{*}style")
        }
        self._levels: dict[str, int] = {}
        self._values: dict[tuple[str, str], str | None] = {}

    def line(self, id_: str) -> Iterator[tuple[str, WordStyle]]:
        """Yields a style, and the styles that it is based on, with their ids."""
        for _ in range(_DEEPEST):
            style = self._styles.get(id_)
            if style is None:
                return
            yield id_, style
            id_ = style.base

    def heading(self, id_: str) -> int:
        """Returns the level of headings of a style; 0 for other paragraphs."""
        if id_ not in self._levels:
            self._levels[id_] = self._heading(id_)
        return self._levels[id_]

    def _heading(self, id_: str) -> int:
        for _, style in self.line(id_):
            if style.name == "Title":
                return 1
            if match := _HEADING.fullmatch(style.name):
                return int(match[1])
            if style.paragraph is not None:
                level = outline_level(style.paragraph)
                if level is not None:
                    return level
        return 0

    def text_value(self, id_: str, name: str) -> str | None:
        """Returns a property of text that a style has or inherits; None without it."""
        if (id_, name) not in self._values:
            elements = (
                s.text.find(f"{{*}}{name}") for _, s in self.line(id_) if s.text is not None
            )
            element = next((e for e in elements if e is not None), None)
            value = attribute(element) or "true"
            self._values[id_, name] = None if element is None else value
        return self._values[id_, name]


def outline_level(properties: Element) -> int | None:
    """Returns the level of headings that a paragraph has; 0 for body text, None without it."""
    value = attribute(properties.find("{*}outlineLvl"))
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
    restart: int | None = None  # level whose items restart the numbers; None for all outer levels


@dataclass(slots=True)
class _Numbering:
    levels: dict[int, Level] = field(default_factory=dict)
    link: str = ""  # id of the style whose numbering it has


class WordNumbers:
    """Numbers of paragraphs, counted in the order of the document."""

    def __init__(self, root: Element, styles: WordStyles) -> None:
        self._styles = styles
        self._abstract = {
            attribute(e, "abstractNumId") or "": _Numbering(
                dict(map(_level, e.iterfind("{*}lvl"))), attribute(e.find("{*}numStyleLink")) or ""
            )
            for e in root.iterfind("{*}abstractNum")
        }
        self._names = {}
        self._own: dict[str, dict[int, Level]] = {}  # levels of single numberings
        self._restarts: dict[str, dict[int, int]] = {}  # first numbers, until they are used
        for number in root.iterfind("{*}num"):
            id_ = attribute(number, "numId") or ""
            self._names[id_] = attribute(number.find("{*}abstractNumId")) or ""
            for override in number.iterfind("{*}lvlOverride"):
                at = whole(attribute(override, "ilvl"))
                if (start := override.find("{*}startOverride")) is not None:
                    self._restarts.setdefault(id_, {})[at] = whole(attribute(start), 1)
                if (level := override.find("{*}lvl")) is not None:
                    self._own.setdefault(id_, {})[at] = _level(level)[1]
        self._counts: dict[str, dict[int, int]] = {}  # last numbers, by numbering and level

    def number(self, properties: Element | None, style: str) -> str | None:
        """Counts a paragraph, and returns its number; empty for bullets, None without either."""
        numbers = None if properties is None else properties.find("{*}numPr")
        id_ = None if numbers is None else attribute(numbers.find("{*}numId"))
        at = None if numbers is None else attribute(numbers.find("{*}ilvl"))
        by_style = style
        if id_ is None:
            id_, at, by_style = self._of_style(style, at)
        if not id_ or id_ == "0":
            return None
        abstract = self._resolved(self._names.get(id_, ""))
        levels = {**self._abstract.get(abstract, _Numbering()).levels, **self._own.get(id_, {})}
        of_style = (i for i, level in levels.items() if by_style and level.style == by_style)
        level = whole(at) if at is not None else next(of_style, 0)
        return self._text(id_, abstract, levels, level) if level in levels else None

    def _of_style(self, style: str, at: str | None) -> tuple[str | None, str | None, str]:
        """Returns the numbering and level of a style, and the style that defines them."""
        for name, base in self._styles.line(style):
            numbers = None if base.paragraph is None else base.paragraph.find("{*}numPr")
            if numbers is not None and (id_ := attribute(numbers.find("{*}numId"))) is not None:
                return id_, at or attribute(numbers.find("{*}ilvl")), name
        return None, None, ""

    def _resolved(self, abstract: str) -> str:
        """Returns the numbering that a numbering refers to by a style."""
        for _ in range(_DEEPEST):
            link = self._abstract.get(abstract, _Numbering()).link
            id_ = self._of_style(link, None)[0] if link else None
            if id_ is None or self._names.get(id_) in (None, abstract):
                break
            abstract = self._names[id_]
        return abstract

    def _text(self, id_: str, abstract: str, levels: dict[int, Level], at: int) -> str:
        counts = self._counts.setdefault(abstract, {})
        start = self._restarts.get(id_, {}).pop(at, None)
        if start is not None:
            counts[at] = start
        else:
            counts[at] = counts[at] + 1 if at in counts else levels[at].start
        for deeper in [number for number in counts if number > at]:
            restart = levels[deeper].restart if deeper in levels else None
            if restart is None or at < restart:
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
    restart = attribute(element.find("{*}lvlRestart"))
    return whole(attribute(element, "ilvl")), Level(
        form,
        text,
        whole(attribute(element.find("{*}start"))),
        attribute(element.find("{*}pStyle")) or "",
        is_on(element.find("{*}isLgl")),
        None if restart is None else whole(restart),
    )


def is_on(element: Element | None) -> bool:
    """Returns whether a property that can be switched off is on."""
    return element is not None and (attribute(element) or "true") not in ("0", "false", "off")
