"""Source code: the text as it stands, what it defines as sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import ClassVar

from leporello.core.records import Place
from leporello.loaders.files import Format
from leporello.loaders.text import decoded
from leporello.text.outline import Extracted, Heading, outline

__all__ = ["Code"]

_MOST_LINES = 200_000  # that are places
_DEFINES = re.compile(
    r"^(?P<indent>[ \t]*)(?:(?:export|default|pub(?:\([a-z]+\))?|public|private|protected|internal"
    r"|static|final|abstract|async|override|open|sealed|data|inline|unsafe|partial)[ \t]+)*"
    r"(?P<what>(?:class|def|function\*?|func|fn|interface|trait|struct|enum|impl|module|object"
    r"|protocol|namespace|record|sub)[ \t]+[^\s({:;<=]+)",
    re.M,
)
_TAB = 4  # columns


@dataclass(frozen=True)
class Code(Format):
    """Source code: the text as it stands, its classes and functions as sections."""

    suffixes: ClassVar[tuple[str, ...]] = (
        *(
            ".py",
            ".pyi",
            ".js",
            ".mjs",
            ".ts",
            ".tsx",
            ".jsx",
            ".java",
            ".kt",
            ".scala",
            ".c",
            ".h",
        ),
        *(".cc", ".cpp", ".hpp", ".cs", ".go", ".rs", ".rb", ".php", ".swift", ".lua", ".pl", ".r"),
        *(".sh", ".bash", ".sql", ".hs", ".ex", ".jl", ".dart", ".vue", ".css", ".scss"),
    )

    @staticmethod
    def recognises(head: bytes, path: Path) -> bool:  # noqa: ARG004 -- the content says it
        """Returns whether the file says which program runs it."""
        return head.startswith(b"#!/")

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the text; places are named `line 120`.

        Raises:
            UserError: It is no text.
        """
        raw = decoded(data, path)
        text = raw.text
        ends = [*accumulate(map(len, text.splitlines(keepends=True)))][:_MOST_LINES]
        spans = zip([0, *ends], ends, strict=False)
        places = (Place(f"line {n}", *span) for n, span in enumerate(spans, 1))
        sections = outline([*_definitions(text)], len(text))
        return replace(raw, sections=sections, places=(*places,))


def _definitions(text: str) -> Iterator[Heading]:
    for found in _DEFINES.finditer(text):
        indent = len(found["indent"].expandtabs(_TAB))
        yield Heading(" ".join(found["what"].split()), found.start(), 1 + indent)
