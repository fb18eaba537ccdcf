"""What RULER's texts are made of: words, and the texts in which needles are hidden."""

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
        UserError: The package that has them is not installed.
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
    """A text without line breaks, read again from its beginning where it is too short.

    Attributes:
        sentences: Its sentences.
        ends: Number of words up to each sentence's end.
        sha256: SHA-256 of all of them, in hexadecimal.
    """

    sentences: tuple[str, ...]
    ends: tuple[int, ...]
    sha256: str

    def first(self, words: int) -> list[str]:
        """Returns the sentences of the first words, of which the last may be cut."""
        rounds, rest = divmod(words, self.ends[-1])
        whole = bisect_right(self.ends, rest)
        over = rest - (self.ends[whole - 1] if whole else 0)
        cut = [" ".join(self.sentences[whole].split(" ")[:over])] if over else []
        return [*self.sentences * rounds, *self.sentences[:whole], *cut]


@lru_cache(maxsize=4)
def background(path: Path | None, otherwise: str) -> Background:
    """Returns the texts of all files in a folder, in the order of their names.

    Args:
        path: Folder, or a file; None takes `otherwise`.
        otherwise: Text instead of a folder.

    Raises:
        UserError: There is no such folder, a file cannot be read, or there is no word in any.
    """
    text = " ".join(map(_text, _files(path))) if path else otherwise
    text = re.sub(r"\s+", " ", text).strip()
    sentences = tuple(text[start:end].strip() for start, end in sentence_spans(text))
    if not sentences:
        raise UserError(f"background {path}: no file in it has a word")
    ends = tuple(accumulate(len(sentence.split(" ")) for sentence in sentences))
    return Background(sentences, ends, hashlib.sha256(text.encode()).hexdigest())


def _text(path: Path) -> str:
    return load(path, path.name).text


def _files(path: Path) -> list[Path]:
    folder = to_path(str(path))
    found = sorted(f for f in folder.rglob("*") if f.is_file() and not f.name.startswith("."))
    if not found and not folder.is_file():
        raise UserError(f"background {path}: is no folder of texts, and no text")
    return found or [folder]
