"""PowerPoint: slides in order, with speaker notes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from leporello.core.records import Document, Loss
from leporello.loaders.figures import formula
from leporello.loaders.flow import Flow
from leporello.loaders.numbering import numeral, whole
from leporello.loaders.office.archive import (
    ArchiveFormat,
    Element,
    losses_of,
    parsed,
    title_of,
    unpacked,
)
from leporello.loaders.office.parts import OfficeParts, attribute, elements, local_name

_PRESENTATION = "ppt/presentation.xml"
_EMBEDDED = {
    r"ppt/media/.*\.(mp4|m4v|avi|mov|wmv|mp3|wav|m4a)": ("sound or video", "is not read"),
    r"ppt/comments/": ("comments", "comments on slides are not read"),
}
_FILE_NAME = re.compile(r"[^\s/]+\.[a-z]{3,4}", re.I)  # programs use file names as descriptions
_FORMS = {
    "arabic": "1", "alphaLc": "a", "alphaUc": "A", "romanLc": "i", "romanUc": "I",
}  # fmt: skip
_AUTO_NUMBER = re.compile(r"(.+?)(Period|ParenR|ParenBoth|Plain|Minus)?")
_SIGNS = {"Period": "{}.", "ParenR": "{})", "ParenBoth": "({})", "Minus": "- {} -"}
_BULLETS = ("{*}buAutoNum", "{*}buNone", "{*}buChar", "{*}buBlip")
_Write: TypeAlias = "Callable[[_Slide, Element], None]"


@dataclass(frozen=True)
class Pptx(ArchiveFormat):
    """PowerPoint (pptx): titles, texts, tables, charts and speaker notes, with a place per slide.

    Attributes:
        hidden: Whether hidden slides are read too; they are losses otherwise.
    """

    suffixes = (".pptx", ".pptm", ".ppsx", ".potx")
    member = _PRESENTATION

    hidden: bool = False

    def extract(self, data: bytes, path: Path) -> Document:
        """Returns the slides' texts; places are named `slide 3`."""
        flow = Flow()
        with unpacked(data, path) as archive:
            parts = OfficeParts(archive)
            shown = parsed(archive.read(_PRESENTATION))
            targets = parts.targets(_PRESENTATION)
            for number, entry in enumerate(shown.iterfind("{*}sldIdLst/{*}sldId"), 1):
                ids = (str(v) for k, v in entry.attrib.items() if str(k).endswith("}id"))
                name = targets.get(next(ids, ""), ("", ""))[1]
                self._write(number, name, parts, flow)
            flow.title = title_of(archive)
            flow.losses += losses_of(archive.namelist(), _EMBEDDED)
        return flow.extracted()

    def _write(self, number: int, name: str, parts: OfficeParts, flow: Flow) -> None:
        """Writes a slide, or counts a hidden one as a loss."""
        place = f"slide {number}"
        if name not in parts.archive.namelist():
            flow.losses.append(Loss("slide", "is not in the file", place))
            return
        root = parts.root(name, "slide")
        if root.get("show") in ("0", "false") and not self.hidden:
            why = "is hidden; the loader {class: Pptx, hidden: true} reads it"
            size = sum(len(text.text or "") for text in root.iter("{*}t"))
            flow.losses.append(Loss("hidden slide", why, place, size))
            return
        flow.place(place)
        _Slide(parts, flow, name).write(root)
        flow.losses += (loss if loss.place else replace(loss, place=place) for loss in parts.losses)
        parts.losses = []


