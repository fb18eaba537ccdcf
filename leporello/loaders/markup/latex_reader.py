"""Reader of LaTeX, token by token."""

import re
import unicodedata
from bisect import bisect_right

from leporello.core.records import Loss
from leporello.loaders.flow import Flow
from leporello.loaders.markup import latex_grammar as grammar
from leporello.loaders.markup.latex_grammar import LatexList, LatexTable
from leporello.loaders.text import line_starts

_ARGUMENT = re.compile(grammar.GROUP, re.DOTALL)
_CELLS = re.compile(r"\s*(?:\[[^\[\]]{0,99}\])?\{(\d{1,4})\}")  # that a cell covers
_LABEL = re.compile(r"[ \t]*\[((?:[^\[\]{}]|\{[^{}]{0,999}\}){0,999})\]")
_LETTER = re.compile(r"\s*+(?:\{\s*+\\?+([^\W\d_]?+)\s*+\}|\\([ij])(?![a-zA-Z])|([^\W\d_]))")
_OPTIONS = re.compile(r"(?:\[[^\[\]\n]{0,300}\])+")


class LatexReader:
    """Parses LaTeX and writes its text."""

    def __init__(self, text: str, commands: dict[str, str]) -> None:
        self.flow, self.comments = Flow(), 0  # text so far, and characters of comments
        self._text, self._commands = text, commands
        self._starts, self._line = line_starts(text), 0
        used = set(re.findall(rf"\\({'|'.join(grammar.LEVELS)})\b", text))
        self._levels = {
            name: n for n, name in enumerate((n for n in grammar.LEVELS if n in used), 1)
        }
        self._open: list[str] = []  # closing texts of open braces
        self._next = ""  # closing text of the next brace
        self._steps = {"item": self._item, "def": self._definition, "let": self._definition}
        self._steps.update(dict.fromkeys(grammar.FRACTIONS, self._fraction))
        self._tables: list[LatexTable] = []  # that are open
        self._lists: list[LatexList] = []

    def define(self) -> None:
        """Records commands without arguments that the file defines."""
        for match in grammar.DEFINED.finditer(self._text):
            if match[2] is None and match["body"]:
                inner = LatexReader(match["body"], self._commands)
                inner.read(0, len(match["body"]))
                self._commands[match[1]] = "".join(inner.flow.pieces)[: grammar.LONGEST]

    def read(self, at: int, end: int) -> None:
        """Writes the text from `at` to `end`."""
        while at < end and (token := grammar.TOKEN.match(self._text, at, end)):
            kind = token.lastgroup
            if kind == "text":  # half of all tokens
                typed = grammar.TYPED_AT.sub(lambda sign: grammar.TYPED[sign[0]], token[0])
                self._write(typed, token)
                at = token.end()
            elif kind == "word":
                at = self._command(token, token.end())
            elif kind == "sign":
                at = self._sign(token, token.end())
            elif kind == "name":
                at = self._edge(token, token.end())
            else:
                self._write_other(token)
                at = token.end()

    def close(self) -> None:
        """Ends what the text leaves open."""
        while self._tables:
            self._end_table()

    def _write_other(self, token: re.Match[str]) -> None:
        """Writes a token that is neither text nor a command."""
        kind = token.lastgroup
        if kind == "brace":
            self._brace(token[0], token.end())
        elif kind == "comment":
            self.comments += len(token[0])
        elif kind == "character":
            self._write(token[0], token)
        elif kind == "cell" and (table := self._table()):
            table.next_cell()
        elif kind == "cell" and self._tables:
            self.flow.data(" ")
        elif kind in ("paragraph", "cell"):
            self.flow.start("p" if kind == "paragraph" else "td")
        else:
            self._write_verbatim(token)

    def _write(self, text: str, token: re.Match[str]) -> None:
        if text and not text.isspace():
            line = bisect_right(self._starts, token.start())
            if line != self._line:
                self._line = line
                self.flow.place(f"line {line}")
        self.flow.data(text)

    def _write_verbatim(self, token: re.Match[str]) -> None:
        if token["verb"] is not None:
            self._write(token["verb"], token)
        elif token["address"] is not None:
            self._write(grammar.ESCAPED.sub(r"\1", token["address"]), token)
            self.flow.data(" " * self._text.startswith("{", token.end()))
        elif token["env"] == "comment":
            self.comments += len(token["verbatim"].strip())
        elif token["env"] == "tikzpicture":
            self._lose("drawing", "is made by commands", token, len(token["verbatim"]))
        elif token["inline"] or token["display"]:
            self._write_formula(token)
        else:
            self.flow.start("pre")
            self._write(token["verbatim"].strip("\n"), token)
            self.flow.end("pre")

    def _write_formula(self, token: re.Match[str]) -> None:
        if source := token["inline"]:
            text = grammar.formula(source.strip("$") if source[0] == "$" else source[2:-2])
            is_index = text[:1] == "_" and text[1:].isdigit()  # H$_2$O
            self._write(text[1:] if is_index else f"${text}$" if "\\" in text else text, token)
            return
        match = grammar.DELIMITED.fullmatch(token[0])
        source = grammar.NUMBERING.sub("", match[1]) if match else token[0]
        lines = [grammar.formula(line.replace("&", " ")) for line in source.split("\\\\")]
        text = "\n".join(filter(None, lines))
        self.flow.start("pre")
        self._write(token[0].strip("\n") if "\\begin" in text else text, token)
        self.flow.end("pre")

    def _table(self) -> LatexTable | None:
        """Returns the table whose cell is being read, outside of the cell's braces."""
        table = self._tables[-1] if self._tables else None
        return table if table and table.depth == len(self._open) else None

    def _end_table(self) -> None:
        self._tables.pop().end_row()
        self.flow.end("table")

    def _lose(self, what: str, why: str, token: re.Match[str], size: int = 0) -> None:
        line = bisect_right(self._starts, token.start())
        self.flow.losses.append(Loss(what, why, f"line {line}", size))

    def _edge(self, token: re.Match[str], at: int) -> int:
        """Returns where the text continues after the beginning or end of an environment."""
        name, is_begin = token["name"].rstrip("*"), token["edge"] == "begin"
        if name in grammar.TABLES and self._tables and not is_begin:
            self._end_table()
        self.flow.start("p")
        if name in grammar.LISTS and not is_begin and self._lists:
            self._lists.pop()
        if not is_begin:
            return at
        after = self._after(at, grammar.SILENT.get(token["name"], grammar.SILENT.get(name, 0)))
        if name in grammar.LISTS:
            depth = sum(inner.is_numbered for inner in self._lists)
            self._lists.append(LatexList(name, self._text[at:after], depth))
        if name in grammar.TABLES:
            self.flow.start("table")
            self._tables.append(LatexTable(self.flow, len(self._open)))
            self._tables[-1].begin_row()
        return after

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
        if word in grammar.ACCENTS and len(word) == 1 and (letter := _LETTER.match(self._text, at)):
            return self._accent(word, letter, token)
        spoken = grammar.SPOKEN.get(word) or self._commands.get(word) or grammar.UNITS.get(word)
        if spoken:
            self._write(spoken, token)
            return at + 2 if self._text.startswith("{}", at) else at
        if word in grammar.ELSEWHERE:
            what, why = grammar.ELSEWHERE[word]
            after = self._after(at, 1)
            self._lose(what, f"{self._text[at:after].split('{')[-1].strip('}')} {why}", token)
            return after
        if step := self._steps.get(word):
            return step(token, at)
        self._in_table(word, at) if self._tables else self._structure(word)
        if word == "cmidrule" and self._text.startswith("(", at):
            at = self._text.find(")", at) + 1 or at
        return self._after(at, grammar.SILENT.get(word, 0))

    def _definition(self, token: re.Match[str], at: int) -> int:
        match = grammar.DEFINED.match(self._text, token.start())
        return match.end() if match else at

    def _fraction(self, token: re.Match[str], at: int) -> int:
        fraction = grammar.FRACTION.match(self._text, token.start())
        if fraction:
            self._write(grammar.formula(fraction[0]), token)
        return fraction.end() if fraction else at

    def _item(self, token: re.Match[str], at: int) -> int:
        """Writes the number or label of an item; returns where its text begins."""
        self.flow.start("li")
        if label := _LABEL.match(self._text, at):
            self.read(*label.span(1))
            self.flow.data(" ")
            return label.end()
        self._write(f"{self._lists[-1].label() if self._lists else '-'} ", token)
        return at

    def _in_table(self, word: str, at: int) -> None:
        cells = _CELLS.match(self._text, at)
        if word == "multicolumn" and cells:
            self._tables[-1].columns = int(cells[1])
        elif word == "multirow" and cells:
            self._tables[-1].rows = int(cells[1])
        elif word in ("midrule", "endhead"):
            self.flow.tables[-1].end_head()
        elif word in ("tabularnewline", "cr") and (table := self._table()):
            table.next_row()
        elif word not in ("hline", "newline"):
            self._structure(word)

    def _structure(self, word: str) -> None:
        if word in self._levels:
            self._next = f"h{min(self._levels[word], 6)}"
        elif word in ("footnote", "footnotetext", "thanks"):
            self._next = ")"
        elif word == "bibitem" or word.startswith(("cite", "ref", "eqref", "autoref")):
            self._next = "]"
        elif word in ("caption", "par", "newpage", "clearpage", "maketitle"):
            self.flow.start("p")
        elif word == "textsuperscript":
            self._next = "^"
        elif word == "ang":
            self._next = "°"
        elif word in ("newline", "hline", "tabularnewline"):
            self.flow.start("tr")

    def _sign(self, token: re.Match[str], at: int) -> int:
        sign = token["sign"]
        if sign in grammar.ACCENTS and (letter := _LETTER.match(self._text, at)):
            return self._accent(sign, letter, token)
        if sign == "\\":
            if table := self._table():
                table.next_row()
            elif self._tables:
                self.flow.data(" ")
            else:
                self.flow.start("tr")
            return self._after(at + self._text.startswith("*", at), 0)
        if sign in "%&$#_{} ,;:!\n":
            self._write(" " if sign in " ,;:\n" else sign.replace("!", ""), token)
        return at

    def _accent(self, mark: str, letter: re.Match[str], token: re.Match[str]) -> int:
        base = letter[1] or letter[2] or letter[3] or ""
        self._write(unicodedata.normalize("NFC", base + grammar.ACCENTS[mark]), token)
        return letter.end()

    def _brace(self, brace: str, at: int) -> None:
        if brace == "{":
            self._open.append(self._next)
            if self._next.startswith("h"):
                self.flow.start(self._next)
            elif self._next == "^":  # not 4th
                number = self._text[at : at + 2].lstrip("-+−")
                self.flow.data("^" * number[:1].isdigit())
                self._open[-1] = ""
            elif self._next:
                self.flow.data({")": " (", "]": "["}.get(self._next, ""))
            self._next = ""
            return
        if self._open and (closed := self._open.pop()):
            self.flow.end(closed) if closed.startswith("h") else self.flow.data(closed)
        if self._text.startswith("{", at):
            self.flow.data(" ")  # between arguments of an unknown command
