"""Sources of RULER's texts: words, and background texts in which needles are hidden."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from random import Random
from uuid import UUID

from leporello.core.environment.extras import require
from leporello.core.errors import UserError
from leporello.loaders.files import load
from leporello.storage import to_path
from leporello.text.sentences import sentence_spans


@cache
def word_list(kind: str) -> tuple[str, ...]:
    """Returns words of a kind (`noun`, `adjective`, `verb`), sorted.

    Raises:
        UserError: The package `wonderwords` is not installed.
    """
    require("words of RULER's tasks", "wonderwords")
    text = (files("wonderwords") / "assets" / f"{kind}list.txt").read_text(encoding="utf-8")
    return tuple(sorted({line.strip() for line in text.splitlines() if line.strip()}))


def value(chance: Random, kind: str) -> str:
    """Returns a key or value of a needle: seven digits, a UUID, or an adjective and a noun."""
    if kind == "numbers":
        return str(chance.randint(10**6, 10**7 - 1))
    if kind == "uuids":
        return str(UUID(int=chance.getrandbits(128), version=4))
    return f"{chance.choice(word_list('adjective'))}-{chance.choice(word_list('noun'))}"


@dataclass(frozen=True)
class Background:
    """A text without line breaks, which is repeated if it is too short.

    Attributes:
        sentences: Sentences of the text.
        ends: Number of words up to the end of each sentence.
        sha256: SHA-256 of the text, in hexadecimal.
    """

    sentences: tuple[str, ...]
    ends: tuple[int, ...]
    sha256: str

    def first(self, words: int) -> list[str]:
        """Returns the sentences with the first `words` words; the last sentence may be cut."""
        repeats, remaining = divmod(words, self.ends[-1])
        complete = bisect_right(self.ends, remaining)
        over = remaining - (self.ends[complete - 1] if complete else 0)
        cut = [" ".join(self.sentences[complete].split(" ")[:over])] if over else []
        return [*self.sentences * repeats, *self.sentences[:complete], *cut]


@lru_cache(maxsize=4)
def background(path: Path | None, otherwise: str) -> Background:
    """Returns the texts of all files in a folder, in the order of their names.

    Args:
        path: Folder or file; None uses `otherwise`.
        otherwise: Default text.

    Raises:
        UserError: The folder does not exist, a file cannot be read, or all files are empty.
    """
    text = " ".join(map(_text, _files(path))) if path else otherwise
    text = re.sub(r"\s+", " ", text).strip()
    sentences = tuple(text[start:end].strip() for start, end in sentence_spans(text))
    if not sentences:
        raise UserError(f"background {path}: contains no words")
    ends = tuple(accumulate(len(sentence.split(" ")) for sentence in sentences))
    return Background(sentences, ends, hashlib.sha256(text.encode()).hexdigest())


def _text(path: Path) -> str:
    return load(path, path.name).text


def _files(path: Path) -> list[Path]:
    folder = to_path(str(path))
    texts = sorted(f for f in folder.rglob("*") if f.is_file() and not f.name.startswith("."))
    if not texts and not folder.is_file():
        raise UserError(f"background {path}: is neither a text file nor a folder of text files")
    return texts or [folder]
