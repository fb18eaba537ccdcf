"""LaTeX: text without comments and commands, with the source of mathematics."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from leporello.core.records import Document, Loss
from leporello.loaders.files import Format
from leporello.loaders.markup.latex_grammar import GROUP
from leporello.loaders.markup.latex_reader import LatexReader
from leporello.loaders.text import decoded


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
        text = raw.text.replace("\r\n", "\n")
        begin, end = text.find("\\begin{document}"), text.find("\\end{document}")
        start = begin + len("\\begin{document}") if begin >= 0 else 0
        reader = LatexReader(text, {})
        reader.define()
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
            ("text not printed", "is after the end of the document", len(after)),
        )
        reader.flow.losses += (
            Loss(what, why, "", size, furniture=True) for what, why, size in left_out if size
        )
        extracted = reader.flow.extracted()
        return replace(extracted, losses=(*raw.losses, *extracted.losses), notes=raw.notes)
