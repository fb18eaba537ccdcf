"""Spans of a document's characters, and what holds of several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter

_PLACE = attrgetter("start", "end")


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Characters `start` up to, not including, `end`."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"a span needs 0 <= start <= end, got ({self.start}, {self.end})")

    def __len__(self) -> int:
        return self.end - self.start


def merge(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Returns the union of spans: ascending, disjoint, not touching, none empty."""
    merged: list[Span] = []
    # By key: comparing spans themselves makes two tuples each time.
    for span in sorted((span for span in spans if span.start < span.end), key=_PLACE):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return tuple(merged)


def covered(spans: Iterable[Span]) -> int:
    """Returns how many characters the union of spans has."""
    return sum(map(len, merge(spans)))


def overlap(one: Iterable[Span], other: Iterable[Span]) -> int:
    """Returns how many characters lie in both unions."""
    left, right = merge(one), merge(other)
    return covered(left) + covered(right) - covered((*left, *right))


def letters(text: str, spans: Iterable[Span]) -> int:
    """Returns how many characters other than white space the spans hold."""
    return len("".join("".join(text[span.start : span.end] for span in spans).split()))


def outside(span: Span, hits: Iterable[Span]) -> Iterator[Span]:
    """Yields the parts of a span that no hit covers; the hits are merged ones."""
    start = span.start
    for hit in hits:
        if hit.start >= span.end:
            break
        if start < hit.start:
            yield Span(start, hit.start)
        start = max(start, hit.end)
    if start < span.end:
        yield Span(start, span.end)
