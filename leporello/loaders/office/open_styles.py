"""Styles of OpenDocument: numbers of lists and headings, raised and hidden text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from leporello.loaders.numbering import numeral, whole

if TYPE_CHECKING:
    from lxml.etree import _Element

OUTLINE = "outline"  # name of the list style of headings, in which no other list is
_DEEPEST = 20  # styles that inherit from each other
_LEVEL_STYLES = {"list-level-style-number", "list-level-style-bullet", "outline-level-style"}
_PROPERTIES = {"text-properties", "drawing-page-properties"}


@dataclass(slots=True)
class OpenCounts:
    """Numbers of a list's items so far.

    Attributes:
        style: Name of the list style.
        level: Level of the current list, from 1.
        numbers: Number of the last item, by level; shared by the lists inside each other.
        start: Number of the next item as the file gives it; empty to count on.
    """

    style: str
    level: int = 1
    numbers: dict[int, int] = field(default_factory=dict)
    start: str = ""

    def inner(self, style: str) -> OpenCounts:
        """Returns the numbers of a list in this list."""
        return OpenCounts(style or self.style, self.level + 1, self.numbers)


class OpenStyles:
    """Styles by name, as far as they determine text."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        self._properties: dict[str, dict[str, str]] = {}  # of text, by the name of the style
        self._lists: dict[str, str] = {}  # list styles of paragraph styles
        self._levels: dict[tuple[str, int], Mapping[str, str]] = {}
        self._counts: dict[str, OpenCounts] = {}  # of the last list, by its style and its id
        self._style = self._list = ""  # that are being defined
        self._values: dict[tuple[str, str], str] = {}  # properties, also inherited ones

    def read(self, root: _Element) -> None:
        """Reads all styles of a tree."""
        for element in root.iter("{*}*"):
            attributes = {str(k).rpartition("}")[2]: str(v) for k, v in element.attrib.items()}
            self.define(str(element.tag).rpartition("}")[2], attributes)

    def define(self, name: str, attributes: Mapping[str, str]) -> None:
        """Reads an element of a style; other elements are ignored."""
        if name == "style":
            self._values.clear()
            self._style = attributes.get("name", "")
            self._parents[self._style] = attributes.get("parent-style-name", "")
            self._lists[self._style] = attributes.get("list-style-name", "")
        elif name == "default-style":
            self._style = ""
        elif name in ("list-style", "outline-style"):
            self._style = ""
            self._list = attributes.get("name", "") if name == "list-style" else OUTLINE
        elif name in _LEVEL_STYLES:
            self._levels[self._list, whole(attributes.get("level"))] = attributes
        elif name in _PROPERTIES and self._style:
            self._values.clear()
            self._properties.setdefault(self._style, {}).update(attributes)

    def height(self, style: str) -> str:
        """Returns `sup` for raised, `sub` for lowered text; empty for other text."""
        position = self._value(style, "text-position").split(" ")[0]
        if position.startswith("sub") or re.match(r"-[1-9]", position):
            return "sub"
        return "sup" if position.startswith("super") or re.match(r"[1-9]", position) else ""

    def is_hidden(self, style: str) -> bool:
        """Returns whether text or a slide with the style is not shown."""
        display = self._value(style, "display")
        return display == "none" or self._value(style, "visibility") == "hidden"

    def counts(self, style: str, attributes: Mapping[str, str]) -> OpenCounts:
        """Returns the numbers of an outermost list, which may continue an earlier list."""
        earlier = self._counts.get(attributes.get("continue-list", ""))
        if attributes.get("continue-numbering") == "true":
            earlier = earlier or self._counts.get(f"style {style}")
        counts = OpenCounts(style, 1, earlier.numbers if earlier else {})
        self._counts[f"style {style}"] = counts
        if "id" in attributes:
            self._counts[attributes["id"]] = counts
        return counts

    def number(self, counts: OpenCounts, paragraph: str) -> str:
        """Counts an item, and returns its number; empty for items with bullets.

        Args:
            counts: Numbers of the list.
            paragraph: Style of the item's paragraph, which may name a list style.
        """
        names = (name for base in self._line(paragraph) if (name := self._lists.get(base)))
        style = counts.style or next(names, "")
        numbers, level = counts.numbers, counts.level
        following = numbers.get(level, self._first(style, level) - 1) + 1
        numbers[level] = whole(counts.start, following)
        counts.start = ""
        for deeper in [number for number in numbers if number > level]:
            del numbers[deeper]
        level_style = self._levels.get((style, level), {})
        if not level_style.get("num-format"):
            return ""
        shown = whole(level_style.get("display-levels"), 1)
        texts = []
        for outer in range(max(1, level - shown + 1), level + 1):
            form = self._levels.get((style, outer), {}).get("num-format")
            if form:
                texts.append(numeral(numbers.get(outer, self._first(style, outer)), form))
        return (
            level_style.get("num-prefix", "") + ".".join(texts) + level_style.get("num-suffix", "")
        )

    def _first(self, style: str, level: int) -> int:
        return whole(self._levels.get((style, level), {}).get("start-value"), 1)

    def _line(self, style: str) -> Iterator[str]:
        """Yields a style, and the styles that it inherits from."""
        for _ in range(_DEEPEST):
            if not style:
                return
            yield style
            style = self._parents.get(style, "")

    def _value(self, style: str, name: str) -> str:
        """Returns a property that a style has or inherits; empty without it."""
        if (style, name) not in self._values:
            properties = (self._properties.get(inherited, {}) for inherited in self._line(style))
            self._values[style, name] = next((p[name] for p in properties if name in p), "")
        return self._values[style, name]