class _Slide:
    """Writes a slide: its title, its other shapes, then its notes."""

    def __init__(self, parts: OfficeParts, flow: Flow, name: str) -> None:
        self._parts, self._flow, self._name = parts, flow, name
        self._title: Element | None = None

    def write(self, root: Element) -> None:
        shapes = root.find("{*}cSld/{*}spTree")
        if shapes is not None:
            self._title = next((s for s in shapes.iter("{*}sp") if _kind(s) in _TITLES), None)
            if self._title is not None:
                self._flow.start("h1")
                self._write_text(self._title)
                self._flow.end("h1")
            self._write_shapes(shapes)
        if notes := self._parts.target(self._name, "notesSlide"):
            for shape in self._parts.root(notes, "notes").iter("{*}sp"):
                if _kind(shape) == "body":
                    self._write_shape(shape)

    def _write_shapes(self, shapes: Element) -> None:
        for name, shape in elements(shapes):
            about = next(shape.iter("{*}cNvPr"), None)
            if shape is self._title or name not in _SHAPES:
                continue
            if attribute(about, "hidden") in ("1", "true"):
                self._flow.conceal("".join(t.text or "" for t in shape.iter("{*}t")))
            else:
                _SHAPES[name](self, shape)

    def _write_shape(self, shape: Element) -> None:
        self._flow.start("p")
        self._write_text(shape, "div")
        self._flow.end("p")

    def _write_picture(self, picture: Element) -> None:
        described = attribute(next(picture.iter("{*}cNvPr"), None), "descr") or ""
        if _FILE_NAME.fullmatch(described) or not described.strip():
            is_media = any(True for _ in picture.iter("{*}videoFile", "{*}audioFile"))
            what = "sound or video" if is_media else "image"
            self._lose(what, "has no alternative text; images are not read")
        else:
            self._flow.element("p", described)

    def _write_frame(self, frame: Element) -> None:
        """Writes a table, chart or diagram; embedded objects are losses."""
        if (table := next(frame.iter("{*}tbl"), None)) is not None:
            self._write_table(table)
        elif (embedded := next(frame.iter("{*}oleObj"), None)) is not None:
            what = attribute(embedded, "progId") or attribute(embedded, "name") or ""
            why = f"is not read ({what}); save it as a separate file" if what else "is not read"
            self._lose("embedded object", why)
        elif any(True for _ in frame.iter("{*}chart", "{*}relIds")):
            self._parts.write_graphic(frame, self._name, self._flow)
        else:
            self._lose("drawing", "is of an unknown kind")

    def _write_table(self, table: Element) -> None:
        flow, properties = self._flow, table.find("{*}tblPr")
        flow.start("table")
        for number, row in enumerate(table.iterfind("{*}tr")):
            is_header = number == 0 and attribute(properties, "firstRow") in ("1", "true")
            flow.start("thead" if is_header else "tbody")
            flow.start("tr")
            for cell in row.iterfind("{*}tc"):
                if not {cell.get("hMerge"), cell.get("vMerge")} & {"1", "true"}:
                    spans = cell.get("gridSpan", "1"), cell.get("rowSpan", "1")
                    flow.start("td", dict(zip(("colspan", "rowspan"), spans, strict=True)))
                    self._write_text(cell, "div")
                    flow.end("td")
            flow.end("tr")
            flow.end("thead" if is_header else "tbody")
        flow.end("table")

    def _write_text(self, shape: Element, tag: str = "") -> None:
        """Writes the paragraphs of a shape, each as an element."""
        body = shape.find("{*}txBody")
        if body is None:
            return
        numbers = _SlideNumbers(body)
        for paragraph in body.iterfind("{*}p"):
            self._flow.start(tag or "span")
            self._flow.label(numbers.number(paragraph))
            self._write_runs(paragraph)
            self._flow.is_labelled = False
            self._flow.end(tag or "span")
            if not tag:
                self._flow.data(" ")

    def _write_runs(self, paragraph: Element) -> None:
        for name, run in elements(paragraph):
            if name in ("r", "fld"):
                baseline = attribute(run.find("{*}rPr"), "baseline") or "0"
                is_shifted = baseline.strip("0%") != ""
                self._flow.shift(("sub" if baseline[0] == "-" else "sup") if is_shifted else "")
                self._flow.data(run.findtext("{*}t") or "")
            elif name == "br":
                self._flow.data(" ")
            elif name == "m":
                for math in run.iter("{*}oMath"):
                    self._flow.data(formula(math))
        self._flow.shift("")

    def _lose(self, what: str, why: str) -> None:
        self._parts.losses.append(Loss(what, why))


class _SlideNumbers:
    """Numbers of the paragraphs of a shape."""

    def __init__(self, body: Element) -> None:
        self._body = body
        self._counts: dict[int, tuple[str, int]] = {}  # form and last number, by level

    def number(self, paragraph: Element) -> str:
        """Counts a paragraph, and returns its number; empty without number."""
        properties = paragraph.find("{*}pPr")
        level = whole(attribute(properties, "lvl"))
        auto = self._auto(properties, level)
        for deeper in [number for number in self._counts if number > level]:
            del self._counts[deeper]
        if not any(t.text for t in paragraph.iter("{*}t")):
            return ""  # PowerPoint neither shows nor counts the number of an empty paragraph
        if auto is None:
            self._counts.pop(level, None)
            return ""
        kind, start = auto.get("type", "arabicPeriod"), whole(auto.get("startAt"), 1)
        form, last = self._counts.get(level, ("", 0))
        count = last + 1 if form == kind + str(start) else start
        self._counts[level] = kind + str(start), count
        match = _AUTO_NUMBER.fullmatch(kind)
        name, sign = match.groups() if match else (kind, None)
        return _SIGNS.get(sign or "", "{}").format(numeral(count, _FORMS.get(name, "1")))

    def _auto(self, properties: Element | None, level: int) -> Element | None:
        """Returns the automatic number of a paragraph, which the list's style may define."""
        for style in (properties, self._body.find(f"{{*}}lstStyle/{{*}}lvl{level + 1}pPr")):
            for element in style.iter(*_BULLETS) if style is not None else ():
                return element if local_name(str(element.tag)) == "buAutoNum" else None
        return None


def _kind(shape: Element) -> str:
    """Returns the kind of a placeholder; empty for other shapes."""
    place = next(shape.iter("{*}ph"), None)
    return "" if place is None else place.get("type", "obj")


_TITLES = ("title", "ctrTitle")
_SHAPES: Mapping[str, _Write] = {
    "sp": _Slide._write_shape,
    "cxnSp": _Slide._write_shape,
    "grpSp": _Slide._write_shapes,
    "pic": _Slide._write_picture,
    "graphicFrame": _Slide._write_frame,
    "contentPart": lambda slide, _: slide._lose("drawing", "is handwriting, which is not read"),
}
