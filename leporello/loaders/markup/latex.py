"""LaTeX: the text without commands and comments, its sections, and mathematics as it is written."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from leporello.core.records import Loss
from leporello.loaders.files import Format
from leporello.loaders.flow import Flow
from leporello.loaders.text import decoded
from leporello.text.outline import Extracted

__all__ = ["Latex"]

_BEGINS = re.compile(rb"(?:\s*%[^\n]*\n|\s)*\\documentclass\b")
_MATHS = "equation|align|gather|multline|eqnarray|displaymath|math"
_PIECE = re.compile(
    r"(?P<code>\\begin\{(verbatim|lstlisting|minted)\*?\}.*?\\end\{\2\*?\})"
    rf"|(?P<math>\\begin\{{(?P<maths>(?:{_MATHS})\*?)\}}.*?\\end\{{(?P=maths)\}}"
    r"|\$\$.*?\$\$|\\\[.*?\\\]|\\\(.*?\\\)|(?<!\\)\$(?:\\.|[^$\\])+\$)"
    r"|(?P<comment>%[^\n]*(?:\n[ \t]*|\Z))"
    r"|\\(?P<edge>begin|end)\{(?P<environment>[^{}]*)\}(?:\[[^][]*\])?"
    r"|\\(?P<accent>['`^\"~=.](?=[ ]*\{?\\?[A-Za-z])|[uvHck](?=\{\\?[A-Za-z]\}|[ ]+[A-Za-z]\b))"
    r"[ ]*(?P<brace>\{)?(?P<letter>\\?[A-Za-z])(?(brace)\})"
    r"|\\(?P<command>[A-Za-z@]+)\*?[ \t]*(?:\[[^][]*\])?"
    r"|\\(?P<sign>.)|(?P<blank>\n[ \t]*\n\s*)|(?P<special>[{}~&]|---?|``|'')"
    r"|(?P<text>[^\\%$\n{}~&`'-]+|.|\n)",
    re.S,
)
_MARKS = "\u0301\u0300\u0302\u0308\u0303\u0304\u0307\u0306\u030c\u030b\u0327\u0328"
_ACCENTS = dict(zip("'`^\"~=.uvHck", _MARKS, strict=True))
_LETTERS = {
    "ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł",
    "aa": "å", "AA": "Å", "i": "ı", "j": "ȷ", "ldots": "…", "dots": "…", "textbackslash": "\\",
    "S": "§", "P": "¶", "copyright": "©", "pounds": "£", "euro": "€", "LaTeX": "LaTeX",
    "TeX": "TeX", "quad": " ", "qquad": " ", "textendash": "–", "textemdash": "—",
}  # fmt: skip
_SPECIAL = {"~": "\u00a0", "--": "–", "---": "—", "``": "“", "''": "”", "{": "", "}": ""}
_LEVELS = {
    "part": 1,
    "chapter": 1,
    "section": 2,
    "subsection": 3,
    "subsubsection": 4,
    "paragraph": 5,
    "subparagraph": 6,
}
# Commands whose argument is no text for a reader.
_SILENT = re.compile(
    r"label|usepackage|documentclass|bibliographystyle|vspace|hspace|setlength|pagestyle|thispagestyle"
    r"|newcommand|renewcommand|def|input|include|includegraphics|bibliography|addbibresource|hypersetup"
    r"|setcounter|addtocounter|pagenumbering|color|geometry|graphicspath|cline|multicolumn"
)
_FILES = {
    "input": ("included file", "is a file of its own; read it too"),
    "include": ("included file", "is a file of its own; read it too"),
    "bibliography": ("bibliography", "is a file of its own"),
    "includegraphics": ("image", "images are not read"),
}
_ARGUMENT = re.compile(r"\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")


@dataclass(frozen=True)
class Latex(Format):
    """LaTeX: the text without commands and comments, mathematics as it is written.

    Files that it includes are not read; its own commands are not carried out.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".tex", ".ltx", ".latex")

    @staticmethod
    def recognises(head: bytes, path: Path) -> bool:  # noqa: ARG004 -- the content says it
        """Returns whether the file begins as a document of LaTeX."""
        return _BEGINS.match(head) is not None

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the text; comments and what stands before the document are furniture.

        Raises:
            UserError: It is no text.
        """
        raw = decoded(data, path)
        flow = _LatexFlow()
        source = raw.text.replace("\r\n", "\n")
        preamble, begun, body = source.partition("\\begin{document}")
        if begun:
            flow.losses += _left_out("preamble", preamble)
            for name in ("title", "author", "date"):
                if found := re.search(rf"\\{name}\b" + _ARGUMENT.pattern, preamble):
                    flow.write("h1" if name == "title" else "p", found[1])
            body = body.partition("\\end{document}")[0]
        flow.write("div", body if begun else source)
        flow.losses += _left_out("comment", flow.comments)
        found_ = flow.extracted()
        title = found_.sections[0].title if begun and found_.sections else ""
        return replace(found_, title=title, losses=(*found_.losses, *raw.losses), notes=raw.notes)


def _left_out(what: str, text: str) -> Iterator[Loss]:
    if text.strip():
        yield Loss(what, "says how the text is set", characters=len(text), furniture=True)


class _LatexFlow(Flow):
    """Writes LaTeX's text as HTML's elements."""

    comments = ""

    def write(self, tag: str, source: str) -> None:
        """Writes a stretch of LaTeX as an element."""
        self.start(tag)
        at = 0
        while at < len(source) and (piece := _PIECE.match(source, at)):
            at = self._write_piece(piece, source)
        self.end(tag)

    def _write_piece(self, piece: re.Match[str], source: str) -> int:
        """Writes what was matched; returns where to go on."""
        kind = piece.lastgroup or ""
        if kind in ("code", "maths", "math"):
            self._write_raw(piece)
        elif kind == "comment":
            self.comments += piece[0]
        elif piece["edge"]:
            self.element("p", "")
            self.start("p")
            return _past_arguments(piece, source)
        elif piece["accent"]:
            letter = piece["letter"].removeprefix("\\")
            self.data(unicodedata.normalize("NFC", letter + _ACCENTS[piece["accent"]]))
        elif piece["command"]:
            return self._write_command(piece, source)
        elif kind == "sign":
            self._write_sign(piece["sign"])
        elif kind == "blank":
            self.start("p")
            self.end("p")
        elif piece[0] == "&":
            self.start("td")
        else:
            self.data(_SPECIAL.get(piece[0], piece[0]))
        return piece.end()

    def _write_raw(self, piece: re.Match[str]) -> None:
        if piece["code"]:
            inner = re.sub(r"\A\\begin\{[^}]*\}(?:\[[^]]*\])?\n?|\n?\\end\{[^}]*\}\Z", "", piece[0])
            self.element("pre", inner)
        else:
            self.data(piece[0])

    def _write_sign(self, sign: str) -> None:
        if sign == "\\":
            self.start("br")
        else:
            self.data(
                {",": " ", ";": " ", ":": " ", "!": "", "/": "", "-": "", "@": ""}.get(sign, sign)
            )

    def _write_command(self, piece: re.Match[str], source: str) -> int:
        name = piece["command"]
        argument = _ARGUMENT.match(source, piece.end())
        if name in _FILES and argument:
            self.losses.append(Loss(*_FILES[name], argument[1]))
        if name in _LETTERS:
            self.data(_LETTERS[name])
            return piece.end() + (source[piece.end() : piece.end() + 2] == "{}") * 2
        if name in _LEVELS and argument:
            self.write(f"h{_LEVELS[name]}", argument[1])
        elif _SILENT.fullmatch(name) and argument:
            return argument.end()
        elif re.fullmatch(r"[a-zA-Z]*(?:cite|ref)[a-z]*", name) and argument:
            self.data(f"[{argument[1]}]" if "cite" in name else argument[1])
        elif name in ("footnote", "thanks") and argument:
            self.data(" (")
            self.write("span", argument[1])
            self.data(")")
        elif name in ("item", "par", "newline", "hline"):
            self.start("li")
            self.end("li")
            return piece.end()
        else:
            return piece.end()
        return argument.end() if argument else piece.end()


def _past_arguments(piece: re.Match[str], source: str) -> int:
    """Returns where an environment's text begins, behind its columns and widths."""
    end = piece.end()
    if piece["edge"] == "begin" and re.match("tabular|array|minipage|thebib", piece["environment"]):
        while argument := _ARGUMENT.match(source, end):
            end = argument.end()
    return end
