"""Leaves encoded data out of texts: data URIs, and long runs of base64 or hexadecimal digits."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TypeVar

from leporello.core.records import Document, Loss, Place, Section

S = TypeVar("S", Place, Section)

_URI = re.compile(
    r"data:[a-zA-Z]{1,20}/[\w.+-]{1,100}(?:;[\w.=+-]{1,100}){0,9},[^\s\"'`()<>\\|]{100,}"
)
_LEAST = 1000  # characters of a run without a header
_STEP = 29  # a prime, so that samples meet the ends of lines of equal length rarely
_ALPHABET = bytes(chr(byte).isalnum() or byte in b"+/=_-" for byte in range(128)) + bytes(128)
_SAMPLED = b"\1" * (_LEAST // _STEP)
_RUN = r"[A-Za-z0-9+/_-]{60,}+"
_BLOCK = re.compile(rf"{_RUN}(?:\s{{1,9}}{_RUN})*+(?:\s{{1,9}}[A-Za-z0-9+/_-]{{1,99}}=|=?)=?")
# Base64 has 16 % digits and 82 % letters; hexadecimal digits are 62 % digits.
_DIGITS, _LETTERS = re.compile("[0-9]"), re.compile("[A-Za-z]")


def without_data(extracted: Document) -> Document:
    """Returns an extracted text without encoded data, which become a loss."""
    text, cuts = extracted.text, [*_cuts(extracted.text)]
    if not cuts:
        return extracted
    ranges = zip([0, *(end for _, end in cuts)], [*(start for start, _ in cuts), None], strict=True)
    size = sum(end - start for start, end in cuts)
    why = "data URIs and base64 are not text"
    loss = Loss("encoded data", why, characters=size, count=len(cuts), furniture=True)
    return replace(
        extracted,
        text="".join(text[start:end] for start, end in ranges),
        sections=(*_moved(extracted.sections, cuts),),
        places=(*_moved(extracted.places, cuts),),
        losses=(*extracted.losses, loss),
    )


def _cuts(text: str) -> Iterator[tuple[int, int]]:
    """Yields the (start, end) of encoded data, ascending and apart."""
    reached = 0
    for start, end in sorted([*(uri.span() for uri in _URI.finditer(text)), *_runs(text)]):
        if start >= reached:
            yield start, end
            reached = end


def _runs(text: str) -> Iterator[tuple[int, int]]:
    # Samples, since a search of every character takes longer than loading the text.
    if _SAMPLED in text[::_STEP].encode("ascii", "replace").translate(_ALPHABET):
        for block in _BLOCK.finditer(text):
            if len(block[0]) >= _LEAST and _is_encoded(block[0][:_LEAST]):
                yield block.span()


def _is_encoded(run: str) -> bool:
    digits, letters = (len(kind.findall(run)) / len(run) for kind in (_DIGITS, _LETTERS))
    return digits > 0.03 and letters > 0.1  # noqa: PLR2004


def _moved(spans: Sequence[S], cuts: Sequence[tuple[int, int]]) -> Iterator[S]:
    """Yields the spans in the text without the cuts; spans that become empty are left out."""
    starts = [start for start, _ in cuts]
    removed = [0, *accumulate(end - start for start, end in cuts)]

    def moved(offset: int) -> int:
        before = bisect_right(starts, offset)
        inside = max(0, cuts[before - 1][1] - offset) if before else 0
        return offset - removed[before] + inside

    for span in spans:
        start, end = moved(span.start), moved(span.end)
        if start < end or span.start == span.end:
            yield replace(span, start=start, end=end)
