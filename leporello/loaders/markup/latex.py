"""LaTeX: text without comments and commands, with the source of mathematics.

It does not use pylatexenc (2.10, from 2021), whose text has no offsets for lines and headings.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from leporello.core.records import Loss
from leporello.loaders.files import Format
from leporello.loaders.flow import Flow
from leporello.loaders.text import decoded, line_starts
from leporello.text.outline import Extracted

_LEVELS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph")
_MATH = r"(?:equation|align|alignat|gather|multline|eqnarray|displaymath|math|flalign)\*?"
_GROUP = r"\s*+\{(?:\\.|[^{}\\]|\{(?:\\.|[^{}\\]|\{[^{}]{0,999}\}){0,999}\}){0,9999}\}"
_TOKEN = re.compile(
    rf"""
    (?P<comment>%[^\n]*(?:\n[ \t]*(?![ \t\n]))?)
    |\\begin\{{(?P<env>verbatim\*?|[Vv]erbatim|lstlisting|minted|alltt|comment|tikzpicture
        |filecontents\*?)\}}(?P<verbatim>.*?)(?:\\end\{{(?P=env)\}}|\Z)
    |\\verb\*?(?P<mark>[^\w\s*])(?P<verb>[^\n]*?)(?P=mark)
    |(?P<display>\$\$.*?(?:\$\$|\Z)|\\\[.*?(?:\\\]|\Z)
        |\\begin\{{(?P<math>{_MATH})\}}.*?(?:\\end\{{(?P=math)\}}|\Z))
    |(?P<inline>\\\(.*?(?:\\\)|\Z)|\$(?:\\.|[^$\\\n]|\n(?![ \t]*\n))+\$)
    |\\(?P<edge>begin|end)[ ]*\{{(?P<name>[^{{}}\n]*)\}}
    |\\(?P<word>[a-zA-Z@]+)\*?[ \t]*
    |\\(?P<sign>.)
    |(?P<paragraph>\n[ \t]*(?:\n[ \t]*)+)
    |(?P<brace>[{{}}])
    |(?P<cell>&)
    |(?P<text>(?:[^\\%${{}}&\n])+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_OPTIONS = re.compile(r"(?:\[[^\[\]\n]{0,300}\])+")
_ARGUMENT = re.compile(_GROUP, re.DOTALL)
# Numbers of arguments that are not text, by command or environment.
_SILENT = {
    "label": 1, "vspace": 1, "hspace": 1, "bibliographystyle": 1, "pagestyle": 1, "color": 1,
    "thispagestyle": 1, "setlength": 2, "addtolength": 2, "setcounter": 2, "usepackage": 1,
    "documentclass": 1, "newcommand": 2, "renewcommand": 2, "providecommand": 2, "textcolor": 1,
    "newenvironment": 3, "definecolor": 3, "hypersetup": 1, "graphicspath": 1, "index": 1,
    "cline": 1, "cmidrule": 1, "multicolumn": 2, "multirow": 2, "fontsize": 2, "selectlanguage": 1,
    "DeclareMathOperator": 2, "newtheorem": 2, "phantom": 1, "captionsetup": 1, "rule": 2,
    "tabular": 1, "tabularx": 2, "array": 1, "longtable": 1, "minipage": 1, "thebibliography": 1,
    "title": 1, "author": 1, "date": 1, "addbibresource": 1, "foreignlanguage": 1, "hyphenation": 1,
}  # fmt: skip
_ELSEWHERE = {
    "includegraphics": ("image", "images are not read"),
    "input": ("included file", "is another file; load it too"),
    "include": ("included file", "is another file; load it too"),
    "subfile": ("included file", "is another file; load it too"),
    "bibliography": ("included file", "is another file; load it too"),
}
_SPOKEN = {
    "ldots": "…", "dots": "…", "textellipsis": "…", "LaTeX": "LaTeX", "TeX": "TeX", "ss": "ß",
    "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "aa": "å",
    "AA": "Å", "i": "i", "j": "j", "S": "§", "P": "¶", "pounds": "£", "euro": "€", "copyright": "©",
    "textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textbar": "|",
    "textless": "<", "textgreater": ">", "textquotedblleft": "“", "textquotedblright": "”",
    "textendash": "–", "textemdash": "—", "textdegree": "°", "guillemotleft": "«", "quad": " ",
    "guillemotright": "»", "qquad": " ", "textunderscore": "_", "slash": "/", "today": "",
}  # fmt: skip
_ACCENTS = dict(zip("`'^\"~=.uvHcdbrk", map(chr, (
    0x300, 0x301, 0x302, 0x308, 0x303, 0x304, 0x307, 0x306, 0x30C, 0x30B, 0x327, 0x323, 0x331,
    0x30A, 0x328)), strict=True))  # fmt: skip
_LETTER = re.compile(r"\s*+(?:\{\s*+\\?+([^\W\d_]?+)\s*+\}|\\([ij])(?![a-zA-Z])|([^\W\d_]))")
_TYPED = {"~": " ", "``": "“", "''": "”", "---": "—", "--": "–"}
_TYPED_AT = re.compile(r"---?|``|''|~")
_DEFINED = re.compile(
    rf"\\(?:(?:re|provide)?newcommand\*?\s*\{{?|(?:re|provide)command\*?\s*\{{?|def)\\([a-zA-Z@]+)"
    rf"\}}?(\[\d\]|(?=\s*\#))?(?P<body>{_GROUP})?",
    re.DOTALL,
)
# Definitions that use each other ten times would expand without bound.
_LONGEST = 10_000  # characters that a command of the file may expand to


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

        Raises:
            UserError: The file is not text.
        """
        raw = decoded(data, path)
        text = raw.text.replace("\r\n", "\n")
        begin, end = text.find("\\begin{document}"), text.find("\\end{document}")
        start = begin + len("\\begin{document}") if begin >= 0 else 0
        reader = _LatexReader(text, {})
        odd = [*reader.define()]
        for name in ("title", "author", "date"):
            if match := re.search(rf"\\{name}\s*+(?:\[[^\]\n]{{0,300}}\])?({_GROUP})", text):
                reader.read(*match.span(1))
                reader.flow.start("p")
                if name == "title":
                    reader.flow.title = " ".join("".join(reader.flow.pieces).split())
        end = end if end > start else len(text)
        reader.read(start, end)
        after = text[end:].removeprefix("\\end{document}").strip()
        left_out = (
            ("preamble", "defines the layout", len(text[:start].strip())),
            ("comment", "LaTeX does not print it", reader.comments),
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


class _LatexReader:
    """Parses LaTeX and writes its text.

    Attributes:
        flow: Text so far.
        comments: Characters of comments so far.
    """

    def __init__(self, text: str, commands: dict[str, str]) -> None:
        self.flow, self.comments = Flow(), 0
        self._text, self._commands = text, commands
        self._starts, self._line = line_starts(text), 0
        used = set(re.findall(rf"\\({'|'.join(_LEVELS)})\b", text))
        # Only commands that occur: an article begins with \section, which is then level 1.
        self._levels = {name: n for n, name in enumerate((n for n in _LEVELS if n in used), 1)}
        self._open: list[str] = []  # closing texts of open braces
        self._next = ""  # closing text of the next brace

    def define(self) -> Iterator[str]:
        """Records commands that the file defines; yields the names of those with arguments."""
        for match in _DEFINED.finditer(self._text):
            if match[2] is not None:
                yield f"\\{match[1]}"
            elif match["body"]:
                inner = _LatexReader(match["body"], self._commands)
                inner.read(0, len(match["body"]))
                self._commands[match[1]] = "".join(inner.flow.pieces)[:_LONGEST]

    def read(self, at: int, end: int) -> None:
        """Writes the text from `at` to `end`."""
        steps: dict[str | None, Callable[[re.Match[str], int], int]] = {
            "name": self._edge, "word": self._command, "sign": self._sign,
        }  # fmt: skip
        while at < end and (token := _TOKEN.match(self._text, at, end)):
            step = steps.get(token.lastgroup)
            at = step(token, token.end()) if step else self._plain(token)

    def _plain(self, token: re.Match[str]) -> int:
        """Writes a token that is not a command; returns where the text continues."""
        kind = token.lastgroup
        if kind == "text":
            self._write(_TYPED_AT.sub(lambda m: _TYPED.get(m[0], m[0]), token[0]), token)
        elif kind == "comment":
            self.comments += len(token[0])
        elif kind == "brace":
            self._brace(token[0])
            if self._text.startswith("}{", token.start()):
                self.flow.data(" ")  # between arguments of an unknown command
        elif kind in ("paragraph", "cell"):
            self.flow.start("p" if kind == "paragraph" else "td")
        else:
            self._write_verbatim(token)
        return token.end()

    def _write(self, text: str, token: re.Match[str]) -> None:
        line = bisect_right(self._starts, token.start())
        if line != self._line and text.strip():
            self._line = line
            self.flow.place(f"line {line}")
        self.flow.data(text)

    def _write_verbatim(self, token: re.Match[str]) -> None:
        if token["verb"] is not None:
            self._write(token["verb"], token)
        elif token["env"] in ("comment", "tikzpicture"):
            if token["env"] == "tikzpicture":
                self._lose("drawing", "is made by commands", token, len(token["verbatim"]))
        elif token["inline"]:
            self._write(token[0], token)
        else:
            self.flow.start("pre")
            self._write((token["verbatim"] or token["display"]).strip("\n"), token)
            self.flow.end("pre")

    def _lose(self, what: str, why: str, token: re.Match[str], size: int = 0) -> None:
        line = bisect_right(self._starts, token.start())
        self.flow.losses.append(Loss(what, why, f"line {line}", size))

    def _edge(self, token: re.Match[str], at: int) -> int:
        """Returns where the text continues after the beginning or end of an environment."""
        self.flow.start("p")
        name = token["name"].rstrip("*")
        return self._after(at, _SILENT.get(name, 0)) if token["edge"] == "begin" else at

    def _after(self, at: int, arguments: int) -> int:
        """Returns where the text continues after options and arguments that are not text."""
        for _ in range(arguments + 1):
            at = options.end() if (options := _OPTIONS.match(self._text, at)) else at
            if arguments and (group := _ARGUMENT.match(self._text, at)):
                at, arguments = group.end(), arguments - 1
        return at

    def _command(self, token: re.Match[str], at: int) -> int:
        """Writes the text of a command; returns where the text continues."""
        word = token["word"]
        if word in _ACCENTS and len(word) == 1 and (letter := _LETTER.match(self._text, at)):
            return self._accent(word, letter, token)
        if spoken := _SPOKEN.get(word) or self._commands.get(word):
            self._write(spoken, token)
            return at + 2 if self._text.startswith("{}", at) else at
        if word in _ELSEWHERE:
            what, why = _ELSEWHERE[word]
            after = self._after(at, 1)
            self._lose(what, f"{self._text[at:after].split('{')[-1].strip('}')} {why}", token)
            return after
        if word in ("def", "let"):
            match = _DEFINED.match(self._text, token.start())
            return match.end() if match else at
        self._structure(word, token)
        return self._after(at, _SILENT.get(word, 0))

    def _structure(self, word: str, token: re.Match[str]) -> None:
        if word in self._levels:
            self._next = f"h{min(self._levels[word], 6)}"
        elif word in ("footnote", "footnotetext", "thanks"):
            self._next = ")"
        elif word == "bibitem" or word.startswith(("cite", "ref", "eqref", "autoref")):
            self._next = "]"
        elif word == "item":
            self.flow.start("li")
            self._write("- ", token)
        elif word in ("caption", "par", "newpage", "clearpage", "maketitle"):
            self.flow.start("p")
        elif word in ("newline", "hline", "tabularnewline"):
            self.flow.start("tr")

    def _sign(self, token: re.Match[str], at: int) -> int:
        sign = token["sign"]
        if sign in _ACCENTS and (letter := _LETTER.match(self._text, at)):
            return self._accent(sign, letter, token)
        if sign == "\\":
            self.flow.start("tr")
            return self._after(at, 0)
        if sign in "%&$#_{} ,;:!\n":
            self._write(" " if sign in " ,;:\n" else sign.replace("!", ""), token)
        return at

    def _accent(self, mark: str, letter: re.Match[str], token: re.Match[str]) -> int:
        base = letter[1] or letter[2] or letter[3] or ""
        self._write(unicodedata.normalize("NFC", base + _ACCENTS[mark]), token)
        return letter.end()

    def _brace(self, brace: str) -> None:
        if brace == "{":
            self._open.append(self._next)
            if self._next.startswith("h"):
                self.flow.start(self._next)
            elif self._next:
                self.flow.data(" (" if self._next == ")" else "[")
            self._next = ""
        elif self._open and (closed := self._open.pop()):
            self.flow.end(closed) if closed.startswith("h") else self.flow.data(closed)
