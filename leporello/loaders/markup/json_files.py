"""JSON: one line per value, after the path to the value; Jupyter notebooks: cells and outputs."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from leporello.core.errors import UserError
from leporello.core.records import Document, Loss, Place
from leporello.loaders.files import Format
from leporello.loaders.html import Html
from leporello.loaders.text import Markdown, decoded
from leporello.text.outline import joined

_GROWTH, _LEAST = 64, 2**20  # how many times as long as the file its text may be; characters


@dataclass(frozen=True)
class Json(Format):
    """JSON and JSON Lines: one line per value, such as `orders[3].name: Bob`.

    Names and values are as in the file; numbers keep their spelling.
    """

    suffixes = (".json", ".jsonl", ".ndjson", ".geojson")

    def extract(self, data: bytes, path: Path) -> Document:
        """Returns the values; places are members of the outermost list or object, or lines.

        A file that is not JSON is read as plain text, with a note. Raises UserError if the file is
        not text, or would grow too much.
        """
        raw = decoded(data, path)
        try:
            parts = _parts(_read(raw.text))
        except ValueError as error:
            lines = enumerate(raw.text.split("\n"), 1)
            try:
                parts = [(f"line {n}", _read(line)) for n, line in lines if line.strip()]
            except ValueError:
                note = f"{path.name} is not JSON ({error}): read as plain text"
                return replace(raw, notes=(*raw.notes, note))
        written: list[str] = []
        places: list[Place] = []
        at, most = 0, max(_LEAST, _GROWTH * len(raw.text))
        for name, value in parts:
            start = at
            for where, leaf in _leaves(value, "" if name.startswith("line ") else name):
                written.append(f"{where}: {leaf}" if where else leaf)
                at += len(written[-1]) + 1
                if at > most:
                    raise UserError(f"{path}: would grow {_GROWTH} times with its paths; divide it")
            places += [Place(name, start, at)] if name and at > start else []
        text = "\n".join(written)
        clipped = (replace(place, end=min(place.end, len(text))) for place in places)
        return replace(raw, text=text, places=(*clipped,))


def _read(text: str) -> object:
    value: object = json.loads(text, parse_int=str, parse_float=str)
    return value


def _parts(value: object) -> list[tuple[str, object]]:
    """Returns the outermost members with their names; a scalar has an empty name."""
    if isinstance(value, dict):
        return [*value.items()]
    if isinstance(value, list):
        return [(f"[{i}]", item) for i, item in enumerate(value)]
    return [("", value)]


def _leaves(value: object, where: str) -> Iterator[tuple[str, str]]:
    """Yields the scalars inside a value, and the path to each."""
    waiting = [(where, value)]  # a stack: files nest deeper than Python calls
    while waiting:
        where, value = waiting.pop()
        if isinstance(value, (dict, list)) and value:
            dot = "." if isinstance(value, dict) and where else ""
            waiting += ((f"{where}{dot}{name}", item) for name, item in reversed(_parts(value)))
        else:
            yield where, value if isinstance(value, str) else json.dumps(value)


_COLOURS = re.compile(r"\x1b\[[\d;]*m")


@dataclass(frozen=True)
class Notebook(Format):
    """Jupyter notebooks (ipynb): texts, code and outputs, with one place per cell."""

    suffixes = (".ipynb",)
    begins = re.compile(rb"\A\s*\{")
    marked = True

    @staticmethod
    def recognises(head: bytes, path: Path) -> bool:
        """Returns whether the file is JSON with the cells of a notebook."""
        is_marked = path.suffix.lower() == ".ipynb" or b'"nbformat"' in head
        return is_marked and b'"cells"' in head

    def extract(self, data: bytes, path: Path) -> Document:
        """Returns the cells' texts; places are named `cell 7`."""
        try:
            notebook = json.loads(data)
        except ValueError as error:
            raise UserError(f"{path}: is not a notebook, or is corrupt: {error}") from None
        if "cells" not in notebook:
            raise UserError(f"{path}: is a notebook from before version 4; convert it with Jupyter")
        numbered = enumerate(notebook["cells"], 1)
        cells = joined((f"cell {n}", _cell(cell, path)) for n, cell in numbered)
        return replace(cells, title=cells.sections[0].title if cells.sections else "")


def _cell(cell: dict[str, Any], path: Path) -> Document:
    source = _text(cell.get("source", ""))
    if cell.get("cell_type") == "markdown":
        return Markdown().extract(source.encode("utf-8", "replace"), path)
    outputs = (_output(output, path) for output in cell.get("outputs", []))
    return joined(("", part) for part in (Document("", source), *outputs))


def _output(output: dict[str, Any], path: Path) -> Document:
    """Returns the text of an output, or its loss."""
    data = output.get("data", {})
    text = _text(output.get("text", "")) or _text(data.get("text/plain", ""))
    text = text or "\n".join(output.get("traceback", []))
    if not text and "text/html" in data:
        return Html().extract(_text(data["text/html"]).encode("utf-8", "replace"), path)
    images = sum(kind.startswith("image/") for kind in data)
    losses = (Loss("image", "images are not read", count=images),) if images else ()
    return Document("", _COLOURS.sub("", text), losses=losses)


def _text(value: object) -> str:
    """Returns a text that a notebook stores as a string or as lines."""
    return "".join(map(str, value)) if isinstance(value, list) else str(value)
