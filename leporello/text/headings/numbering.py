"""Separates numbered headings from numbered lists and sentences by their consecutive numbers.

The numbered lines that form the heaviest chain are headings: `1`, `1.1`, `1.2`, `2`, …
A list within section 3 is not in that chain, since 3.1 does not follow the list's 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from leporello.text.headings.labels import is_name
from leporello.text.headings.lines import ALONE, HeadingCandidate

# Least weight of a chain: two lines, one with blank lines around it, or a known name. Chains that
# begin with an inner number such as 3.1 may weigh one less.
_LEAST = 3
_MISSING = 3  # numbers that may be missing between two lines
_RESTART = 4  # weight that a restart at 1 costs


@dataclass(frozen=True, slots=True)
class _End:
    """The heaviest chain that ends with a certain line.

    Attributes:
        weight: Weight of the complete chain.
        place: Index of the line.
        before: Chain before this line, if any.
        begins: Whether the line restarts the numbering instead of continuing that chain.
    """

    weight: float
    place: int
    before: _End | None = None
    begins: bool = False


@dataclass(slots=True)
class _Chains:
    """The heaviest chains so far.

    Attributes:
        at: Heaviest chain for each number that a chain ends with.
        within: Heaviest chain for each last number, and for each number that encloses it.
        best: The heaviest chain of all.
    """

    at: dict[tuple[int, ...], _End] = field(default_factory=dict)
    within: dict[tuple[int, ...], _End] = field(default_factory=dict)
    best: _End | None = None

    def add(self, candidate: HeadingCandidate, index: int, *, may_restart: bool) -> None:
        """Extends the best chain for this line; with `may_restart` a restart costs nothing."""
        assert candidate.label is not None
        path = candidate.label.path
        weight = _weight(candidate)
        ends = [_End(end.weight - cost + weight, index, end) for end, cost in self._before(path)]
        if path[-1] <= 1 or (may_restart and len(path) > 1):
            # A restart must pay for itself, because most numbers that begin at 1 again are lists.
            carried = self.best.weight - (0 if may_restart else _RESTART) if self.best else 0
            previous = self.best if carried > 0 else None
            ends.append(_End(weight + max(carried, 0), index, previous, begins=True))
        elif path[-1] <= _MISSING and not self.best:
            ends.append(_End(weight - path[-1] + 1, index, begins=True))
        if ends:
            self._keep(path, max(ends, key=lambda option: option.weight))

    def _before(self, path: tuple[int, ...]) -> Iterable[tuple[_End, int]]:
        """Yields the chains that a number may continue, with the cost of the gap."""
        outer, last = path[:-1], path[-1]
        # Numbers may be missing: OCR garbles some headings, and a page break may hide one.
        for missing in range(min(last, _MISSING)):
            if end := self.within.get((*outer, last - 1 - missing)):
                yield end, missing
        if outer and last <= _MISSING and (end := self.at.get(outer)):
            yield end, max(last - 1, 0)

    def _keep(self, path: tuple[int, ...], end: _End) -> None:
        self.at[path] = max(end, self.at.get(path, end), key=lambda chain: chain.weight)
        for depth in range(1, len(path) + 1):
            heaviest = self.within.get(path[:depth])
            if heaviest is None or end.weight > heaviest.weight:
                self.within[path[:depth]] = end
        if self.best is None or end.weight > self.best.weight:
            self.best = end


def numbered(candidates: Sequence[HeadingCandidate]) -> set[int]:
    """Returns the indices of the candidates whose numbers form a chain.

    Each style (1, I, A) has a separate chain. After `Chapter 3`, numbers may restart.
    """
    roman = _chain(candidates, "I", set())
    # Letters restart below each Roman number: I. A. B. II. A.
    return roman | _chain(candidates, "1", set()) | _chain(candidates, "A", roman)


def _chain(candidates: Sequence[HeadingCandidate], style: str, above: set[int]) -> set[int]:
    chains, may_restart = _Chains(), True
    for index, candidate in enumerate(candidates):
        if candidate.kind == "word" or index in above:
            may_restart = True
        elif candidate.kind == "number" and candidate.label and candidate.label.style == style:
            chains.add(candidate, index, may_restart=may_restart)
            may_restart = False
    return _links(candidates, chains.best)


def _links(candidates: Sequence[HeadingCandidate], end: _End | None) -> set[int]:
    """Returns the indices of a chain's lines; each restarted part must be heavy enough itself."""
    indices: set[int] = set()
    part: list[int] = []
    while end is not None:
        part.append(end.place)
        if end.begins or end.before is None:
            first = candidates[end.place].label
            inner = first is not None and first.depth > 1
            # Two lines `1.` and `2.` in running text are rather a list; headings have blank lines
            # or names.
            if sum(_weight(candidates[index]) for index in part) >= _LEAST - inner:
                indices.update(part)
            part = []
        end = end.before
    return indices


def _weight(candidate: HeadingCandidate) -> int:
    """Returns how likely a numbered line is a heading, without regard to others: 1 to 4."""
    assert candidate.label is not None
    return 1 + (candidate.apart == ALONE) + 2 * is_name(candidate.label.title)
