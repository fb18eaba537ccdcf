"""Texts that stay as they are written: source code, settings and reStructuredText."""

import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from pathlib import Path

from leporello.core.records import Document, Loss
from leporello.loaders.files import Format
from leporello.loaders.numbering import Counter
from leporello.loaders.text import decoded, line_places, line_starts
from leporello.text.headings.lines import TextLines, underlined
from leporello.text.outline import outline

_SUFFIXES = (
    ".py .pyi .pyx .rb .ex .exs .jl .lua .r .sh .bash .zsh .pl .pm .js .mjs .cjs .jsx .ts .tsx"
    " .java .kt .kts .scala .c .h .cc .cpp .cxx .hpp .hh .cs .go .rs .swift .php .dart .m .mm"
    " .groovy .proto .zig .sql .toml .ini .cfg .conf .yaml .yml .hs .ml .clj .lisp .el .f90 .pas"
    " .vb .ps1 .css .scss .tcl .asm .s .cmake .vue"
)


@dataclass(frozen=True)
class Code(Format):
    """Source code and settings: the unchanged text, with lines as places."""

    suffixes = (*_SUFFIXES.split(),)
    begins = re.compile(rb"#!/")

    def extract(self, data: bytes, path: Path) -> Document:
        """Returns the text; places are `line 120`."""
        raw = decoded(data, path)
        return replace(raw, title=path.name, places=line_places(raw.text))


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

    suffixes = (".rst", ".rest")

    def extract(self, data: bytes, path: Path) -> Document:
        """Returns the text with its sections; places are `line 120`.

        No directive is run: files that directives include are reported as losses.
        """
        raw = decoded(data, path)
        raw = replace(raw, text=_numbered(raw.text))
        lines, styles = TextLines(raw.text), dict[str, int]()  # of underlines, by their first use
        titles = (underlined(lines, line, styles) for line in range(len(lines)))
        headings = [heading for heading in titles if heading]
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
