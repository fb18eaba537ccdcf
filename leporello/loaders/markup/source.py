"""Texts that stay as they are written: source code, settings and reStructuredText."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from leporello.core.records import Loss
from leporello.loaders.files import Format
from leporello.loaders.numbering import Counter
from leporello.loaders.text import decoded, line_places, line_starts
from leporello.text.outline import Extracted, Heading, outline

_STRINGS = r'"(?:\\.|[^"\\\n]){0,999}+"'
# Comments and multi-line strings, whose words define nothing; the end of the file ends them.
_HASHED = rf'"""(?:.*?)(?:"""|\Z)|\'\'\'(?:.*?)(?:\'\'\'|\Z)|{_STRINGS}|#[^\n]*'
_SLASHED = rf"/\*.*?(?:\*/|\Z)|{_STRINGS}|`[^`]*(?:`|\Z)|//[^\n]*"
_MODIFIERS = (
    "export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\\(\\w+\\))?"
    "|unsafe|extern|const|sealed|partial|override|open|data|inline|virtual|declare|case|local"
    "|typedef|constexpr|readonly|suspend|mutable"
)
_KINDS = (
    "class|interface|struct|enum(?: class)?|union|trait|impl(?:<[^>\n]*>)?|fn|fun|func|function"
    "|namespace|module|mod|record|object|protocol|extension|actor|sub|def|defp|defmodule|macro"
)
_KEYWORDS = "if|for|while|switch|catch|return|else|do|new|throw|delete|sizeof|elif|with|match|when"
_BRACED = (
    rf"^([ \t]*)(?:(?:{_MODIFIERS})[ \t]+)*(?:"
    rf"(?:{_KINDS})[ \t]+(?:\([^)\n]*\)[ \t]*)?([\w$][\w$:.!?]*)"  # class A, func (t *T) F
    r"|(?:let|var|const)[ \t]+(\w+)[ \t]*=[ \t]*(?:async[ \t]*)?(?:function\b|[\w(][^=\n;]*=>)"
    rf"|(?!(?:{_KEYWORDS})\b)(?:[\w:<>,\[\].]+[ \t*&]+){{1,5}}(?!(?:{_KEYWORDS})\b)(~?\w[\w:~]*)"
    r"\((?=[^;\n]*$)"  # int f(…
    rf"|(?!(?:{_KEYWORDS})\b)(\w+)[ \t]*\([^;\n]*\{{[ \t]*$)"  # f(…) {
)
_RULES = {
    ".py .pyi .pyx": (r"^([ \t]*)(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", _HASHED),
    ".rb .ex .exs .jl .lua .r .sh .bash .zsh .pl .pm": (
        rf"^([ \t]*)(?:(?:{_MODIFIERS})[ \t]+)*(?:{_KINDS})[ \t]+([\w.:!?]+)"
        r"|^([ \t]*)(\w[\w.]*)[ \t]*(?:\(\)[ \t]*\{|(?:<-|=)[ \t]*function\b)", _HASHED),
    ".js .mjs .cjs .jsx .ts .tsx .java .kt .kts .scala .c .h .cc .cpp .cxx .hpp .hh .cs .go .rs"
    " .swift .php .dart .m .mm .groovy .proto .zig": (_BRACED, _SLASHED),
    ".sql": (
        r"(?i)^([ \t]*)create[ \t]+(?:or[ \t]+replace[ \t]+)?(?:\w+[ \t]+)??(?:table|view|function"
        r"|procedure|trigger|index)[ \t]+(?:if[ \t]+not[ \t]+exists[ \t]+)?([\w.\"`]+)", _SLASHED),
    ".toml .ini .cfg .conf": (r"^()\[++([^\]\n]++)\]+", r"\Z"),
    ".yaml .yml": (r"^()([\w.-]+):(?=\s)", r"\Z"),
    ".hs .ml .clj .lisp .el .f90 .pas .vb .ps1 .css .scss .tcl .asm .s .cmake .vue": (r"\Z", r"\Z"),
}  # fmt: skip
_OF = {
    suffix: tuple(re.compile(rule, flags) for rule, flags in zip(rules, (re.M, re.S), strict=True))
    for suffixes, rules in _RULES.items()
    for suffix in suffixes.split()
}


@dataclass(frozen=True)
class Code(Format):
    """Source code and settings: the unchanged text, with definitions as sections by rules."""

    suffixes: ClassVar[tuple[str, ...]] = (*_OF,)
    begins: ClassVar[re.Pattern[bytes]] = re.compile(rb"#!/")

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the text; places are `line 120`, sections are definitions."""
        raw = decoded(data, path)
        headings = [*_definitions(raw.text, path.suffix.lower())]
        return replace(
            raw,
            title=path.name,
            sections=outline(headings, len(raw.text)),
            places=line_places(raw.text),
        )


def _definitions(text: str, suffix: str) -> Iterator[Heading]:
    """Yields definitions; a definition is inside those above it with less indentation."""
    run_by = text.partition("\n")[0] if text.startswith("#!/") else ""
    suffix = (".py" if "python" in run_by else ".sh") if run_by else suffix
    rule, comments = _OF.get(suffix, _OF[".hs"])
    open_: list[int] = []
    for match in rule.finditer(comments.sub(_blanked, text)):
        groups = [group for group in match.groups() if group is not None]
        indent, name = len(groups[0].expandtabs(4)), groups[-1]
        while open_ and open_[-1] >= indent:
            open_.pop()
        open_.append(indent)
        yield Heading(name, match.start(), len(open_))


def _blanked(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0]) if "\n" in match[0] else match[0]


