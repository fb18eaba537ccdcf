"""NoLiMa (Modarressi et al. 2025): needles that share no words with their questions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from leporello.core.errors import UserError
from leporello.core.files import sha256
from leporello.core.official_prompt import OfficialPrompt
from leporello.core.protocols import ModelSource, Positive
from leporello.core.records import JSON, Document, Example, Span
from leporello.tasks.long_context.templates import Generated, data_of
from leporello.tasks.official.archives import Archive, data_directory, present
from leporello.text.tokens import tokenizer

_BOOKS_FOLDER = ("haystack", "rand_shuffle")
_BOOKS = tuple(f"rand_book_{number}.txt" for number in range(1, 6))
_SOURCE = "https://huggingface.co/datasets/amodaresi/NoLiMa"
_CHARACTER = "{CHAR}"
_SEED = 42
_DEPTHS = 26  # from the beginning to the end of a text, as in the authors' configs


_Test: TypeAlias = tuple[str, str, str, tuple[str, ...], tuple[str, ...], int]


@dataclass(frozen=True)
class NoLiMa(Generated):
    """A set of needles of NoLiMa at one length, in the official books.

    Each needle is hidden at each of 26 depths of each book, at the first line break from there on.
    The authors' order of books, which chooses the names of characters, depends on the file system;
    here `rand_book_1.txt` is the first.

    Attributes:
        name: Name of the set.
        length: Number of tokens of the book around the needle.
        tokenizer: Tokenizer that counts them: `words`, or as in the paper the reader's.
        data: Directory of the benchmarks' files, with `nolima/needlesets` and
            `nolima/haystack/rand_shuffle`. None means `LEPORELLO_DATA` or `data`.
    """

    benchmark: ClassVar[str] = "nolima"
    metrics: ClassVar[tuple[str, ...]] = ("nolima", "recall")

    name: Literal["needle_set", "needle_set_hard", "needle_set_ONLYDirect"] = "needle_set"
    length: Positive = 4000
    tokenizer: ModelSource = "words"
    data: Path | None = None

    def __len__(self) -> int:
        return len(_BOOKS) * len(self._tests) * _DEPTHS

    def _sources(self) -> list[JSON]:
        files = [self._file(*_BOOKS_FOLDER, book) for book in _BOOKS]
        return [*map(sha256, files), sha256(self._file("needlesets", f"{self.name}.json"))]

    def example(self, number: int) -> Example:
        """Returns an example by its number from 0."""
        import numpy as np

        tests = self._tests
        book, remainder = divmod(number, len(tests) * _DEPTHS)
        step = remainder % _DEPTHS
        name, needle, question, answers, characters, seed = tests[remainder // _DEPTHS]
        if characters:
            # Seeded as in the authors' code, which draws a name at each depth in turn.
            chance = np.random.RandomState(_SEED + seed + book)
            answers = tuple(str(chance.choice(characters)) for _ in range(step + 1))[-1:]
            needle, question = (t.replace(_CHARACTER, answers[0]) for t in (needle, question))
        text, start = self._hidden(book, needle, step / (_DEPTHS - 1))
        before, _, after = data_of("nolima")["nolima"]["prompt"].partition("{context}")
        return Example(
            identifier := f"{self.name}-{name}-{book + 1}-{step}",
            Document(identifier, text),
            question=question,
            instruction=after.partition("Question:")[0].strip(),
            references=answers,
            evidence=(Span(start, start + len(needle)),),
            metadata=OfficialPrompt(before, query=after.format(input=question)).metadata(),
        )

    @property
    def _tests(self) -> list[_Test]:
        return _tests(self._file("needlesets", f"{self.name}.json"))

    def _file(self, *parts: str) -> Path:
        path = data_directory(self.data).joinpath(self.benchmark, *parts)
        return present(self.benchmark, [Archive(path)], _SOURCE).path

    def _hidden(self, book: int, needle: str, depth: float) -> tuple[str, int]:
        """Returns a part of a book with the needle at a depth, and where the needle starts."""
        path = self._file(*_BOOKS_FOLDER, _BOOKS[book])
        text, ends, breaks = _tokenized(path, self.tokenizer)
        place = next((i for i in breaks if i >= depth * (self.length + 1)), len(ends))
        first = place - round(self.length * depth)
        if first + self.length > len(ends) or place >= len(ends):
            raise UserError(f"{path}: has {len(ends):,} tokens, too few for length={self.length}")
        lines = text[ends[first - 1] if first else 0 : ends[place]].rpartition("\n")[0]
        after = text[ends[place] : ends[max(place, first + self.length - 1)]]
        return f"{lines} {needle}\n{after}", len(lines) + 1


@lru_cache(maxsize=8)
def _tokenized(path: Path, name: str) -> tuple[str, list[int], list[int]]:
    """Returns a book, the ends of its tokens, and the tokens with line breaks, including 0."""
    text = path.read_text(encoding="utf-8")
    ends = tokenizer(name).ends(text)[0]
    spans = enumerate(pairwise([0, *ends]))
    return text, ends, [0, *(i for i, (start, end) in spans if i and "\n" in text[start:end])]


@lru_cache(maxsize=8)
def _tests(path: Path) -> list[_Test]:
    """Returns name, needle, question, answers, characters and seed of each test of a set."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        return [_test(e, kind, n) for e in entries for kind in e["questions"] for n in e["tests"]]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        fault = f"field {error} is missing" if isinstance(error, KeyError) else str(error)
        raise UserError(f"{path}: is not a set of NoLiMa's needles: {fault}") from None


def _test(entry: Mapping[str, Any], kind: str, name: str) -> _Test:
    needle, question = entry["needle"], entry["questions"][kind]
    for number, argument in enumerate(entry["tests"][name]["input_args"], 1):
        needle = needle.replace(f"{{{number}}}", argument)
        question = question.replace(f"{{{number}}}", argument)
    answers = tuple(entry["tests"][name].get("gold_answers") or ())
    characters = tuple(entry["character_set"]) if _CHARACTER in needle else ()
    if not (characters or answers):
        raise ValueError(f"test {entry['id']}_{name} has no gold_answers")
    seed = int(entry["id"][:4])
    return f"{entry['id']}_{name}_{kind}", needle, question, answers, characters, seed
