"""PowerPoint: slides in order, with speaker notes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

from leporello.core.records import Loss
from leporello.loaders.flow import Flow
from leporello.loaders.office.archive import ArchiveFormat, losses_of, unpacked
from leporello.text.outline import Extracted

_EMBEDDED = {
    r"ppt/media/.*\.(mp4|m4v|avi|mov|wmv|mp3|wav|m4a)": ("sound or video", "is not read"),
    r"ppt/embeddings/(?!.*\.xls)": ("embedded object", "is not read; save it as a separate file"),
    r"ppt/diagrams/data": ("diagram", "SmartArt is not read"),
    r"ppt/comments/": ("comments", "comments on slides are not read"),
    r"ppt/vbaProject": ("macro", "macros are not run"),
}
_FILE_NAME = re.compile(r"[^\s/]+\.[a-z]{3,4}", re.I)  # programs use file names as descriptions
_NO_TEXT = {"PICTURE": "image", "LINKED_PICTURE": "image", "MEDIA": "sound or video"}


@dataclass(frozen=True)
class Pptx(ArchiveFormat):
    """PowerPoint (pptx): titles, texts, tables and speaker notes, with one place per slide.

    Attributes:
        hidden: Whether hidden slides are read too; they are losses otherwise.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".pptx", ".pptm", ".ppsx", ".potx")
    member: ClassVar[str] = "ppt/presentation.xml"

    hidden: bool = False

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the slides' texts; places are named `slide 3`.

        Raises:
            UserError: The file is corrupt or locked.
        """
        from pptx import Presentation

        with unpacked(data, path) as archive:
            losses = [*losses_of(archive.namelist(), _EMBEDDED)]
        shown = Presentation(BytesIO(data))
        flow = Flow()
        for number, slide in enumerate(shown.slides, 1):
            place = f"slide {number}"
            # A hidden slide is written too, elsewhere, since its loss counts characters.
            target = Flow() if self._is_hidden(slide) else flow
            target.place(place)
            for loss in _write(slide, target):
                flow.losses.append(replace(loss, place=place))
            if target is not flow:
                size = len(target.extracted().text)
                why = "is hidden; the loader {class: Pptx, hidden: true} reads it"
                flow.losses.append(Loss("hidden slide", why, place, size))
        flow.title = shown.core_properties.title
        flow.losses += losses
        return flow.extracted()

    def _is_hidden(self, slide: Any) -> bool:  # noqa: ANN401 -- a type of the library
        return slide._element.get("show") == "0" and not self.hidden


def _write(slide: Any, flow: Flow) -> Iterator[Loss]:  # noqa: ANN401 -- a type of the library
    """Writes a slide's text, and yields its losses."""
    title = slide.shapes.title
    if title is not None:
        flow.element("h1", title.text_frame.text)
    for shape in slide.shapes:
        if title is None or shape.shape_id != title.shape_id:
            yield from _write_shape(shape, flow)
    if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
        _write_text(notes, flow)


def _write_shape(shape: Any, flow: Flow) -> Iterator[Loss]:  # noqa: ANN401 -- a type of the library
    if hasattr(shape, "shapes"):  # a group
        for inner in shape.shapes:
            yield from _write_shape(inner, flow)
    elif shape.has_text_frame:
        _write_text(shape.text_frame, flow)
    elif getattr(shape, "has_table", False):
        _write_rows(([cell.text for cell in row.cells] for row in shape.table.rows), flow)
    elif getattr(shape, "has_chart", False):
        _write_chart(shape.chart, flow)
    elif what := _NO_TEXT.get(getattr(shape.shape_type, "name", "")):
        described = " ".join(shape._element.xpath(".//p:cNvPr/@descr"))
        alternative = "" if _FILE_NAME.fullmatch(described) else described
        flow.element("p", alternative)
        if not alternative.strip():
            yield Loss(what, "has no alternative text; images are not read")


def _write_text(frame: Any, flow: Flow) -> None:  # noqa: ANN401 -- a type of the library
    flow.start("p")
    for paragraph in frame.paragraphs:
        flow.element("div", paragraph.text.replace("\v", " "))
    flow.end("p")


def _write_chart(chart: Any, flow: Flow) -> None:  # noqa: ANN401 -- a type of the library
    """Writes the table of a chart's data."""
    titled = chart.has_title and chart.chart_title.has_text_frame
    flow.element("p", chart.chart_title.text_frame.text if titled else "")
    for plot in chart.plots:
        series = [*plot.series]
        rows = [("", *(column.name for column in series))]
        rows += zip(plot.categories, *(column.values for column in series), strict=False)
        _write_rows(rows, flow)


def _write_rows(rows: Iterable[Iterable[object]], flow: Flow) -> None:
    flow.start("table")
    for row in rows:
        flow.start("tr")
        for cell in row:
            flow.element("td", f"{cell:g}" if isinstance(cell, float) else str(cell or ""))
        flow.end("tr")
    flow.end("table")
