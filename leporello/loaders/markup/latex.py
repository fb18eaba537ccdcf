"""LaTeX: text without comments and commands, with the source of mathematics."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from leporello.core.records import Loss
from leporello.loaders.files import Format
from leporello.loaders.markup.latex_grammar import GROUP
from leporello.loaders.markup.latex_reader import LatexReader
from leporello.loaders.text import decoded
from leporello.text.outline import Extracted

# Names of conditions, and tokens that may contain such names without effect.
_TOKEN = re.compile(
    r"""
    %[^\n]*
    |\\begin\{(?P<env>verbatim\*?|[Vv]erbatim|lstlisting|minted|alltt|filecontents\*?)\}
        .*?(?:\\end\{(?P=env)\}|\Z)
    |\\verb\*?(?P<mark>[^\w\s*])[^\n]*?(?P=mark)
    |\\(?:url|path|nolinkurl|href)\s*\{[^{}\n]*\}
    |\\newif\s*\\if(?P<declared>[a-zA-Z@]+)
    |\\(?P<name>[a-zA-Z@]+)
    |\\.
    """,
    re.VERBOSE | re.DOTALL,
)
# Conditions that end with `\fi`; those of packages take arguments instead.
_CONDITIONS = frozenset({
    *("if", "ifcat", "ifx", "ifcase", "ifnum", "ifodd", "ifhmode", "ifvmode", "ifmmode", "ifdim"),
    *("ifinner", "ifvoid", "ifhbox", "ifvbox", "ifeof", "ifdefined", "ifcsname", "iffontchar"),
    *("ifpdf", "ifpdftex", "ifxetex", "ifluatex", "ifxetexorluatex"),
})  # fmt: skip
_NOT_BREAKS = re.compile(r"[^\n]")


def printed(text: str) -> tuple[str, int]:
    r"""Returns a text with blanks in place of branches that are not printed, and their length.

    Only `\iffalse`, `\iftrue` and switches of `\newif` have a known value; both branches of other
    conditions stay. Lines and offsets stay too.
    """
    if "\\iffalse" not in text and "\\iftrue" not in text and "\\newif" not in text:
        return text, 0
    pieces: list[str] = []
    at = size = 0
    conditions = _Conditions()
    branches = (conditions.read(token) for token in _TOKEN.finditer(text))
    for start, end in filter(None, branches):
        pieces += (text[at:start], _NOT_BREAKS.sub(" ", text[start:end]))
        size += len(text[start:end].strip())
        at = end
    return "".join([*pieces, text[at:]]), size


class _Conditions:
    """Conditions that are open while a text is read."""

    def __init__(self) -> None:
        self._values: dict[str, bool | None] = {"iffalse": False, "iftrue": True}
        self._values.update(dict.fromkeys(_CONDITIONS))
        self._open: list[bool | None] = []  # values of the conditions that are open
        # Conditions that are open in the branch that is not printed, and where it begins.
        self._depth = self._start = 0

    def read(self, token: re.Match[str]) -> tuple[int, int] | None:
        """Returns the (start, end) of a branch that is not printed, if it ends with the token."""
        name = token["name"] or ""
        if self._depth:
            self._depth += (name in self._values) - (name == "fi")
            is_else = self._depth == 1 and name == "else" and self._open[-1] is False
            if self._depth and not is_else:
                return None
            self._depth = 0
            if not is_else:
                self._open.pop()
            return self._start, token.end()
        if token["declared"]:
            self._values[f"if{token['declared']}"] = False
        elif name.endswith(("true", "false")) and name not in self._values:
            self._set(name)
        else:
            self._enter(name, token.start())
        return None

    def _enter(self, name: str, at: int) -> None:
        if name in self._values:
            self._open.append(self._values[name])
            self._depth = int(self._values[name] is False)
        elif name == "else":
            self._depth = int(self._open[-1:] == [True])
        elif name == "fi":
            del self._open[-1:]
        self._start = at

    def _set(self, name: str) -> None:
        switch = "if" + name.removesuffix("true").removesuffix("false")
        if self._values.get(switch) is not None:
            self._values[switch] = name.endswith("true")


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
