"""HTML: text with the line breaks of a browser, and headings as sections."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from leporello.core.records import Document
from leporello.loaders.files import Format
from leporello.loaders.flow import Flow, Gap, Tag
from leporello.loaders.numbering import Counter, whole
from leporello.loaders.text import decoded
from leporello.text.looks import codec_of

_DECLARED = re.compile(
    rb"""<\?xml(?:(?!<\?xml)[^>])*?encoding\s*+=\s*+["']([\w.:-]+)"""
    rb"""|<meta(?:(?!<meta)[^>])*?charset\s*+=\s*+["']?+\s*+([\w.:-]+)""",
    re.IGNORECASE,
)
_BEGINS = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.{0,999}?-->\s*)?<(?:!doctype\s+html|html)[\s>]",
    re.I | re.S,
)
_DECLARED_WITHIN = 4096  # bytes; browsers examine the first 1024

_LIST_FORMS = {
    "none": "", "decimal": "1", "lower-alpha": "a", "lower-latin": "a", "upper-alpha": "A",
    "upper-latin": "A", "lower-roman": "i", "upper-roman": "I", "decimal-leading-zero": "01",
}  # fmt: skip
_LIST_STYLE = re.compile(
    rf"list-style(?:-type)?\s*:[^;:]*?({'|'.join(_LIST_FORMS)})(?![\w-])", re.I
)
_SHIFTED = re.compile(r"vertical-align\s*:\s*(super|sub)\b", re.I)
_INLINE = re.compile(r"display\s*:\s*inline(?!-)", re.I)
# Elements that the cells of a table without <table> are like.
_ROLES = {
    "table": "table", "grid": "table", "treegrid": "table", "row": "tr", "cell": "td",
    "gridcell": "td", "columnheader": "th", "rowheader": "th",
}  # fmt: skip
_WITHOUT_VALUE = frozenset({"hidden", "password", "file", "image", "color"})


class HtmlFlow(Flow):
    """Writes a page as a browser shows it: numbers of lists, values of forms, no hidden text."""

    def __init__(self) -> None:
        super().__init__()
        self._lists: list[Counter] = []
        # Open <nav>, whose lists have no numbers, and <select>, whose options have boxes
        self._within = {"nav": 0, "select": 0}
        # Elements that each open <span> and <div> is like; empty for a plain span or an inline div
        self._likes: list[str] = []

    def _start_like(self, tag: str, attributes: Mapping[str, str]) -> None:
        like = _ROLES.get(attributes["role"], "") if "role" in attributes else ""
        style = attributes.get("style", "")
        if tag == "div":
            like = like or ("" if style and _INLINE.search(style) else "center")
        elif style and (shift := _SHIFTED.search(style)):
            like = "sup" if shift[1].lower() == "super" else "sub"
        self._likes.append(like)
        if like:
            self.start(like)

    def _end_like(self, _tag: str) -> None:
        if self._likes and (like := self._likes.pop()):
            self.end(like)

    def _start_list(self, tag: str, attributes: Mapping[str, str]) -> None:
        # Numbers of a reversed list depend on items that follow.
        has_numbers = tag == "ol" and not self._within["nav"] and "reversed" not in attributes
        form = _form(attributes) if has_numbers else ""
        self._lists.append(Counter(whole(attributes.get("start"), 1), form))

    def _end_list(self, _tag: str) -> None:
        if self._lists:
            self._lists.pop()

    def _start_item(self, _tag: str, attributes: Mapping[str, str]) -> None:
        if self._lists:
            counter = self._lists[-1]
            counter.following = whole(attributes.get("value"), counter.following)
            self.label(counter.count())

    def _start_dialog(self, tag: str, attributes: Mapping[str, str]) -> None:
        if "open" not in attributes:
            self.aside(tag, attributes, self._conceal)

    def _enter(self, tag: str, _attributes: Mapping[str, str]) -> None:
        self._within[tag] += 1

    def _leave(self, tag: str) -> None:
        self._within[tag] -= 1

    def _start_input(self, _tag: str, attributes: Mapping[str, str]) -> None:
        kind = attributes.get("type", "").lower()
        if kind in ("checkbox", "radio"):
            self.data(_box(is_ticked="checked" in attributes))
        elif kind not in _WITHOUT_VALUE:
            self.data(attributes.get("value", ""))

    def _start_option(self, _tag: str, attributes: Mapping[str, str]) -> None:
        if self._within["select"]:
            self.label(_box(is_ticked="selected" in attributes))

    tags: ClassVar[Mapping[str, Tag]] = {
        **Flow.tags,
        **dict.fromkeys(("ol", "ul", "menu"), (Gap.PARAGRAPH, _start_list, _end_list)),
        **dict.fromkeys(("textarea", "button", "progress", "meter"), (Gap.SPACE, None, None)),
        **dict.fromkeys(("div", "span"), (Gap.NONE, _start_like, _end_like)),
        "dialog": (Gap.LINE, _start_dialog, None),
        "li": (Gap.LINE, _start_item, Flow._end_item),
        "nav": (Gap.PARAGRAPH, _enter, _leave),
        "input": (Gap.SPACE, _start_input, None),
        "select": (Gap.SPACE, _enter, _leave),
        "option": (Gap.LINE, _start_option, None),
    }


