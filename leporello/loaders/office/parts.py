"""Parts of Office files (docx, pptx): their relationships, charts and diagrams."""

from __future__ import annotations

import posixpath
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import zip_longest

from leporello.core.records import Loss
from leporello.loaders.flow import Flow
from leporello.loaders.numbering import whole
from leporello.loaders.office.archive import Element, beside, parsed, read
from leporello.loaders.tables.marks import number

_MOST_POINTS = 100_000  # of a series


@lru_cache(maxsize=4096)
def local_name(tag: str) -> str:
    """Returns the name of a tag without its namespace; the same in both variants of the format."""
    return tag.rpartition("}")[2]


def elements(parent: Element) -> Iterator[tuple[str, Element]]:
    """Yields the names and elements in an element, of alternatives the first that has elements."""
    for element in parent:
        if not isinstance(element.tag, str):
            continue
        name = local_name(element.tag)
        if name == "AlternateContent":
            chosen = next((branch for branch in element if len(branch)), None)
            if chosen is not None:
                yield from elements(chosen)
        else:
            yield name, element


def attribute(element: Element | None, name: str = "val") -> str | None:
    """Returns an attribute by its name without namespace; None without attribute or element."""
    if element is None:
        return None
    for key, value in element.attrib.items():
        if local_name(str(key)) == name:
            return str(value)
    return None


class OfficeParts:
    """Parts of an Office file, and losses of those that could not be read."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        self.losses: list[Loss] = []
        self._targets: dict[str, Mapping[str, tuple[str, str]]] = {}

    def root(self, name: str, what: str) -> Element:
        """Returns the root of a part; an empty element, and a loss of `what`, if it is corrupt."""
        from lxml.etree import XMLSyntaxError

        try:
            return parsed(read(self.archive, name))
        except (XMLSyntaxError, zipfile.BadZipFile, zlib.error, EOFError) as error:
            self.losses.append(Loss(what, f"is corrupt ({str(error).splitlines()[0]})", name))
            return parsed(b"")

    def targets(self, part: str) -> Mapping[str, tuple[str, str]]:
        """Returns the relationships of a part: the kind and name of each target, by id."""
        if part not in self._targets:
            folder, name = posixpath.split(part)
            root = self.root(f"{folder}/_rels/{name}.rels".lstrip("/"), "relationships")
            self._targets[part] = {
                relation.get("Id", ""): (
                    relation.get("Type", "").rpartition("/")[2],
                    beside(folder, relation.get("Target", "")),
                )
                for relation in root.iter("{*}Relationship")
            }
        return self._targets[part]

    def target(self, part: str, kind: str) -> str:
        """Returns the name of the first related part of a kind; empty without such a part."""
        return next((name for of, name in self.targets(part).values() if of == kind), "")

    def write_graphic(self, frame: Element, part: str, flow: Flow) -> None:
        """Writes the charts and diagrams of a frame; those that are absent are losses."""
        for element in frame.iter("{*}chart", "{*}relIds"):
            is_chart = local_name(str(element.tag)) == "chart"
            what = "chart" if is_chart else "diagram"
            id_ = attribute(element, "id" if is_chart else "dm") or ""
            name = self.targets(part).get(id_, ("", ""))[1]
            if not name or name not in self.archive.namelist():
                self.losses.append(Loss(what, "is not in the file"))
                continue
            root = self.root(name, what)
            if is_chart:
                size = len(flow.pieces)
                write_chart(root, flow)
                if len(flow.pieces) == size:
                    self.losses.append(Loss(what, "is of a kind that is not read", name))
            else:
                for point in root.iter("{*}pt"):
                    flow.element("p", _text(point))


def write_chart(root: Element, flow: Flow) -> None:
    """Writes the title of a chart of any kind, and its data as a table per set of categories."""
    title = root.find("{*}chart/{*}title")
    flow.element("p", "" if title is None else _text(title))
    tables: dict[tuple[str, ...], list[list[str]]] = {}  # columns, by their categories
    for series in root.iter("{*}ser"):
        labels, values = _points(series, "cat", "xVal"), _points(series, "val", "yVal")
        name = _points(series, "tx")[:1] or [series.findtext("{*}tx/{*}v") or ""]
        tables.setdefault((*labels,), [["", *labels]]).append([*name, *values])
    for columns in tables.values():
        flow.start("table")
        for row in zip_longest(*columns, fillvalue=""):
            flow.start("tr")
            for text in row:
                flow.element("td", text)
            flow.end("tr")
        flow.end("table")


def _points(series: Element, *names: str) -> list[str]:
    """Returns the points of a series' categories or values; empty texts for absent points."""
    source = next((e for name in names if (e := series.find(f"{{*}}{name}")) is not None), None)
    if source is None:
        return []
    points = {}
    # The first level of categories is the innermost one.
    for point in next(source.iter("{*}lvl"), source).iter("{*}pt"):
        index = whole(attribute(point, "idx"), -1)
        if 0 <= index < _MOST_POINTS:
            points[index] = _number(" ".join((point.findtext("{*}v") or "").split()))
    return [points.get(i, "") for i in range(max(points, default=-1) + 1)]


def _number(text: str) -> str:
    """Returns a number as people write it: `0.1` for `0.10000000000000001`."""
    try:
        return number(float(text)) if "." in text else text
    except ValueError:
        return text


def _text(element: Element) -> str:
    paragraphs = ("".join(t.text or "" for t in p.iter("{*}t")) for p in element.iter("{*}p"))
    return " ".join(filter(None, paragraphs))
