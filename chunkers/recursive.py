"""Chunks at the coarsest separators that keep them small enough: LangChain's, with exact spans."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from typing import Literal, TypeAlias

from leporello import Document, Span
from leporello.chunkers.packing import Units, check_overlap, token_units
from leporello.core.environment.extras import require
from leporello.core.protocols import Count, ModelSource, Positive

Language: TypeAlias = Literal[
    "auto", "c", "cobol", "cpp", "csharp", "elixir", "go", "haskell", "html", "java", "js",
    "kotlin", "latex", "lua", "markdown", "php", "powershell", "proto", "python", "r", "rst",
    "ruby", "rust", "scala", "sol", "swift", "ts", "visualbasic6",
]  # fmt: skip
# Languages by the suffix of a file.
LANGUAGES: Mapping[str, str] = {
    f".{suffix}": language
    for language, suffixes in {
        "c": "c h", "cobol": "cbl cob cobol", "cpp": "cc cpp cxx hh hpp hxx", "csharp": "cs",
        "elixir": "ex exs", "go": "go", "haskell": "hs", "html": "htm html xhtml", "java": "java",
        "js": "cjs js jsx mjs", "kotlin": "kt kts", "latex": "latex sty tex", "lua": "lua",
        "markdown": "markdown md", "php": "php", "powershell": "ps1 psm1", "proto": "proto",
        "python": "py pyi pyw", "r": "r", "rst": "rest rst", "ruby": "rb", "rust": "rs",
        "scala": "sc scala", "sol": "sol", "swift": "swift", "ts": "cts mts ts tsx",
        "visualbasic6": "bas frm vb",
    }.items()
    for suffix in suffixes.split()
}  # fmt: skip
_FEATURE = "the language of the chunker Recursive"


@dataclass(frozen=True)
class Recursive:
    r"""Splits at the first separator that occurs, and pieces that are too long at the next one.

    LangChain's `RecursiveCharacterTextSplitter`. A separator stays at the end of its piece; the
    separator of a language, at the beginning of the next piece. At most `size` of the document's
    tokens start within a chunk, unless a single character has more. No token is divided.

    Attributes:
        size: Maximum number of tokens per chunk, including the overlap.
        overlap: Number of tokens of the text before a chunk that the chunk repeats; fewer if it
            would exceed `size`.
        tokenizer: Tokenizer that counts: `words`, or a Hugging Face tokenizer by path or hub id.
        separators: Plain strings, coarse ones first; `""` is any place between tokens, which is
            always tried last.
        language: Language whose separators LangChain defines (classes and functions begin
            pieces), instead of `separators`; `auto` takes it from the suffix of the document's id,
            which is its file's name, and uses `separators` for an unknown suffix.
    """

    size: Positive = 200
    overlap: Count = 0
    tokenizer: ModelSource = "words"
    separators: tuple[str, ...] = ("\n\n", "\n", ". ", " ", "")
    language: Language | None = None

    def __post_init__(self) -> None:
        check_overlap(self.overlap, self.size)

    def check_files(self, data: str) -> None:
        """Raises `UserError` if a task is given, and LangChain is not installed."""
        if data and self.language:
            require(_FEATURE, "langchain_text_splitters")

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the spans in document order."""
        import numpy as np

        pieces = token_units(document, self.tokenizer)
        if not pieces:
            return iter(())
        ends = _ends(pieces, [*self._borders(document)], self.size - self.overlap)
        cuts = np.unique(np.searchsorted(pieces.starts, [0, *ends])).tolist()
        starts = [self._start(pieces, first, end) for first, end in pairwise(cuts)]
        following = [*starts[1:], len(pieces)]  # a chunk with the start of the next is inside it
        runs = zip(starts, cuts[1:], following, strict=True)
        return (pieces.run(start, end) for start, end, after in runs if start < after)

    def _start(self, pieces: Units, first: int, end: int) -> int:
        """Returns the first unit of a run, including the overlap with the text before it."""
        reached = pieces.start_of_run(end - 1, self.size)
        return min(first, max(reached, pieces.back(first, self.overlap)))

    def _borders(self, document: Document) -> Iterator[list[int]]:
        """Yields the offsets at which pieces may begin, per separator, coarse ones first."""
        suffix = PurePath(document.id).suffix.lower()
        language = LANGUAGES.get(suffix) if self.language == "auto" else self.language
        separators = _separators(language) if language else self.separators
        for separator in separators[: (*separators, "").index("")]:
            pattern = separator if language else re.escape(separator)
            matches = re.finditer(pattern, document.text)
            yield [match.start() if language else match.end() for match in matches]


def _separators(language: str) -> Sequence[str]:
    """Returns a language's separators, which are regular expressions."""
    require(_FEATURE, "langchain_text_splitters")
    from langchain_text_splitters import Language, RecursiveCharacterTextSplitter

    return RecursiveCharacterTextSplitter.get_separators_for_language(Language(language))


def _ends(pieces: Units, borders: Sequence[Sequence[int]], size: int) -> Iterator[int]:
    """Yields the ends of runs of at most `size` tokens, except where no border divides a run."""
    import numpy as np

    before = np.append(pieces.before, pieces.through[-1:])
    with_tokens = pieces.starts[np.diff(pieces.through, prepend=0) > 0].tolist()
    levels = [*filter(None, borders), with_tokens]

    def split(start: int, end: int, level: int) -> Iterator[int]:
        if level == len(levels):
            yield end
            return
        between = slice(bisect_right(levels[level], start), bisect_left(levels[level], end))
        places = [start, *levels[level][between], end]
        counts = before[pieces.starts.searchsorted(places)].tolist()
        run = counts[0]  # tokens before the run that grows
        for (first, at), (last, to) in pairwise(zip(places, counts, strict=True)):
            if to - at > size:
                yield first
                yield from split(first, last, level + 1)
                run = to
            elif to - run > size:
                yield first
                run = at
        yield end

    return split(0, len(pieces.text), 0)
