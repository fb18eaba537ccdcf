"""Texts that stay as they are written: source code, settings and reStructuredText."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from leporello.core.records import Document
from leporello.loaders.files import Format
from leporello.loaders.text import decoded, line_places
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


@dataclass(frozen=True)
class RestructuredText(Format):
    """reStructuredText: the text as written, with headings ranked by first use of an underline."""

    suffixes = (".rst", ".rest")

    def extract(self, data: bytes, path: Path) -> Document:
        """Returns the text with its sections; places are `line 120`; no directive is run."""
        raw = decoded(data, path)
        lines, styles = TextLines(raw.text), dict[str, int]()  # of underlines, by their first use
        titles = (underlined(lines, line, styles) for line in range(len(lines)))
        headings = [heading for heading in titles if heading]
        return replace(
            raw,
            title=headings[0].title if headings else "",
            sections=outline(headings, len(raw.text)),
            places=line_places(raw.text),
        )
