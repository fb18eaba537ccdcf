"""Marks in RTF that survive striprtf: merged cells, raised, lowered and hidden text.

The marks are code points that no text contains.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from leporello.core.records import Loss
from leporello.loaders.figures import lowered, raised

_UP, _DOWN, _HIDE, _END, _ABOVE, _LEFT = "\ufde0\ufde1\ufde2\ufde3\ufde4\ufde5"
_MARKS = {"super": _UP, "sub": _DOWN, "up": _UP, "dn": _DOWN, "v": _HIDE}
_FORMAT = re.compile(
    r"\\(super|sub|up|dn|nosupersub|v|plain)(?![a-z])(-?\d*) ?|\\.|[{}]", re.DOTALL
)
_ROW, _ROW_END = re.compile(r"\\trowd(?![a-z])"), re.compile(r"(\\row(?![a-z]))")
_CELL = re.compile(r"\\(cellx|cell|nestcell|nestrow|clvmrg|clmrg|par|line)(?![a-z])(?:-?\d+)? ?")
_FRACTION = re.compile(f"(\\w?){_UP}(\\d+){_END}?([/\u2044]){_DOWN}(\\d+){_END}?")
_MARKED = re.compile(f"([{_UP}{_DOWN}{_HIDE}])([^{_UP}{_DOWN}{_HIDE}{_END}]*){_END}?")


def marked_formats(source: str) -> str:
    """Returns RTF with marks around raised, lowered and hidden text."""
    if not re.search(r"\\(?:super|sub|up|dn|v)(?![a-z])", source):
        return source
    return "".join(_formats(source))


def _formats(source: str) -> Iterator[str]:
    at, outer, current = 0, [], ""  # the marks that are open, in groups and now
    for match in _FORMAT.finditer(source):
        word, before = match[1], current
        if match[0] == "{":
            outer.append(current)
        elif match[0] == "}":
            current = outer.pop() if outer else ""
        elif word:
            is_off = match[2] == "0" or word in ("nosupersub", "plain")
            ends = word == "plain" or current != _HIDE or word == "v"
            current = _MARKS[word] if not is_off else "" if ends else current
        if current == before:
            continue
        mark = (_END if before else "") + current
        yield source[at : match.start()]
        yield mark + match[0] if match[0] == "}" else match[0] + mark
        at = match.end()
    yield source[at:]


def marked_rows(source: str) -> str:
    """Returns RTF with tabs after cells, blanks in place of paragraphs in cells, and merges."""
    pieces = _ROW_END.split(source)
    for number, piece in enumerate(pieces[:-1]):
        if row := _ROW.search(piece):
            pieces[number] = piece[: row.start()] + _row(piece[row.start() :])
    source = "".join(pieces)
    return re.sub(r"\\(?:nest)?cell(?![a-z])", r"\\tab", source)


def _row(row: str) -> str:
    merges: list[str] = []
    merge, number = "", 0

    def replaced(match: re.Match[str]) -> str:
        nonlocal merge, number
        word = match[1]
        if word in ("clvmrg", "clmrg"):
            merge = _ABOVE if word == "clvmrg" else _LEFT
        elif word == "cellx":
            merges.append(merge)
            merge = ""
        elif word == "cell":
            number += 1
            mark = merges[number - 1] if number <= len(merges) else ""
            return f"{{{mark}}}\\tab "
        else:
            return "; " if word == "nestrow" else " "
        return match[0]

    return _CELL.sub(replaced, row)


def unmarked(text: str) -> tuple[str, list[Loss]]:
    """Returns text with signs in place of the marks, and the hidden text as losses."""
    losses: list[Loss] = []

    def signed(match: re.Match[str]) -> str:
        inner = match[2]
        if match[1] == _HIDE:
            if inner.strip():
                why = "is in the file, but is not shown"
                losses.append(Loss("hidden text", why, characters=len(inner.strip())))
            return ""
        before = text[match.start() - 1 : match.start()]
        if match[1] == _UP:
            signs = raised(inner) if before.strip() else ("", "")
        else:
            signs = lowered(inner, before)
        return signs[0] + inner + signs[1]

    text = _FRACTION.sub(lambda m: f"{m[1]}{' ' * bool(m[1])}{m[2]}{m[3]}{m[4]}", text)
    text = _MARKED.sub(signed, text).replace(_END, "")
    return "\n".join(_merged(text.split("\n"))), losses


def _merged(lines: list[str]) -> Iterator[str]:
    """Yields lines without the tab after the last cell, and repeats merged cells."""
    above: list[str] = []
    for line in lines:
        if not line.endswith("\t"):
            yield line
            above = []
            continue
        fields = [field.strip(" ") for field in line[:-1].split("\t")]
        for number, field in enumerate(fields):
            if _ABOVE in field:
                fields[number] = above[number] if number < len(above) else ""
            elif _LEFT in field:
                fields[number] = fields[number - 1] if number else ""
        above = fields
        if any(fields):
            yield "\t".join(fields)
