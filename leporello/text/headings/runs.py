"""Drops lines that only look like headings: tables of contents, lists, page headers, speakers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from leporello.text.headings.labels import name_of
from leporello.text.headings.lines import ALONE, HeadingCandidate, TextLines, is_title

_REPEATED = 3  # occurrences that make a line a page header or a speaker's name
_DENSE = 600  # characters between lines in capitals; closer lines are mostly speakers
_BODY = 60  # characters; longer lines are text even without a stop at the end
_NEAR = 12  # lines between an outer heading and its first inner heading at most
_LISTED = 2  # headings without text between them that make a list
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
    """Leaves out page headers and the names of speakers."""
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
    """Leaves out a chapter or known name that repeats before the next one: it is a page header.

    Inside the next chapter any name may repeat.
    """
    latest: dict[str, object] = {}
    for candidate in candidates:
        if candidate.kind == "number" and candidate.label and candidate.label.depth == 1:
            latest.pop("name", None)
        elif candidate.kind in ("word", "name"):
            kind = candidate.label.word if candidate.label else "name"
            identity = candidate.label.path if candidate.label else name_of(candidate.title)
            if latest.get(kind) == identity:
                continue
            latest = {key: latest[key] for key in _outer(kind) if key in latest}
            latest[kind] = identity
        yield candidate


def _outer(word: str) -> Sequence[str]:
    words = ("part", "chapter", "appendix", "section", "name")
    return words[: words.index(word)]


def joined(lines: TextLines, candidates: list[HeadingCandidate]) -> list[HeadingCandidate]:
    """Adds to `Chapter 1` the title on the separate line below it."""
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
                candidate = replace(candidate, title=f"{candidate.title} {lines.at(below)}")  # noqa: PLW2901 -- the heading with its title
        result.append(candidate)
    return result


def _is_title_line(lines: TextLines, line: int) -> bool:
    return lines.apart(line) == ALONE and is_title(lines.at(line))


def without_lists(lines: TextLines, candidates: list[HeadingCandidate]) -> list[HeadingCandidate]:
    """Leaves out tables of contents and lists: runs of headings without text between them.

    The end of a run stays, as far as each heading is deeper than the one before: Part, Chapter.
    It goes too if it only continues the numbering, since it is the list's last item then.
    """
    result: list[HeadingCandidate] = []
    run: list[HeadingCandidate] = []
    for candidate in candidates:
        if run and _has_text(lines, run[-1], candidate):
            result += _kept_of_run(run)
            run = []
        run.append(candidate)
    return result + _kept_of_run(run)


def _kept_of_run(run: Sequence[HeadingCandidate]) -> list[HeadingCandidate]:
    begin = len(run) - 1
    while begin > 0 and rank(run[begin - 1]) < rank(run[begin]):
        if run[begin].line - run[begin - 1].line > _NEAR:
            break
        begin -= 1
    # Tables of contents repeat every heading, but must not open sections (decision 13).
    close = any(b.line - a.line == 1 for a, b in pairwise(run[: begin + 1]))
    if begin < _LISTED and not close:
        return [*run]
    contents = [candidate for candidate in run[:begin] if name_of(candidate.title) in _CONTENTS]
    is_last_item = begin > 0 and _follows(run[begin], run[begin - 1])
    return contents if is_last_item else [*contents, *run[begin:]]


def _follows(candidate: HeadingCandidate, before: HeadingCandidate) -> bool:
    """Returns whether a heading has the next number after another one."""
    if not candidate.label or not before.label:
        return False
    path, last = candidate.label.path, before.label.path
    return path == (*last[:-1], last[-1] + 1)


def _has_text(lines: TextLines, above: HeadingCandidate, below: HeadingCandidate) -> bool:
    """Returns whether text is between two headings, not only page numbers and broken lines."""
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
