"""Tokens of LaTeX, and the commands and environments that have a meaning for its text."""

from __future__ import annotations

import re

LEVELS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph")
_MATH = r"(?:equation|align|alignat|gather|multline|eqnarray|displaymath|math|flalign)\*?"
GROUP = r"\s*+\{(?:\\.|[^{}\\]|\{(?:\\.|[^{}\\]|\{[^{}]{0,999}\}){0,999}\}){0,9999}\}"
_BRACKETS = r"(?:\[[^\[\]\n]{0,300}\])?"
TOKEN = re.compile(
    rf"""
    (?P<text>[^\\%${{}}&\n]++|\n(?![ \t]*\n))
    |(?P<comment>%[^\n]*(?:\n[ \t]*(?![ \t\n]))?)
    |\\begin\{{(?P<env>verbatim\*?|[Vv]erbatim|lstlisting|minted|alltt|comment|tikzpicture
        |filecontents\*?)\}}(?P<verbatim>.*?)(?:\\end\{{(?P=env)\}}|\Z)
    |\\(?:verb\*?|lstinline{_BRACKETS}|mintinline{_BRACKETS}\{{[^{{}}\n]{{0,99}}\}}|path|url)
        (?P<mark>[^\w\s*{{}}\\%\[])(?P<verb>[^\n]*?)(?P=mark)
    |\\(?:url|path|nolinkurl|href{_BRACKETS}|lstinline{_BRACKETS}
        |mintinline{_BRACKETS}\{{[^{{}}\n]{{0,99}}\}})\*?[ ]*
        \{{(?P<address>(?:[^{{}}\n]|\{{[^{{}}\n]{{0,999}}\}}){{0,9999}})\}}
    |(?P<display>\$\$.*?(?:\$\$|\Z)|\\\[.*?(?:\\\]|\Z)
        |\\begin\{{(?P<math>{_MATH})\}}.*?(?:\\end\{{(?P=math)\}}|\Z))
    |(?P<inline>\\\(.*?(?:\\\)|\Z)|\$(?:\\.|[^$\\\n]|\n(?![ \t]*\n))+\$)
    |\\(?P<edge>begin|end)[ ]*\{{(?P<name>[^{{}}\n]*)\}}
    |\\(?P<word>[a-zA-Z@]+)\*?[ \t]*
    |\\(?P<sign>.)
    |(?P<paragraph>\n[ \t]*(?:\n[ \t]*)+)
    |(?P<brace>[{{}}])
    |(?P<cell>&)
    |(?P<character>.)
    """,
    re.VERBOSE | re.DOTALL,
)
DELIMITED = re.compile(
    r"(?:\$\$?|\\[\[(]|\\begin\{[^{}]*\}(?:\{\d+\})?)(.*?)(?:\$\$?|\\[\])]|\\end\{[^{}]*\})?",
    re.DOTALL,
)
NUMBERING = re.compile(r"\\(?:label\s*\{[^{}]*\}|nonumber|notag)")
ESCAPED = re.compile(r"\\([%#&_~{}$])")  # in an address
TABLES = frozenset(
    {"tabular", "tabularx", "tabulary", "array", "longtable", "supertabular", "tabu"}
)
LISTS = frozenset({"enumerate", "itemize", "description", "compactenum", "compactitem"})
# Numbers of arguments that are not text, by command or environment.
SILENT = {
    "label": 1, "vspace": 1, "hspace": 1, "bibliographystyle": 1, "pagestyle": 1, "color": 1,
    "thispagestyle": 1, "setlength": 2, "addtolength": 2, "setcounter": 2, "usepackage": 1,
    "documentclass": 1, "newcommand": 2, "renewcommand": 2, "providecommand": 2, "textcolor": 1,
    "newenvironment": 3, "definecolor": 3, "hypersetup": 1, "graphicspath": 1, "index": 1,
    "cline": 1, "cmidrule": 1, "rowcolor": 1, "cellcolor": 1, "rowcolors": 3, "resizebox": 2,
    "scalebox": 1, "tabular*": 2, "tabulary": 2, "supertabular": 1, "multicolumn": 2,
    "multirow": 2, "fontsize": 2, "selectlanguage": 1,
    "DeclareMathOperator": 2, "newtheorem": 2, "phantom": 1, "captionsetup": 1, "rule": 2,
    "tabular": 1, "tabularx": 2, "array": 1, "longtable": 1, "minipage": 1, "thebibliography": 1,
    "wrapfigure": 2, "wraptable": 2, "subfigure": 1, "subtable": 1, "multicols": 1,
    "title": 1, "author": 1, "date": 1, "addbibresource": 1, "foreignlanguage": 1, "hyphenation": 1,
}  # fmt: skip
ELSEWHERE = {
    "includegraphics": ("image", "images are not read"),
    "input": ("included file", "is another file; load it too"),
    "include": ("included file", "is another file; load it too"),
    "subfile": ("included file", "is another file; load it too"),
    "bibliography": ("included file", "is another file; load it too"),
}
SPOKEN = {
    "ldots": "…", "dots": "…", "textellipsis": "…", "LaTeX": "LaTeX", "TeX": "TeX", "ss": "ß",
    "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "aa": "å",
    "AA": "Å", "i": "i", "j": "j", "S": "§", "P": "¶", "pounds": "£", "euro": "€", "copyright": "©",
    "textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textbar": "|",
    "textless": "<", "textgreater": ">", "textquotedblleft": "“", "textquotedblright": "”",
    "textendash": "–", "textemdash": "—", "textdegree": "°", "guillemotleft": "«", "quad": " ",
    "guillemotright": "»", "qquad": " ", "textunderscore": "_", "slash": "/", "today": "",
}  # fmt: skip
ACCENTS = dict(zip("`'^\"~=.uvHcdbrk", map(chr, (
    0x300, 0x301, 0x302, 0x308, 0x303, 0x304, 0x307, 0x306, 0x30C, 0x30B, 0x327, 0x323, 0x331,
    0x30A, 0x328)), strict=True))  # fmt: skip
TYPED = {"~": " ", "``": "“", "''": "”", "---": "—", "--": "–"}
TYPED_AT = re.compile(r"---?|``|''|~")
DEFINED = re.compile(
    rf"\\(?:(?:re|provide)?newcommand\*?\s*\{{?|(?:re|provide)command\*?\s*\{{?|def)\\([a-zA-Z@]+)"
    rf"\}}?(\[\d\]|(?=\s*\#))?(?P<body>{GROUP})?",
    re.DOTALL,
)
LONGEST = 10_000  # characters that a command of the file may expand to
