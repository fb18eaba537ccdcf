"""Headings with markup: `#`, underlines, LaTeX commands."""

from __future__ import annotations

import re
from dataclasses import replace

from leporello.text.headings.labels import is_name, label_of
from leporello.text.headings.lines import INDENT, LONGEST, HeadingCandidate, TextLines, has_leader

_ENVIRONMENT = -1  # placeholder level of LaTeX environments, replaced by the topmost level
_ATX = re.compile(r"(#{1,6})(?:[ \t]+(.*))?$")
_CLOSING = re.compile(r"(?<![ \t])[ \t]++#++$|^#++$")
_LATEX = re.compile(
    r"\\(part|chapter|section|subsection|subsubsection)\*?(?:\[[^\[\]]*\])?\{(.*)"
    r"|\\begin\{(abstract|thebibliography)\}|\\(appendix)\b"
)
_LATEX_LEVELS = {"part": 0, "chapter": 2, "section": 3, "subsection": 4, "subsubsection": 5}
_RULE = 3  # characters `=` that suffice under a longer title
_UNDERLINES = "=-~^*+\"'`.:_#"


def marked(lines: TextLines) -> list[HeadingCandidate]:
    """Returns the headings with markup and their levels; lower levels enclose higher ones."""
    candidates: list[HeadingCandidate] = []
    styles: dict[str, int] = {}
    for line, text in enumerate(lines.texts):
        if text and (heading := _heading(lines, line, styles)) and line not in lines.fenced:
            candidates.append(heading)
    return _levelled(_with_environments(_without_commands(candidates)))


def _heading(lines: TextLines, line: int, styles: dict[str, int]) -> HeadingCandidate | None:
    first = lines.texts[line][0]
    if first == "#" and (heading := _atx(lines, line)):
        return heading
    if first == "\\":
        return _latex(lines.texts[line], line)
    return _underlined(lines, line, styles) if first in _UNDERLINES else None


def _without_commands(candidates: list[HeadingCandidate]) -> list[HeadingCandidate]:
    """Leaves out lines with `#` before a small letter if no heading has `##`: they are comments."""
    # In code and configuration files a `#` begins a comment, but hardly ever `##`.
    if any(heading.level > 1 for heading in candidates):
        return candidates
    return [h for h in candidates if h.level != 1 or not h.title[:1].islower()]


def _atx(lines: TextLines, line: int) -> HeadingCandidate | None:
    """Reads `## Title`; consecutive lines of the same level are comments."""
    mark = _ATX.match(lines.texts[line][: 4 * LONGEST])
    if not mark or lines.indents[line] > INDENT or lines.at(line - 1)[:1] not in ("", "#", "-"):
        return None
    for near in (lines.at(line - 1), lines.at(line + 1)):
        if near.startswith("#") and len(near) - len(near.lstrip("#")) == len(mark[1]):
            return None
    title = _CLOSING.sub("", mark[2] or "").strip()
    return HeadingCandidate(line, title, "mark", len(mark[1]), label_of(title))


def _latex(text: str, line: int) -> HeadingCandidate | None:
    if not (command := _LATEX.match(text[: 4 * LONGEST])):
        return None
    if environment := command[3] or command[4]:
        title = {"thebibliography": "Bibliography"}.get(environment, environment.capitalize())
        return HeadingCandidate(line, title, "mark", _ENVIRONMENT)
    title, depth = "", 1
    # A title may contain braces: `\section{The \emph{Iliad}}`.
    for character in command[2]:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if not depth:
            break
        title += character
    return HeadingCandidate(line, title.strip(), "mark", _LATEX_LEVELS[command[1]])


def _underlined(lines: TextLines, line: int, styles: dict[str, int]) -> HeadingCandidate | None:
    """Reads an underline below a title with a blank line above; styles rank by first occurrence."""
    rule, title, over = (lines.at(line - up) for up in (0, 1, 2))
    if not _is_rule(rule) or not 0 < len(title) <= LONGEST or not _can_be_underlined(title):
        return None
    overlined = over == rule
    long_enough = len(rule) >= len(title) - 2 or (len(rule) >= _RULE and rule[0] == "=")
    inside = lines.indents[line] <= INDENT and lines.indents[line - 1] <= INDENT
    if not long_enough or not inside or (over and not overlined):
        return None
    # As in reStructuredText: each file chooses its own order of underlines.
    level = styles.setdefault(rule[0] * 2 if overlined else rule[0], len(styles) + 1)
    first = line - 2 if overlined else line - 1
    return HeadingCandidate(first, title, "mark", level, label_of(title))


def _is_rule(text: str) -> bool:
    """Returns whether a line repeats one character, and is not an empty Markdown heading."""
    return not text.strip(text[0]) and not _ATX.match(text[:LONGEST])


def _can_be_underlined(title: str) -> bool:
    """Returns whether a line can be a title, unlike a table's head, a list item or a sentence."""
    label = label_of(title)
    words = (label and label.title) or title
    has_gap = any(gap in words for gap in ("  ", "\t", "|"))
    if has_gap or title[0] in "-*+>|#\\" or title[-1] in ".,;":
        return False
    return any(character.isalnum() for character in title) and not has_leader(words)


def _levelled(candidates: list[HeadingCandidate]) -> list[HeadingCandidate]:
    """Corrects the level of a first heading that is above all others but is not a title.

    In MuLD's theses, the first heading lacks one `#`.
    """
    if len(candidates) > 1:
        first, *following = candidates
        # MuLD's theses lost one `#` when they were cut at the first heading (decision 13).
        deeper = min(heading.level for heading in following)
        if first.level < deeper and (first.label or is_name(first.title)):
            return [replace(first, level=deeper), *following]
    return candidates


def _with_environments(candidates: list[HeadingCandidate]) -> list[HeadingCandidate]:
    r"""Puts LaTeX environments on the topmost level, and headings after `\appendix` below it."""
    top = min((h.level for h in candidates if h.level != _ENVIRONMENT), default=1)
    inside, levelled = 0, []
    for heading in candidates:
        if heading.level == _ENVIRONMENT:
            inside = int(heading.title == "Appendix")
        level = top if heading.level == _ENVIRONMENT else heading.level + inside
        levelled.append(replace(heading, level=level))
    return levelled
