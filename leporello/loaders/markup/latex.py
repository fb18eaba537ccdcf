"""LaTeX: text without comments and commands, with the source of mathematics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from leporello.core.records import Loss
from leporello.loaders.files import Format
from leporello.loaders.markup.latex_grammar import GROUP
from leporello.loaders.markup.latex_reader import LatexReader
from leporello.loaders.text import decoded
from leporello.text.outline import Extracted

# Tokens: the names of commands, and what may contain such names without effect.
_TOKEN = re.compile(
    r"""
    %[^\n]*
    |\\begin\{(?P<env>verbatim\*?|[Vv]erbatim|lstlisting|minted|alltt|filecontents\*?)\}
        .*?(?:\\end\{(?P=env)\}|\Z)
    |\\verb\*?(?P<mark>[^\w\s*])[^\n]*?(?P=mark)
    |\\newif\s*\\if[a-zA-Z@]+
    |\\(?P<name>[a-zA-Z@]+)
    |\\.
    """,
    re.VERBOSE | re.DOTALL,
)
# Conditions that end with `\fi`, with their values; those of packages take arguments instead.
_CONDITIONS: dict[str, bool | None] = {
    **dict.fromkeys((
        *("if", "ifcat", "ifx", "ifcase", "ifnum", "ifodd", "ifhmode", "ifvmode", "ifmmode"),
        *("ifdim", "ifinner", "ifvoid", "ifhbox", "ifvbox", "ifeof", "ifdefined", "ifcsname"),
        *("iffontchar", "ifpdf", "ifpdftex", "ifxetex", "ifluatex", "ifxetexorluatex"),
    )), "iffalse": False, "iftrue": True,
}  # fmt: skip
_SWITCH = re.compile(r"\\newif\s*\\(if[a-zA-Z@]+)")
_NOT_BREAKS = re.compile(r"[^\n]")


def printed(text: str) -> tuple[str, int]:
    r"""Returns a text with blanks in place of branches that are not printed, and their length.

    Only `\iffalse` and `\iftrue` have a known value; both branches of other conditions stay. Lines
    and offsets stay too.
    """
    if "\\iffalse" not in text and "\\iftrue" not in text:
        return text, 0
    pieces: list[str] = []
    at = size = 0
    for start, end in _unprinted(text):
        pieces += (text[at:start], _NOT_BREAKS.sub(" ", text[start:end]))
        size += len(text[start:end].strip())
        at = end
    return "".join([*pieces, text[at:]]), size


def _unprinted(text: str) -> Iterator[tuple[int, int]]:
    """Yields the (start, end) of branches that are not printed."""
    conditions = {**_CONDITIONS, **dict.fromkeys(_SWITCH.findall(text))}
    values: list[bool | None] = []  # of the conditions that are open
    depth = start = 0  # conditions open in the branch that is not printed, and where it begins
    for token in _TOKEN.finditer(text):
        name = token["name"] or ""
        if depth:
            depth += (name in conditions) - (name == "fi")
            is_else = depth == 1 and name == "else" and values[-1] is False
            if is_else or not depth:
                yield start, token.end()
                depth = 0
                values = values if is_else else values[:-1]
        elif name in conditions:
            values.append(conditions[name])
            start, depth = token.start(), int(conditions[name] is False)
        elif name == "else":
            start, depth = token.start(), int(values[-1:] == [True])
        elif name == "fi":
            values = values[:-1]


@dataclass(frozen=True)
class Latex(Format):
    """LaTeX: text, tables and mathematics, with sections by LaTeX commands."""

    suffixes: ClassVar[tuple[str, ...]] = (".tex", ".ltx", ".latex")
    begins: ClassVar[re.Pattern[bytes]] = re.compile(
        rb"\A(?:\s|%[^\n]*\n)*\\document(?:class|style)\b"
    )

    def extract(self, data: bytes, path: Path) -> Extracted:
        r"""Returns the text; places are `line 120`.

        Title, author and date come first. Commands that the file defines without arguments are
        expanded; all other unknown commands are replaced by their arguments. Nothing is run or
        included.
        """
        raw = decoded(data, path)
        text, unprinted = printed(raw.text.replace("\r\n", "\n"))
        begin, end = text.find("\\begin{document}"), text.find("\\end{document}")
        start = begin + len("\\begin{document}") if begin >= 0 else 0
        reader = LatexReader(text, {})
        odd = [*reader.define()]
        for name in ("title", "author", "date"):
            if match := re.search(rf"\\{name}\s*+(?:\[[^\]\n]{{0,300}}\])?({GROUP})", text):
                reader.read(*match.span(1))
                reader.flow.start("p")
                if name == "title":
                    reader.flow.title = " ".join("".join(reader.flow.pieces).split())
        end = end if end > start else len(text)
        reader.read(start, end)
        reader.close()
        after = text[end:].removeprefix("\\end{document}").strip()
        left_out = (
            ("preamble", "defines the layout", len(text[:start].strip())),
            ("comment", "LaTeX does not print it", reader.comments),
            ("text not printed", "is after \\iffalse, or in a branch like it", unprinted),
            ("text not printed", "is after the end of the document", len(after)),
        )
        reader.flow.losses += (
            Loss(what, why, "", size, furniture=True) for what, why, size in left_out if size
        )
        extracted = reader.flow.extracted()
        note = (
            f"commands that the file defines were replaced by their arguments: {', '.join(odd[:9])}"
        )
        return replace(
            extracted,
            losses=(*raw.losses, *extracted.losses),
            notes=(*raw.notes, *((note,) if odd else ())),
        )
