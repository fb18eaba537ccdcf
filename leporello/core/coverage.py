"""Spans of a document, and the ledger: what became of every character, from page to answer.

A column is added here alone: tables, reports and exports take theirs from `Coverage` and `PARTS`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean

# Columns into which all that a file holds falls apart, in the order of what is done with it.
PARTS = ("lost", "furniture", "unchunked", "unselected", "cut", "stood_for", "read")
_PLACES = 4  # that are named of each kind of loss
_EVER = ("unselected", "cut", "read")  # shown where they are nothing, too


_PLACE = attrgetter("start", "end")


@dataclass(frozen=True, slots=True)
class Loss:
    """Something of a file that is not in the document's text.

    Attributes:
        what: Kind of thing, in the singular: `page without text`, `image`, `hidden sheet`.
        why: Reason, and what would bring it back where anything does.
        place: Place in the file, as a `Place` is named; may be empty.
        characters: Length of its text, counted or estimated; 0 where it holds none.
        count: Number of such things.
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
    """The ledger of one example, in characters.

    Attributes:
        document: Length of the document's text.
        selected: Characters that the hits cover.
        read: Characters that the reader saw.
        cut: Characters that were selected and that the reader never saw, nor anything for them.
        unselected: Characters of chunks that were neither selected nor read.
        unchunked: Characters that are in no chunk, white space apart.
        furniture: Characters of running heads, feet and page numbers, which are not in the text.
        lost: Characters of the file that did not become text, as far as they can be told.
        stood_for: Characters that the reader saw another text for: a summary.
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
        """Returns the ledger of one example.

        Args:
            characters: Length of the document's text.
            losses: Losses of the document.
            selected: Spans of the hits.
            read: Spans that the reader saw.
            unchunked: Number of characters that are in no chunk.
            stood_for: Spans of passages that the reader saw in their place.
        """
        chosen, was_read = merge(selected), merge(read)
        seen, told = covered(was_read), covered((*was_read, *(stood := merge(stood_for))))
        either = covered((*chosen, *was_read, *stood))
        unchunked = min(unchunked, characters - either)  # a combiner may read what is in no chunk
        furniture = sum(loss.characters for loss in losses if loss.furniture)
        return cls(
            document=characters,
            selected=sum(map(len, chosen)),
            read=seen,
            cut=either - told,
            unselected=characters - unchunked - either,
            unchunked=unchunked,
            furniture=furniture,
            lost=sum(loss.characters for loss in losses) - furniture,
            stood_for=told - seen,
        )


def shares(ledger: Mapping[str, int]) -> dict[str, float]:
    """Returns the share of each part, 0 to 1; nothing where the file holds nothing."""
    whole = sum(ledger.get(part, 0) for part in PARTS)
    return {part: ledger.get(part, 0) / whole for part in PARTS} if whole else {}


def mean_shares(ledgers: Iterable[Mapping[str, int]]) -> dict[str, float]:
    """Returns the mean share of each part over examples whose files hold anything, rounded."""
    known = [*filter(None, map(shares, ledgers))]
    return {part: round(fmean(of[part] for of in known), 6) if known else 0.0 for part in PARTS}


def shown(results: Iterable[Mapping[str, float]]) -> tuple[str, ...]:
    """Returns the parts that a table of such shares has a column for: those that are something."""
    met = {part for shares in results for part, share in shares.items() if share}
    return tuple(part for part in PARTS if part in met or part in _EVER)


def ledger_line(ledger: Mapping[str, int]) -> str:
    """Returns what became of all that a file holds, in one line."""
    of = shares(ledger)
    told = (f"{n} {ledger.get(n, 0):,} ({100 * of.get(n, 0.0):.1f} %)" for n in shown([of]))
    return f"{sum(ledger.get(part, 0) for part in PARTS):,} characters: {'; '.join(told)}"


def loss_lines(losses: Iterable[Loss]) -> list[str]:
    """Returns what of a file is not in its text, those of a kind and reason in one line."""
    kinds: dict[tuple[str, str, bool], list[Loss]] = defaultdict(list)
    for loss in losses:
        kinds[loss.what, loss.why, loss.furniture].append(loss)
    return [_line(what, why, of) for (what, why, _), of in kinds.items()]


def _line(what: str, why: str, losses: Sequence[Loss]) -> str:
    places = [*dict.fromkeys(loss.place for loss in losses if loss.place)]
    more = ", …" if len(places) > _PLACES else ""
    characters = sum(loss.characters for loss in losses)
    told = [f"{characters:,} characters"] if characters else []
    told += [", ".join(places[:_PLACES]) + more] if places else []
    count = sum(loss.count for loss in losses)
    where = f" ({'; '.join(told)})" if told else ""
    return f"{count:,} × {what}{where}: {why}"


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
