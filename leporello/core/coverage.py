"""Spans of a document, and coverage: how many of its characters were chunked, retrieved and read.

Add new columns only here: tables, reports and exports take theirs from `Coverage` and `PARTS`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean

# Columns that together count every character of a file, in the order of processing.
# One list for tables, reports and exports: a new part cannot be missing from one of them.
PARTS = ("lost", "furniture", "unchunked", "unselected", "cut", "stood_for", "read")
# Enough to look some up; the complete list is in the JSON.
_PLACES = 4  # maximum number of places that are listed per kind of loss
_ALWAYS_SHOWN = ("unselected", "cut", "read")  # even if they are 0


_PLACE = attrgetter("start", "end")


@dataclass(frozen=True, slots=True)
class Loss:
    """Content of a file that is not in the document's text.

    Attributes:
        what: Kind of content, in the singular: `page without text`, `image`, `hidden sheet`.
        why: Reason, and the remedy if there is one.
        place: Place in the file, in the form of `Place.name`; may be empty.
        characters: Length of its text, counted or estimated; 0 without text.
        count: Number of occurrences.
        furniture: Whether it was left out on purpose: running heads and feet, page numbers.
    """

    what: str
    why: str
    place: str = ""
    characters: int = 0
    count: int = 1
    furniture: bool = False


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of one example's document, in characters.

    Attributes:
        document: Length of the document's text.
        selected: Characters that the hits cover.
        read: Characters that the reader saw.
        cut: Characters that were selected but that the reader did not see, not even in a summary.
        unselected: Characters of chunks that were neither selected nor read.
        unchunked: Characters outside all chunks, without white space.
        furniture: Characters of running heads, feet and page numbers, which are not in the text.
        lost: Characters of the file that did not become text, as far as they can be counted.
        stood_for: Characters that the reader saw only in another form, such as a summary.
    """

    document: int
    selected: int
    read: int
    cut: int
    unselected: int = 0
    unchunked: int = 0
    furniture: int = 0
    lost: int = 0
    stood_for: int = 0

    @classmethod
    def of(
        cls,
        characters: int,
        losses: Sequence[Loss],
        selected: Iterable[Span],
        read: Iterable[Span],
        *,
        unchunked: int = 0,
        stood_for: Iterable[Span] = (),
    ) -> Coverage:
        """Returns the coverage of one example."""
        hits, verbatim, passages = merge(selected), merge(read), merge(stood_for)
        # By union: text that is read twice, in overlapping chunks, counts once.
        read_count = sum(map(len, verbatim))
        read_or_represented = covered((*verbatim, *passages)) if passages else read_count
        used = covered((*hits, *verbatim, *passages))
        unchunked = min(unchunked, characters - used)  # a combiner may read outside all chunks
        # Loaders leave it out: otherwise every chunker would have to know of it (decision 33).
        furniture = sum(loss.characters for loss in losses if loss.furniture)
        return cls(
            document=characters,
            selected=sum(map(len, hits)),
            read=read_count,
            cut=used - read_or_represented,
            unselected=characters - unchunked - used,
            unchunked=unchunked,
            furniture=furniture,
            lost=sum(loss.characters for loss in losses) - furniture,
            # Text that was read verbatim is `read`, even if its summary was read too (decision 46).
            stood_for=read_or_represented - read_count,
        )


def shares(ledger: Mapping[str, int]) -> dict[str, float]:
    """Returns the share of each part, 0 to 1; empty for an empty file."""
    total = sum(ledger.get(part, 0) for part in PARTS)
    return {part: ledger.get(part, 0) / total for part in PARTS} if total else {}


def mean_shares(ledgers: Iterable[Mapping[str, int]]) -> dict[str, float]:
    """Returns the mean share of each part over examples with non-empty files, rounded."""
    rows = [*filter(None, map(shares, ledgers))]
    return {part: round(fmean(row[part] for row in rows), 6) if rows else 0.0 for part in PARTS}


def shown(results: Iterable[Mapping[str, float]]) -> tuple[str, ...]:
    """Returns the parts that a table of shares has columns for: those that are not all 0."""
    # Parts that are 0 everywhere would widen each table for nothing.
    present = {part for shares in results for part, share in shares.items() if share}
    return tuple(part for part in PARTS if part in present or part in _ALWAYS_SHOWN)


def ledger_line(ledger: Mapping[str, int]) -> str:
    """Returns the coverage of a file as one line."""
    share = shares(ledger)
    parts = (f"{n} {ledger.get(n, 0):,} ({100 * share.get(n, 0.0):.1f} %)" for n in shown([share]))
    return f"{sum(ledger.get(part, 0) for part in PARTS):,} characters: {'; '.join(parts)}"


def loss_lines(losses: Iterable[Loss]) -> list[str]:
    """Returns the losses of a file as lines, one line per kind and reason."""
    kinds: dict[tuple[str, str, bool], list[Loss]] = defaultdict(list)
    for loss in losses:
        # One line for a kind: a scanned book would otherwise have a line for each of its pages.
        kinds[loss.what, loss.why, loss.furniture].append(loss)
    return [_line(what, why, group) for (what, why, _), group in kinds.items()]


def _line(what: str, why: str, losses: Sequence[Loss]) -> str:
    places = [*dict.fromkeys(loss.place for loss in losses if loss.place)]
    more = ", …" if len(places) > _PLACES else ""
    characters = sum(loss.characters for loss in losses)
    details = [f"{characters:,} characters"] if characters else []
    details += [", ".join(places[:_PLACES]) + more] if places else []
    count = sum(loss.count for loss in losses)
    suffix = f" ({'; '.join(details)})" if details else ""
    return f"{count:,} × {what}{suffix}: {why}"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Half-open range of characters: `start` up to, but not including, `end`."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"a span needs 0 <= start <= end, got ({self.start}, {self.end})")

    def __len__(self) -> int:
        return self.end - self.start

    def overlaps(self, start: int, end: int) -> bool:
        """Returns whether this span and the characters from `start` to `end` share a character."""
        return self.start < end and start < self.end


def merge(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Returns the union of spans: ascending, non-empty and not adjacent to each other."""
    merged: list[Span] = []
    # A key is faster: each comparison of spans would create two tuples.
    for span in sorted(spans, key=_PLACE):
        if merged and span.start <= merged[-1].end:
            if span.end > merged[-1].end:
                merged[-1] = Span(merged[-1].start, span.end)
        elif span.start < span.end:
            merged.append(span)
    return tuple(merged)


def covered(spans: Iterable[Span]) -> int:
    """Returns the number of characters in the union of spans."""
    return sum(map(len, merge(spans)))


def overlap(first: Iterable[Span], second: Iterable[Span]) -> int:
    """Returns the number of characters in both unions of spans."""
    first, second = merge(first), merge(second)
    return covered(first) + covered(second) - covered((*first, *second))


def letters(text: str, spans: Iterable[Span]) -> int:
    """Returns the number of characters in the spans, without white space."""
    return len("".join("".join(text[span.start : span.end] for span in spans).split()))


def outside(span: Span, hits: Iterable[Span]) -> Iterator[Span]:
    """Yields the parts of a span outside all hits, which must be merged."""
    start = span.start
    for hit in hits:
        if hit.start >= span.end:
            break
        if start < hit.start:
            yield Span(start, hit.start)
        start = max(start, hit.end)
    if start < span.end:
        yield Span(start, span.end)
