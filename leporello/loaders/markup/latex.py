"""LaTeX: text without comments and commands, with the source of mathematics."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from leporello.core.records import Document, Loss
from leporello.loaders.files import Format
from leporello.loaders.markup.latex_grammar import GROUP
from leporello.loaders.markup.latex_reader import LatexReader
from leporello.loaders.text import decoded

# Names of conditions, and tokens that may contain such names without effect.
_TOKEN = re.compile(
    r"""
    %[^\n]*
    |\\begin\{(?P<env>verbatim\*?|[Vv]erbatim|lstlisting|minted|alltt|filecontents\*?)\}
        .*?(?:\\end\{(?P=env)\}|\Z)
    |\\verb\*?(?P<mark>[^\w\s*])[^\n]*?(?P=mark)
    |\\(?:url|path|nolinkurl|href)\s*\{[^{}\n]*\}
    |\\newif\s*\\if[a-zA-Z@]+
    |\\(?P<name>[a-zA-Z@]+)
    |\\.
    """,
    re.VERBOSE | re.DOTALL,
)
# Conditions that end with `\fi`; those of packages take arguments instead.
_CONDITIONS = frozenset({
    *("if", "ifcat", "ifx", "ifcase", "ifnum", "ifodd", "ifhmode", "ifvmode", "ifmmode", "ifdim"),
    *("ifinner", "ifvoid", "ifhbox", "ifvbox", "ifeof", "ifdefined", "ifcsname", "iffontchar"),
    *("ifpdf", "ifpdftex", "ifxetex", "ifluatex", "ifxetexorluatex", "iftrue", "iffalse"),
})  # fmt: skip
_NEW_CONDITION = re.compile(r"\\newif\s*\\(if[a-zA-Z@]+)")
_NOT_BREAKS = re.compile(r"[^\n]")


def printed(text: str) -> tuple[str, int]:
    r"""Returns a text with blanks for the text that `\iffalse` hides, and its length.

    Both branches of other conditions stay. Lines and offsets stay too.
    """
    pieces: list[str] = []
    at = size = 0
    for start, end in _hidden(text) if "\\iffalse" in text else ():
        pieces += (text[at:start], _NOT_BREAKS.sub(" ", text[start:end]))
        size += len(text[start:end].strip())
        at = end
    return "".join([*pieces, text[at:]]), size


def _hidden(text: str) -> Iterator[tuple[int, int]]:
    r"""Yields the (start, end) of texts from `\iffalse` to its `\else` or `\fi`."""
    conditions = _CONDITIONS | {*_NEW_CONDITION.findall(text)}
    depth = start = 0  # conditions that are open from the first `\iffalse` on
    for token in _TOKEN.finditer(text):
        name = token["name"]
        if not depth:
            depth, start = int(name == "iffalse"), token.start()
        elif name == "fi" or (name == "else" and depth == 1):
            depth -= 1
            if not depth:
                yield start, token.end()
        else:
            depth += name in conditions


@dataclass(frozen=True)
class Latex(Format):
    """LaTeX: text, tables and mathematics, with sections by LaTeX commands."""

    suffixes = (".tex", ".ltx", ".latex")
    begins = re.compile(rb"\A(?:\s|%[^\n]*\n)*\\document(?:class|style)\b")

    def extract(self, data: bytes, path: Path) -> Document:
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
            ("text not printed", "is after \\iffalse", unprinted),
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
