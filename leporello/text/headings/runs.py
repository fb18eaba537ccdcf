"""What looks like headings by itself, and is none beside others: contents, lists, page headers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from leporello.text.headings.labels import name_of
from leporello.text.headings.lines import ALONE, HeadingCandidate, TextLines, is_title

_REPEATED = 3  # times that a line stands in a text which is a page's header, or a speaker's name
_DENSE = 600  # characters; capitals that stand closer are mostly speakers
_BODY = 60  # characters of a line that is text, with or without a stop
_NEAR = 12  # lines within which an outer heading is followed by its first inner one
_LISTED = 2  # headings without text between them that are a list
_STOPS = (".", "!", "?", ":", ";", "”", '"')
_CONTENTS = frozenset({
    "contents", "table of contents", "list of figures", "list of tables", "list of symbols",
    "list of abbreviations", "list of acronyms", "sommaire", "inhaltsverzeichnis",
    "abbildungsverzeichnis", "tabellenverzeichnis", "table des matières", "liste des figures",
    "liste des tableaux", "índice",
})  # fmt: skip


def without_headers(
    lines: TextLines, candidates: Sequence[HeadingCandidate]
) -> list[HeadingCandidate]:
    """Leaves out what stands on every page, and the names of speakers."""
    texts = Counter(map(_without_page, candidates))
    repeated = {text for text, times in texts.items() if times >= _REPEATED}
    loud = [candidate for candidate in candidates if candidate.kind == "caps"]
    often = sum(_without_page(candidate) in repeated for candidate in loud)
    speak = 2 * often > len(loud) and lines.starts[-1] < _DENSE * len(loud)
    return [
        candidate
        for candidate in _once(candidates)
        if not (speak and candidate.kind == "caps")
        and not (candidate.kind in ("caps", "title") and _without_page(candidate) in repeated)
    ]


def _without_page(candidate: HeadingCandidate) -> str:
    return candidate.title.rstrip(" 0123456789")


def _once(candidates: Iterable[HeadingCandidate]) -> Iterator[HeadingCandidate]:
    """Leaves out a chapter or a known name that comes again before another one: a page's header.

    Inside the next chapter everything may come again.
    """
    latest: dict[str, object] = {}
    for candidate in candidates:
        if candidate.kind == "number" and candidate.label and candidate.label.depth == 1:
            latest.pop("name", None)
        elif candidate.kind in ("word", "name"):
            kind = candidate.label.word if candidate.label else "name"
            same = candidate.label.path if candidate.label else name_of(candidate.title)
            if latest.get(kind) == same:
                continue
            latest = {key: latest[key] for key in _outer(kind) if key in latest}
            latest[kind] = same
        yield candidate


def _outer(word: str) -> Sequence[str]:
    words = ("part", "chapter", "appendix", "section", "name")
    return words[: words.index(word)]


def joined(lines: TextLines, candidates: list[HeadingCandidate]) -> list[HeadingCandidate]:
    """Gives `Chapter 1` the title that stands below it, on a line of its own."""
    numbers = {
        candidate.line for candidate in candidates if candidate.label and not candidate.otherwise
    }
    used: set[int] = set()
    result: list[HeadingCandidate] = []
    for candidate in candidates:
        if candidate.line in used:
            continue
        if candidate.label and not candidate.label.title and candidate.apart == ALONE:
            below = next(
                (n for n in range(candidate.line + 1, candidate.line + 4) if lines.at(n)), -1
            )
            if below >= 0 and below not in numbers and _is_title_line(lines, below):
                used.add(below)
                candidate = replace(candidate, title=f"{candidate.title} {lines.at(below)}")  # noqa: PLW2901 -- the heading has grown
        result.append(candidate)
    return result


def _is_title_line(lines: TextLines, line: int) -> bool:
    return lines.apart(line) == ALONE and is_title(lines.at(line))


def without_lists(lines: TextLines, candidates: list[HeadingCandidate]) -> list[HeadingCandidate]:
    """Leaves out tables of contents, and lists: headings that follow each other without text.

    Of such a run the end is kept, as far as each lies deeper than the one before: Part, Chapter.
    Not so if it only counts on: it is a list's last item.
    """
    result: list[HeadingCandidate] = []
    run: list[HeadingCandidate] = []
    for candidate in candidates:
        if run and _has_text(lines, run[-1], candidate):
            result += _of_run(run)
            run = []
        run.append(candidate)
    return result + _of_run(run)


def _of_run(run: Sequence[HeadingCandidate]) -> list[HeadingCandidate]:
    begin = len(run) - 1
    while begin > 0 and rank(run[begin - 1]) < rank(run[begin]):
        if run[begin].line - run[begin - 1].line > _NEAR:
            break
        begin -= 1
    # Contents list every heading once more, and must not open sections (decision 13).
    close = any(b.line - a.line == 1 for a, b in pairwise(run[: begin + 1]))
    if begin < _LISTED and not close:
        return [*run]
    titled = [candidate for candidate in run[:begin] if name_of(candidate.title) in _CONTENTS]
    goes_on = begin > 0 and _follows(run[begin], run[begin - 1])
    return titled if goes_on else [*titled, *run[begin:]]


def _follows(candidate: HeadingCandidate, before: HeadingCandidate) -> bool:
    """Says whether a number is the next one of a list."""
    if not candidate.label or not before.label:
        return False
    path, last = candidate.label.path, before.label.path
    return path == (*last[:-1], last[-1] + 1)


def _has_text(lines: TextLines, above: HeadingCandidate, below: HeadingCandidate) -> bool:
    """Says whether there is text between two headings, and not only pages and broken lines."""
    between = (lines.texts[n] for n in range(above.line + 1, below.line))
    return any(len(text) > _BODY or (text.endswith(_STOPS) and " " in text) for text in between)


def rank(candidate: HeadingCandidate) -> float:
    """Returns how deep a heading lies by what it looks like: parts, chapters, 1, 1.1, names."""
    if candidate.kind == "word" and candidate.label:
        outer = {"part": 0, "chapter": 10, "appendix": 10, "section": 15}[candidate.label.word]
        return outer + 10 * (candidate.label.depth - 1)
    if candidate.label:
        return 10 * candidate.label.depth + 1
    return {"name": 12, "caps": 13}.get(candidate.kind, 14 + candidate.level)
