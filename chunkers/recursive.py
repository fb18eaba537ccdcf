"""Chunks at the coarsest separators that keep them small enough: LangChain's, with exact spans.

LangChain's splitter returns strings, looks for them in the text afterwards, and finds the wrong
ones where texts repeat. Its lengths are functions of strings, which know nothing of where a string
stands, so that each piece would have to be tokenised again. Here it splits a shadow of the text
instead: one character for each of the document's, which says whether a piece may begin there, by
which separators, and how many tokens begin there. What it returns adds up to the whole shadow, so
lengths alone say where chunks stand, and counting tokens is counting characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, TypeAlias

from leporello import Document, Span
from leporello.chunkers.packing import Units, check_overlap, token_units
from leporello.core.environment.extras import require
from leporello.core.protocols import Count, ModelSource, Positive

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Language: TypeAlias = Literal[
    "auto", "c", "cobol", "cpp", "csharp", "elixir", "go", "haskell", "html", "java", "js",
    "kotlin", "latex", "lua", "markdown", "php", "powershell", "proto", "python", "r", "rst",
    "ruby", "rust", "scala", "sol", "swift", "ts", "visualbasic6",
]  # fmt: skip
# What a file's suffix says that it is written in.
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
_MOST = 60  # separators, each a bit of an integer
_SHADOWS = 0x10000  # the first shadow character; all lie beyond the surrogates


@dataclass(frozen=True)
class Recursive:
    r"""Splits at the first separator that occurs, and what is still too long at the next one.

    LangChain's `RecursiveCharacterTextSplitter`, each separator kept at the end of its piece, or,
    of a language, at the beginning of the next one. No more than `size` of the document's tokens
    start inside a chunk, except where a single character has more. No token is divided.

    Attributes:
        size: Number of tokens a chunk at most, those of the overlap included.
        overlap: Number of tokens of the text before it that a chunk begins with; fewer where it
            would exceed `size`.
        tokenizer: Tokenizer that counts: `words`, or a Hugging Face tokenizer by path or hub id.
        separators: Plain strings, coarse ones first; `""` stands for any place between tokens,
            which is tried last in any case.
        language: Language whose separators LangChain knows (classes and functions begin pieces),
            instead of `separators`; `auto` takes it from the suffix of the document's id, which is
            its file's name, and `separators` where that tells none.
    """

    size: Positive = 200
    overlap: Count = 0
    tokenizer: ModelSource = "words"
    separators: tuple[str, ...] = ("\n\n", "\n", ". ", " ", "")
    language: Language | None = None

    def __post_init__(self) -> None:
        check_overlap(self.overlap, self.size)
        if len(self.separators) > _MOST:
            raise ValueError(
                f"separators: {len(self.separators)} are given, and {_MOST} is the most"
            )

    def check_files(self, data: str) -> None:
        """Raises `UserError` where a task is known and LangChain is not installed."""
        if data:
            require("the chunker Recursive", "langchain_text_splitters")

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the spans in document order."""
        import numpy as np

        require("the chunker Recursive", "langchain_text_splitters")

        pieces = token_units(document, self.tokenizer)
        if not pieces:
            return iter(())
        shadow = _Shadow.cast(len(document.text), pieces, [*self._borders(document)])
        ends = shadow.split(self.size - self.overlap)
        cuts = np.unique(np.searchsorted(pieces.starts, ends)).tolist()
        starts = [self._start(pieces, first, end) for first, end in pairwise(cuts)]
        following = [*starts[1:], len(pieces)]  # a chunk that begins like the next is inside it
        runs = zip(starts, cuts[1:], following, strict=True)
        return (pieces.run(start, end) for start, end, after in runs if start < after)

    def _start(self, pieces: Units, first: int, end: int) -> int:
        """Returns where the run of units begins once it repeats what is before it."""
        reached = pieces.start_of_run(end - 1, self.size)
        return min(first, max(reached, pieces.back(first, self.overlap)))

    def _borders(self, document: Document) -> Iterator[list[int]]:
        """Yields where pieces may begin by each separator, coarse ones first."""
        suffix = PurePath(document.id).suffix.lower()
        language = LANGUAGES.get(suffix) if self.language == "auto" else self.language
        separators = _separators(language) if language else self.separators
        for separator in separators[: (*separators, "").index("")]:
            pattern = separator if language else re.escape(separator)
            found = re.finditer(pattern, document.text)
            yield [match.start() if language else match.end() for match in found]