_HEADING = re.compile(
    r"""
    (?:(?<![^\n])|(?<=\n\n))              # at the beginning of a line
    (?:(?P<over>([!-/:-@\[-`{-~])\2{2,})[ \t]*\n[ \t]*)?
    (?P<title>[^\s](?:.*[^ \t\n])?)[ \t]*+\n
    (?P<under>([!-/:-@\[-`{-~])\5{1,})[ \t]*(?:\n|\Z)
    """,
    re.VERBOSE,
)
_LEAST = 4  # characters of an underline that is shorter than its title
_ELSEWHERE = re.compile(
    r"^[ \t]*\.\. (?:\|.*\| )?(image|figure|include|literalinclude)::(.*)", re.M
)
_ITEM = re.compile(r"(?P<before>[ \t]*\(?)(?P<mark>#|\d{1,9}|[a-zA-Z])(?P<after>[.)][ \t])")
_LITERAL = re.compile(
    r"::\s*$|^\s*\.\. (?:code|code-block|sourcecode|parsed-literal|raw|math|highlight)::"
)
_WHY = {"image": "image", "figure": "image", "include": "included file"}


@dataclass(frozen=True)
class RestructuredText(Format):
    """reStructuredText: the text as written, with headings ranked by first use of an underline.

    Items that are marked `#.` get their numbers.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".rst", ".rest")

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the text with its sections; places are `line 120`.

        No directive is run: files that directives include are reported as losses.
        """
        raw = decoded(data, path)
        raw = replace(raw, text=_numbered(raw.text))
        headings = [*_headings(raw.text)]
        starts = line_starts(raw.text)
        lost = (
            Loss(_WHY.get(m[1], "included file"), f"{m[2].strip()} is another file; load it too",
                 f"line {bisect_right(starts, m.start())}")
            for m in _ELSEWHERE.finditer(raw.text)
        )  # fmt: skip
        return replace(
            raw,
            title=headings[0].title if headings else "",
            sections=outline(headings, len(raw.text)),
            places=line_places(raw.text),
            losses=(*raw.losses, *lost),
        )


def _numbered(text: str) -> str:
    """Returns the text with the numbers of items that are numbered automatically."""
    if "#." not in text and "#)" not in text:
        return text
    lines = text.split("\n")
    lists: dict[tuple[int, str], Counter] = {}  # by indentation and signs around numbers
    literal: int | None = None  # indentation before a literal block
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if indent == len(line) or (literal is not None and indent > literal):
            continue
        literal = indent if _LITERAL.search(line) else None
        item = _ITEM.match(line)
        key = (indent, f"{item['before']}{item['after']}".strip() if item else "")
        lists = {k: c for k, c in lists.items() if k[0] < indent or k == key}
        if item and item["mark"] == "#":
            mark = lists.setdefault(key, Counter()).count().removesuffix(".")
            lines[number] = f"{item['before']}{mark}{item['after']}{line[item.end() :]}"
        elif item and item["mark"].isdigit():
            lists[key] = Counter(int(item["mark"]) + 1)
        elif item:
            form = "a" if item["mark"].islower() else "A"
            lists[key] = Counter(ord(item["mark"].lower()) - ord("a") + 2, form)
    return "\n".join(lines)


def _headings(text: str) -> Iterator[Heading]:
    """Yields headings; underlines rank by their first use."""
    levels: dict[tuple[str, bool], int] = {}
    text, at = text.replace("\r\n", " \n"), 0  # of the same length
    while match := _HEADING.search(text, at):
        at, over, under = match.end(), match["over"], match["under"]
        is_closed = not over or over == under
        if (
            not is_closed
            or set(match["title"]) == {under[0]}
            or (len(under) < min(len(match["title"]), _LEAST))
        ):
            at = match.start("title") if over else match.start("under")
            continue
        level = levels.setdefault((under[0], bool(over)), len(levels) + 1)
        yield Heading(match["title"], match.start(), level)
