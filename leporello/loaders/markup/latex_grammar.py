"""Grammar of LaTeX: tokens, commands and environments, formulas, tables, numbers of lists."""

import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache

from leporello.loaders.flow import Flow
from leporello.loaders.numbering import numeral

LEVELS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph")
_MATH = r"(?:equation|align|alignat|gather|multline|eqnarray|displaymath|math|flalign)\*?"
GROUP = r"\s*+\{(?:\\.|[^{}\\]|\{(?:\\.|[^{}\\]|\{[^{}]{0,999}\}){0,999}\}){0,9999}\}"
_BRACKETS = r"(?:\[[^\[\]\n]{0,300}\])?"
TOKEN = re.compile(
    rf"""
    (?P<text>[^\\%${{}}&\n]++(?:\n(?![ \t]*\n))?+|\n(?![ \t]*\n))
    |(?P<comment>%[^\n]*(?:\n[ \t]*(?![ \t\n]))?
        |\\iffalse(?![a-zA-Z@]).*?(?:\\(?:else|fi)(?![a-zA-Z@])|\Z))
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
# Units of the package siunitx.
UNITS = {
    "per": "/", "percent": "%", "squared": "^2", "cubed": "^3", "square": "square ",
    "cubic": "cubic ", "nano": "n", "micro": "μ", "milli": "m", "centi": "c", "deci": "d",
    "kilo": "k", "mega": "M", "giga": "G", "tera": "T", "metre": "m", "meter": "m", "gram": "g",
    "tonne": "t", "second": "s", "minute": "min", "hour": "h", "day": "d", "ampere": "A",
    "kelvin": "K", "mole": "mol", "hertz": "Hz", "newton": "N", "pascal": "Pa",
    "joule": "J", "watt": "W", "volt": "V", "ohm": "Ω", "litre": "L", "liter": "L", "byte": "B",
    "electronvolt": "eV", "degreeCelsius": "°C", "celsius": "°C", "degree": "°",
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

_ARGUMENT = r"\s*+(?:\{([^{}]*)\}|([\w.]))"
FRACTIONS = frozenset({"frac", "dfrac", "tfrac", "cfrac", "nicefrac", "sfrac"})
FRACTION = re.compile(rf"\\(?:{'|'.join(sorted(FRACTIONS))})(?![a-zA-Z]){_ARGUMENT}{_ARGUMENT}")
_BEFORE_SCRIPT = re.compile(r"(?<=\S) (?=[_^]\S)")
_SCRIPT = re.compile(r"([\^_])\s*\{([^{}]*)\}")
_ROOT = re.compile(r"\\sqrt\s*\{([^{}]*)\}")
_STYLED = re.compile(
    r"\\(?:text(?:rm|bf|it|sf|tt|normal)?|math(?:rm|bf|it|sf|tt|bb|cal|frak)|mbox|hbox|operatorname\*?"
    r"|boldsymbol|bm|ensuremath)\s*\{([^{}]*)\}"
)
_DEEPEST = 9  # fractions and scripts within each other
_WORD = re.compile(r"\\(?:([a-zA-Z]+)|([,;:! %$&#_{}]))")
_OPERAND = re.compile(r"[-+−]?[\w.,%°√]+(?:\^[-−]?\w+)?|\([^()]*\)")
_POWER = re.compile(r"[-+−]?\w+|\\[a-zA-Z]+|[-+*′]|'+")
_SIGNS = {
    "times": "×", "cdot": "·", "pm": "±", "mp": "∓", "approx": "≈", "sim": "~", "le": "≤",
    "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠", "neq": "≠", "to": "→", "rightarrow": "→",
    "leftarrow": "←", "Rightarrow": "⇒", "infty": "∞", "circ": "°", "degree": "°", "ldots": "…",
    "dots": "…", "cdots": "…", "div": "÷", "equiv": "≡", "in": "∈", "sum": "∑", "prod": "∏",
    "int": "∫", "partial": "∂", "quad": " ", "qquad": " ", "left": "", "right": "", "ell": "ℓ",
    "displaystyle": "", "textstyle": "", "log": "log", "ln": "ln", "exp": "exp", "sin": "sin",
    "cos": "cos", "tan": "tan", "min": "min", "max": "max", "prime": "′", "mu": "μ", "percent": "%",
    "ll": "≪", "gg": "≫", "propto": "∝", "mid": "|", "lambda": "λ", "varepsilon": "ε", "euro": "€",
    "lbrace": "{", "rbrace": "}", "hbar": "ħ", "big": "", "Big": "", "bigg": "", "Bigg": "",
}  # fmt: skip
_SPACES = {",": " ", ";": " ", ":": " ", "!": "", " ": " "}


def formula(source: str) -> str:
    """Returns a formula without delimiters, as text; commands that are not known stay."""
    text = source
    for _ in range(_DEEPEST if "\\" in text or "{" in text else 0):
        before = text
        if "\\" in text:
            text = _STYLED.sub(r"\1", text)
            text = _ROOT.sub(lambda m: f"√{_operand(m[1])}", text)
            text = FRACTION.sub(_fraction, text)
        text = _SCRIPT.sub(_script, text)
        if text == before or "{" not in text:
            break
    text = _WORD.sub(_sign, text.replace("~", " ")).replace("^°", "°").replace("^′", "′")
    return _BEFORE_SCRIPT.sub("", " ".join(text.split()))


def _operand(text: str) -> str:
    return text.strip() if _OPERAND.fullmatch(text.strip()) else f"({text.strip()})"


def _fraction(match: re.Match[str]) -> str:
    above, below = match[1] or match[2] or "", match[3] or match[4] or ""
    before = match.string[match.start() - 1] if match.start() else ""
    return f"{' ' * before.isdigit()}{_operand(above)}/{_operand(below)}"  # 2 1/2


def _script(match: re.Match[str]) -> str:
    text = match[2].strip()
    if not _POWER.fullmatch(text):
        text = f"({text})" if text else ""
    return match[1] + text + " " * text.startswith("\\")  # a command ends before a letter


def _sign(match: re.Match[str]) -> str:
    name, sign = match[1], match[2]
    if name is None:
        return _SPACES.get(sign, sign)
    return _SIGNS[name] if name in _SIGNS else _letter(name)


@lru_cache(maxsize=1000)
def _letter(name: str) -> str:
    """Returns a Greek letter by its name; the command for other names."""
    case = "CAPITAL" if name[0].isupper() else "SMALL"
    try:
        return unicodedata.lookup(f"GREEK {case} LETTER {name.upper()}")
    except KeyError:
        return f"\\{name}"


_FORMS = ("1.", "(a)", "i.", "A.")  # of numbers in lists within each other
_START = re.compile(r"\bstart\s*=\s*(\d{1,6})")
_TEMPLATE = re.compile(r"\blabel\*?\s*=\s*([^,\]]*)|\[([^=\[\]]*)\]")
_STYLE = re.compile(r"\\(?!arabic|[aA]lph|[rR]oman)[a-zA-Z]+|[{}*]")
_PLACEHOLDER = re.compile(r"\\(?:arabic|[aA]lph|[rR]oman)|[1aAiI]")
_FIRST = {"\\arabic": "1", "\\alph": "a", "\\Alph": "A", "\\roman": "i", "\\Roman": "I"}
_MOST = 1000  # columns or rows that a cell may cover


@dataclass
class LatexTable:
    """Begins and ends rows and cells of a table that is being read.

    In LaTeX, an empty cell follows below each cell that covers several rows; it is left out.
    """

    flow: Flow  # where the table is written
    depth: int  # number of braces that are open around its cells
    columns: int = 1  # number of columns that the current cell covers
    rows: int = 1  # number of rows that it covers
    _column: int = 0
    _below: dict[int, int] = field(default_factory=dict)  # rows left, by column

    def next_cell(self) -> None:
        """Ends the cell and begins the next one."""
        self._end_cell()
        self._begin_cell()

    def next_row(self) -> None:
        """Ends the row and begins the next one with its first cell."""
        self.end_row()
        self.begin_row()

    def _begin_cell(self) -> None:
        """Begins the next cell if no earlier row covers it."""
        if not self._below.get(self._column):
            self.flow.start("td")

    def _end_cell(self) -> None:
        if self.columns == self.rows == 1:
            self._column += 1
            return
        columns, rows = min(self.columns, _MOST), min(self.rows, _MOST)
        self.flow.tables[-1].span(columns, rows)
        for column in range(self._column, self._column + columns if rows > 1 else 0):
            self._below[column] = rows
        self._column += columns
        self.columns = self.rows = 1

    def end_row(self) -> None:
        """Ends the cell and the row."""
        self._end_cell()
        self.flow.end("tr")
        self._column = 0
        self._below = {column: rows - 1 for column, rows in self._below.items() if rows > 1}

    def begin_row(self) -> None:
        """Begins the next row with its first cell."""
        self.flow.start("tr")
        self._begin_cell()


class LatexList:
    """A list that is being read, with the options of its environment and its depth from 0."""

    def __init__(self, name: str, options: str, depth: int) -> None:
        self.is_numbered = name.endswith(("enumerate", "enum"))
        self.number = 0  # of the last item
        self._form = _FORMS[min(depth, len(_FORMS) - 1)]
        if start := _START.search(options):
            self.number = int(start[1]) - 1
        if template := _TEMPLATE.search(options):
            form = _STYLE.sub("", template[1] or template[2] or "")
            self._form = form if _PLACEHOLDER.search(form) else self._form

    def label(self) -> str:
        """Returns the label of the next item."""
        if not self.is_numbered:
            return "-"
        self.number += 1
        return _PLACEHOLDER.sub(
            lambda form: numeral(self.number, _FIRST.get(form[0], form[0])), self._form, count=1
        )