def _form(attributes: Mapping[str, str]) -> str:
    """Returns the form of a list's numbers; empty if it shows none."""
    style = _LIST_STYLE.search(attributes.get("style", ""))
    kind = attributes.get("type", "1")
    return _LIST_FORMS[style[1].lower()] if style else kind if kind in ("a", "A", "i", "I") else "1"


def _box(*, is_ticked: bool) -> str:
    return "☒" if is_ticked else "☐"


@dataclass(frozen=True)
class Html(Format):
    """HTML: text with the line breaks of a browser, and headings as sections.

    Attributes:
        encoding: Encoding of files without a byte order mark, whatever they declare; detected if
            empty.
    """

    suffixes = (".html", ".htm", ".xhtml")
    begins = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*<")

    encoding: str = ""

    @staticmethod
    def recognises(head: bytes, path: Path) -> bool:
        """Returns whether the file begins with HTML's doctype or root, or any tag if named so."""
        has_suffix = path.suffix.lower() in Html.suffixes and head.lstrip().startswith(b"<")
        return has_suffix or _BEGINS.match(head) is not None

    def extract(self, data: bytes, path: Path) -> Document:
        """Returns the text between the tags; scripts and styles are left out.

        White space is collapsed except in `<pre>`. Blocks are separate lines, paragraphs have empty
        lines between them, and tabs separate table cells. Images are represented by their
        alternative text; images without it, frames, and pages that scripts fill are losses.
        """
        from lxml.etree import HTMLParser

        # lxml calls `Flow` while it parses, so no tree is built. inscriptis took 29 s for a
        # paragraph of 2.2 MB, and lost the text of 400 nested elements (decision 5).
        page = HtmlFlow()
        parser = HTMLParser(
            target=page,  # type: ignore[arg-type]  # its stubs ask for more than lxml
            huge_tree=True,  # otherwise text that is nested too deep is lost
        )
        raw = decoded(data, path, self.encoding or _charset(data), "Html")
        # lxml raises an error for an empty page.
        parser.feed(raw.text or " ")
        parser.close()
        page.losses += raw.losses
        return replace(page.extracted(), notes=raw.notes)


def _charset(data: bytes) -> str:
    declared = _DECLARED.search(data, 0, _DECLARED_WITHIN)
    if not declared:
        return ""
    name = (declared[1] or declared[2]).decode("ascii")
    try:
        codec = codec_of(name)
    except LookupError:
        return ""
    # A file whose declaration reads as ASCII cannot be UTF-16.
    return "utf-8" if codec.startswith("utf-16") else codec
