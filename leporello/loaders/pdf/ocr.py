"""Reads pages without text by OCR, and caches the result."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from leporello.core.files import cache_directory, write_json
from leporello.loaders.pdf.fragments import Fragment

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

_SIDE = 1600  # pixels of a page's longer side
_BLANK = 0.5  # of a line: the model returns blanks for unknown letters
_REPORT = 10.0  # seconds between two progress messages

_log = logging.getLogger("leporello")


def recognised(
    pdf: PdfDocument, indices: Sequence[int], name: str
) -> Iterator[tuple[int, list[Fragment], int]]:
    """Yields the index of each page, its lines, and the number of unrecognised characters."""
    reported = time.monotonic()
    for count, index in enumerate(indices):
        if time.monotonic() - reported > _REPORT:
            reported = time.monotonic()
            _log.info("%s: %d of %d scanned pages read", name, count, len(indices))
        page = pdf[index]
        try:
            lines = _cached_lines(page)
        finally:
            page.close()
        read = [line for line in lines if line[0].count(" ") < _BLANK * len(line[0])]
        blank = sum(len(line[0]) for line in lines) - sum(len(line[0]) for line in read)
        yield index, [_fragment(i, line) for i, line in enumerate(read)], blank


# Text; left, top, right and bottom in points.
Line = tuple[str, tuple[float, ...]]


def _fragment(i: int, line: Line) -> Fragment:
    """Returns a line as a fragment; OCR boxes are somewhat higher than the type."""
    text, (x0, y0, x1, y1) = line
    return Fragment(text, x0, x1, y1, max(1.0, 0.7 * (y1 - y0)), False, i)


def _cached_lines(page: PdfPage) -> list[Line]:
    """Returns a page's lines, from the cache if the same picture was read before."""
    import numpy as np

    width, height = page.get_size()
    scale = _SIDE / max(width, height, 1.0)
    picture = page.render(scale=scale, prefer_bgrx=False).to_numpy()
    digest = hashlib.sha256(version("rapidocr").encode() + repr(picture.shape).encode())
    digest.update(np.ascontiguousarray(picture).data)
    file = cache_directory() / "ocr" / f"{digest.hexdigest()}.json"
    with suppress(OSError, ValueError):  # not read before, or damaged
        os.utime(file)  # the cache evicts the least recently used files
        return [(text, tuple(box)) for text, box in json.loads(file.read_text("utf-8"))]
    result, lines = _engine()(picture, use_cls=False), list[Line]()
    for text, corners in zip(result.txts or (), result.boxes if result.txts else (), strict=True):
        across, down = corners.T.tolist()
        box = min(across), min(down), max(across), max(down)
        lines.append((text, tuple(round(x / scale, 1) for x in box)))
    with suppress(OSError):  # a folder that may not be written to
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, [[text, list(box)] for text, box in lines], indent=None)
    return lines


@functools.cache
def _engine() -> Any:  # noqa: ANN401 -- a class without types
    from rapidocr import RapidOCR

    # ONNX Runtime ignores this variable and takes all cores, which other workers need (decision 4).
    threads = int(os.environ.get("OMP_NUM_THREADS") or 1)
    settings = {f"{kind}_op_num_threads": threads for kind in ("intra", "inter")}
    return RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.max_side_len": 2 * _SIDE,
            **{f"EngineConfig.onnxruntime.{name}": value for name, value in settings.items()},
        }
    )
