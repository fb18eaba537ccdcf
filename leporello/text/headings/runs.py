"""Drops lines that only look like headings: contents, lists, page headers, speakers, numbers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from leporello.text.headings.labels import is_name, name_of
from leporello.text.headings.lines import ALONE, HeadingCandidate, TextLines, is_title

# Least weight of a chain: two lines, one with blank lines around it, or a known name. Chains that
# begin with an inner number such as 3.1 may weigh one less.
_LEAST = 3
_MISSING = 3  # numbers that may be missing between two lines
_RESTART = 4  # weight that a restart at 1 costs


@dataclass(frozen=True, slots=True)
class _End:
    """The heaviest chain that ends with a certain line."""

    weight: float  # weight of the complete chain
    place: int  # index of the line
    before: "_End | None" = None  # chain before this line, if any
    begins: bool = False  # whether the line restarts the numbering instead of continuing that chain


@dataclass(slots=True)
class _Chains:
    """The heaviest chains so far."""

    # Heaviest chain for each number that a chain ends with
    at: dict[tuple[int, ...], _End] = field(default_factory=dict)
    # Heaviest chain for each last number, and for each number that encloses it
    within: dict[tuple[int, ...], _End] = field(default_factory=dict)
    best: _End | None = None  # the heaviest chain of all

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
    """Returns the indices of the candidates whose numbers form a chain, per style (1, I, A)."""
    roman = _chain(candidates, "I", set())
    # Letters restart below each Roman number: I. A. B. II. A.
    return roman | _chain(candidates, "1", set()) | _chain(candidates, "A", roman)


def _chain(candidates: Sequence[HeadingCandidate], style: str, above: set[int]) -> set[int]:
    chains, may_restart = _Chains(), True
    for index, candidate in enumerate(candidates):
        if candidate.kind == "word" or index in above:  # after `Chapter 3`, numbers may restart
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
            # Two lines `1.` and `2.` are rather a list; headings have blank lines or names.
            if sum(_weight(candidates[index]) for index in part) >= _LEAST - inner:
                indices.update(part)
            part = []
        end = end.before
    return indices


def _weight(candidate: HeadingCandidate) -> int:
    """Returns how likely a numbered line is a heading, without regard to others: 1 to 4."""
    assert candidate.label is not None
    return 1 + (candidate.apart == ALONE) + 2 * is_name(candidate.label.title)


_REPEATED = 3  # occurrences from which a line is a page header or a speaker's name
_DENSE = 600  # mean characters between lines in capitals; fewer indicate speakers
_BODY = 60  # characters; longer lines are text even without a stop at the end
_NEAR = 12  # lines between an outer heading and its first inner heading at most
_LISTED = 2  # headings before the last outer ones from which a run is a list
_STOPS = (".", "!", "?", ":", ";", "”", '"')
_OUTER = ("part", "chapter", "appendix", "section", "name")  # each contains those after it
_CONTENTS = frozenset({
    "contents", "table of contents", "list of figures", "list of tables", "list of symbols",
    "list of abbreviations", "list of acronyms", "sommaire", "inhaltsverzeichnis",
    "abbildungsverzeichnis", "tabellenverzeichnis", "table des matières", "liste des figures",
    "liste des tableaux", "índice",
})  # fmt: skip


def without_headers(
    lines: TextLines, candidates: Sequence[HeadingCandidate]
) -> list[HeadingCandidate]:
    """Leaves out page headers and the names of speakers."""
    # Headers of pages differ only in the page number.
    texts = Counter(map(_without_page, candidates))
    repeated = {text for text, times in texts.items() if times >= _REPEATED}
    capitals = [candidate for candidate in candidates if candidate.kind == "caps"]
    repetitions = sum(_without_page(candidate) in repeated for candidate in capitals)
    is_dense = lines.starts[-1] < _DENSE * len(capitals)
    # In plays, names in capitals precede each speech; page headers are not as dense.
    has_speakers = 2 * repetitions > len(capitals) and is_dense
    return [
        candidate
        for candidate in _without_repeated_chapters(candidates)
        if not (has_speakers and candidate.kind == "caps")
        and not (candidate.kind in ("caps", "title") and _without_page(candidate) in repeated)
    ]


def _without_page(candidate: HeadingCandidate) -> str:
    """Returns the title without a page number at its end."""
    return candidate.title.rstrip(" 0123456789")


def _without_repeated_chapters(
    candidates: Iterable[HeadingCandidate],
) -> Iterator[HeadingCandidate]:
    """Leaves out a chapter, or a name in it, that repeats the latest one, as a page header does."""
    latest: dict[str, object] = {}
    for candidate in candidates:
        if candidate.kind == "number" and candidate.label and candidate.label.depth == 1:
            latest.pop("name", None)
        elif candidate.kind in ("word", "name"):
            kind = candidate.label.word if candidate.label else "name"
            identity = candidate.label.path if candidate.label else name_of(candidate.title)
            # Books repeat `CHAPTER IV` at the top of each page.
            if latest.get(kind) == identity:
                continue
            outer = _OUTER[: _OUTER.index(kind)]
            latest = {key: latest[key] for key in outer if key in latest}
            latest[kind] = identity
        yield candidate


def joined(lines: TextLines, candidates: list[HeadingCandidate]) -> list[HeadingCandidate]:
    """Adds to a heading without a title, such as `Chapter 1`, the title on the line below it."""
    numbers = {
        candidate.line for candidate in candidates if candidate.label and not candidate.otherwise
    }
    used: set[int] = set()
    result: list[HeadingCandidate] = []
    for candidate in candidates:
        if candidate.line in used:
            continue
        if candidate.label and not candidate.label.title and candidate.apart == ALONE:
            near = range(candidate.line + 1, candidate.line + 4)
            below = next((line for line in near if lines.at(line)), -1)
            is_text = below >= 0 and below not in numbers and is_title(lines.at(below))
            if is_text and lines.apart(below) == ALONE:
                used.add(below)
                candidate = replace(candidate, title=f"{candidate.title} {lines.at(below)}")  # noqa: PLW2901 -- the heading with its title
        result.append(candidate)
    return result


def without_lists(lines: TextLines, candidates: list[HeadingCandidate]) -> list[HeadingCandidate]:
    """Leaves out tables of contents and lists: runs of headings without text between them.

    The last headings of a run stay if each is deeper than the heading before it: Part, Chapter.
    If they only continue the numbering, they are the list's last items, and are left out too.
    """
    result: list[HeadingCandidate] = []
    run: list[HeadingCandidate] = []
    for candidate in candidates:
        if run and _has_text(lines, run[-1], candidate):
            result += _without_list(run)
            run = []
        run.append(candidate)
    return result + _without_list(run)


def _without_list(run: Sequence[HeadingCandidate]) -> list[HeadingCandidate]:
    """Returns the headings of a run that are not items of a list; see `without_lists`."""
    begin = len(run) - 1
    while begin > 0 and rank(run[begin - 1]) < rank(run[begin]):
        if run[begin].line - run[begin - 1].line > _NEAR:
            break
        begin -= 1
    # Lines of contents must not open sections; a part and its first chapter may (decision 13).
    has_adjacent_lines = any(b.line - a.line == 1 for a, b in pairwise(run[: begin + 1]))
    if begin < _LISTED and not has_adjacent_lines:
        return [*run]
    contents = [candidate for candidate in run[:begin] if name_of(candidate.title) in _CONTENTS]
    is_last_item = begin > 0 and _follows(run[begin], run[begin - 1])
    return contents if is_last_item else [*contents, *run[begin:]]


def _follows(candidate: HeadingCandidate, before: HeadingCandidate) -> bool:
    """Returns whether a heading's number is the next after that of the heading before it."""
    if not candidate.label or not before.label:
        return False
    path, last = candidate.label.path, before.label.path
    return path == (*last[:-1], last[-1] + 1)


def _has_text(lines: TextLines, above: HeadingCandidate, below: HeadingCandidate) -> bool:
    """Returns whether there is text between two headings, not only page numbers and fragments."""
    between = (lines.texts[n] for n in range(above.line + 1, below.line))
    return any(len(text) > _BODY or (text.endswith(_STOPS) and " " in text) for text in between)


def rank(candidate: HeadingCandidate) -> float:
    """Returns the depth of a heading by its kind: parts, chapters, 1, 1.1, names."""
    if candidate.kind == "word" and candidate.label:
        outer = {"part": 0, "chapter": 10, "appendix": 10, "section": 15}[candidate.label.word]
        return outer + 10 * (candidate.label.depth - 1)
    if candidate.label:
        return 10 * candidate.label.depth + 1
    return {"name": 12, "caps": 13}.get(candidate.kind, 14 + candidate.level)
