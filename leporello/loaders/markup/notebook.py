"""Jupyter notebooks: cells and their outputs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from leporello.core.errors import UserError
from leporello.core.records import Loss
from leporello.loaders.files import Format
from leporello.loaders.html import Html
from leporello.loaders.text import Markdown
from leporello.text.outline import Extracted, joined

_COLOURS = re.compile(r"\x1b\[[\d;]*m")


@dataclass(frozen=True)
class Notebook(Format):
    """Jupyter notebooks (ipynb): texts, code and outputs, with one place per cell."""

    suffixes: ClassVar[tuple[str, ...]] = (".ipynb",)
    begins: ClassVar[re.Pattern[bytes]] = re.compile(rb"\A\s*\{")
    marked: ClassVar[bool] = True

    @staticmethod
    def recognises(head: bytes, path: Path) -> bool:
        """Returns whether the file is JSON with the cells of a notebook."""
        is_marked = path.suffix.lower() == ".ipynb" or b'"nbformat"' in head
        return is_marked and b'"cells"' in head

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the cells' texts; places are named `cell 7`.

        Raises:
            UserError: The file is not JSON of a notebook.
        """
        try:
            cells = json.loads(data)["cells"]
        except ValueError as error:
            raise UserError(f"{path}: is not a notebook, or is corrupt: {error}") from None
        joined_cells = joined((f"cell {n}", _cell(cell, path)) for n, cell in enumerate(cells, 1))
        return replace(
            joined_cells, title=joined_cells.sections[0].title if joined_cells.sections else ""
        )


def _cell(cell: dict[str, Any], path: Path) -> Extracted:
    source = _text(cell.get("source", ""))
    if cell.get("cell_type") == "markdown":
        return Markdown().extract(source.encode("utf-8", "replace"), path)
    outputs = (_output(output, path) for output in cell.get("outputs", []))
    return joined(("", part) for part in (Extracted(source), *outputs))


def _output(output: dict[str, Any], path: Path) -> Extracted:
    """Returns the text of an output, or its loss."""
    data = output.get("data", {})
    # Text before HTML: notebooks store tables in both forms.
    text = _text(output.get("text", "")) or _text(data.get("text/plain", ""))
    text = text or "\n".join(output.get("traceback", []))
    if not text and "text/html" in data:
        return Html().extract(_text(data["text/html"]).encode("utf-8", "replace"), path)
    images = sum(kind.startswith("image/") for kind in data)
    losses = (Loss("image", "images are not read", count=images),) if images else ()
    return Extracted(_COLOURS.sub("", text), losses=losses)


def _text(value: object) -> str:
    """Returns a text that a notebook stores as a string or as lines."""
    return "".join(map(str, value)) if isinstance(value, list) else str(value)