def _separators(language: str) -> Sequence[str]:
    """Returns a language's separators, regular expressions."""
    from langchain_text_splitters import Language, RecursiveCharacterTextSplitter

    return RecursiveCharacterTextSplitter.get_separators_for_language(Language(language))


@dataclass(frozen=True, slots=True)
class _Shadow:
    """A text as the splitter sees it.

    Attributes:
        text: Text as long as the document's.
        weights: Number of tokens that begin at each shadow character; those of none left out.
        patterns: Regular expressions that find in the shadow where pieces may begin: by each
            separator, then at any token.
    """

    text: str
    weights: dict[str, int]
    patterns: list[str]

    @classmethod
    def cast(cls, length: int, pieces: Units, borders: Sequence[Sequence[int]]) -> _Shadow:
        """Returns the shadow of a text; a shadow character is (weight, set of separators)."""
        import numpy as np

        marks = np.zeros(length + 1, dtype=np.int64)  # a bit a separator
        for number, positions in enumerate(borders):
            marks[positions] |= 1 << number
        sets, symbols = np.unique(marks[:-1], return_inverse=True)
        weights, ranks = _weights(pieces, length)
        shadows = (_SHADOWS + ranks * len(sets) + symbols).astype(np.uint32)
        codes = _SHADOWS + np.arange(len(weights) * len(sets)).reshape(-1, len(sets))
        of_separator = (codes[:, (sets >> n & 1).astype(bool)] for n in range(len(borders)))
        return cls(
            text=shadows.tobytes().decode("utf-32-le"),
            weights={
                chr(code): weight
                for code in np.unique(shadows)
                if (weight := weights[(code - _SHADOWS) // len(sets)])
            },
            patterns=[
                *(_one_of(found) for found in of_separator if found.size),
                _one_of(codes[1:]),  # any weight but none
            ],
        )

    def split(self, size: int) -> list[int]:
        """Returns where pieces of up to `size` tokens end, 0 first."""
        from langchain_text_splitters import RecursiveCharacterTextSplitter

        token = len(self.text) + 2  # outweighs all characters together
        weights = [(character, token * weight) for character, weight in self.weights.items()]

        def length(piece: str) -> int:
            """Counts tokens; characters too, since the splitter repeats pieces of no length."""
            total = len(piece)
            for character, weight in weights:
                total += weight * piece.count(character)
            return total

        splitter = RecursiveCharacterTextSplitter(
            separators=self.patterns,
            is_separator_regex=True,
            keep_separator="start",
            strip_whitespace=False,
            chunk_size=token * (size + 1) - 1,
            chunk_overlap=0,
            length_function=length,
        )
        ends = list(accumulate(map(len, splitter.split_text(self.text)), initial=0))
        assert ends[-1] == len(self.text), "the splitter lost characters"
        return ends


def _weights(pieces: Units, length: int) -> tuple[list[int], NDArray[np.intp]]:
    """Returns the numbers of tokens that occur, and each character's rank among them."""
    import numpy as np

    tokens = np.zeros(length, dtype=np.int64)
    tokens[pieces.starts] = np.diff(pieces.before, append=pieces.through[-1:])
    weights = np.unique(np.append(tokens, 0))  # few, where sorting all for the ranks takes long
    return weights.tolist(), np.searchsorted(weights, tokens)


def _one_of(codes: NDArray[np.int64]) -> str:
    """Returns the regular expression for a place before one of these characters."""
    return f"(?=[{''.join(map(chr, codes.ravel().tolist()))}\U0010ffff])"  # which no shadow has
