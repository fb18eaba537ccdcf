"""Streams that unpack to more than memory holds are found before pdfium unpacks them."""

from __future__ import annotations

import re
import zlib

LARGEST_STREAM = 2**26  # bytes; letters in it take pdfium sixteen times as many
_DENSEST = 1032  # times its size: to no more does deflate unpack
_HEAD = 2**10  # bytes before a stream, in which its filters stand
_BLOCK = 2**16
_STREAM = re.compile(rb"\bstream\r?\n")
_UNSEEN = re.compile(rb"/Image\b|/EmbeddedFile\b")  # what is not unpacked for the text


def has_bomb(data: bytes) -> bool:
    """Returns whether a stream of a PDF unpacks to more than `LARGEST_STREAM`."""
    for match in _STREAM.finditer(data):
        start, end = match.end(), data.find(b"endstream", match.end())
        head = data[max(0, match.start() - _HEAD) : match.start()].rpartition(b" obj")[2]
        times = head.count(b"/FlateDecode") + len(re.findall(rb"/Fl\b", head))
        length = (len(data) if end < 0 else end) - start
        if not times or length * _DENSEST**times <= LARGEST_STREAM or _UNSEEN.search(head):
            continue
        if _unpacked(data, start, start + length, times) > LARGEST_STREAM:
            return True
    return False


def _unpacked(data: bytes, start: int, end: int, times: int) -> int:
    """Returns to how many bytes a stream unpacks, if not to more than it may: then to so many."""
    blocks = (data[i : min(i + _BLOCK, end)] for i in range(start, end, _BLOCK))
    stages = [zlib.decompressobj() for _ in range(times)]
    total = 0
    try:
        for block in blocks:
            total += _through(block, stages)
            if total > LARGEST_STREAM:
                break
    except zlib.error:  # encrypted, or damaged: pdfium comes no further
        pass
    return total


def _through(block: bytes, stages: list[zlib._Decompress]) -> int:
    """Returns how many bytes a block gives after all stages, or more than may be."""
    if not stages:
        return len(block)
    total = 0
    while block and total <= LARGEST_STREAM and not stages[0].eof:
        total += _through(stages[0].decompress(block, _BLOCK), stages[1:])
        block = stages[0].unconsumed_tail
    return total
