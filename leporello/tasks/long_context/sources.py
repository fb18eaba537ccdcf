"""Sources of RULER's texts: words, backgrounds of needles, and questions of SQuAD and HotpotQA."""

import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from leporello.core.environment.extras import require
from leporello.core.errors import UserError
from leporello.core.files import Stamp, stamp
from leporello.loaders.files import load
from leporello.storage import to_path
from leporello.text.sentences import sentence_spans


@cache
def word_list(kind: str) -> tuple[str, ...]:
    """Returns words of a kind (`noun`, `adjective`, `verb`), sorted; needs `wonderwords`."""
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
    """A text without line breaks, which is repeated if it is too short."""

    sentences: tuple[str, ...]
    ends: tuple[int, ...]  # number of words up to the end of each sentence
    sha256: str  # SHA-256 of the text, in hexadecimal

    def first(self, words: int) -> list[str]:
        """Returns the sentences with the first `words` words; the last sentence may be cut."""
        repeats, remaining = divmod(words, self.ends[-1])
        complete = bisect_right(self.ends, remaining)
        over = remaining - (self.ends[complete - 1] if complete else 0)
        cut = [" ".join(self.sentences[complete].split(" ")[:over])] if over else []
        return [*self.sentences * repeats, *self.sentences[:complete], *cut]


@lru_cache(maxsize=4)
def background(path: Path | None, otherwise: str) -> Background:
    """Returns the texts of all files in a folder, by name, or a default text; raises UserError."""
    text = " ".join(load(file, file.name).text for file in _files(path)) if path else otherwise
    text = re.sub(r"\s+", " ", text).strip()
    sentences = tuple(text[start:end].strip() for start, end in sentence_spans(text))
    if not sentences:
        raise UserError(f"background {path}: contains no words")
    ends = tuple(accumulate(len(sentence.split(" ")) for sentence in sentences))
    return Background(sentences, ends, hashlib.sha256(text.encode()).hexdigest())


def _files(path: Path) -> list[Path]:
    folder = to_path(str(path))
    texts = sorted(f for f in folder.rglob("*") if f.is_file() and not f.name.startswith("."))
    if not texts and not folder.is_file():
        raise UserError(f"background {path}: is neither a text file nor a folder of text files")
    return texts or [folder]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, with numbers of documents."""

    question: str
    answers: tuple[str, ...]
    documents: tuple[int, ...]
    related: tuple[int, ...] = ()  # other documents on the same subject
    evidence: tuple[tuple[int, int, int], ...] = ()  # document, start and end of each proof


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """Documents in alphabetical order, and questions in the order of the file."""

    documents: tuple[str, ...]
    questions: tuple[Asked, ...]
    sha256: str


def question_file(path: Path) -> QuestionFile:
    """Reads an official file of SQuAD 2.0 or HotpotQA; raises UserError for other files."""
    if not path.exists():
        raise UserError(
            f"there is no {path}: RULER's qa_1 is made from SQuAD's dev-v2.0.json as squad.json,"
            " qa_2 from HotpotQA's hotpot_dev_distractor_v1.json as hotpotqa.json; save them there,"
            " or set their folder by --data"
        )
    return _read(path, stamp(path))


@lru_cache(maxsize=2)
def _read(path: Path, stamp: Stamp) -> QuestionFile:  # noqa: ARG001 -- a changed file is read again
    content = path.read_bytes()
    try:
        data = json.loads(content)
        documents, questions = _squad(data["data"]) if isinstance(data, dict) else _hotpot(data)
    except (ValueError, LookupError, TypeError) as error:
        raise UserError(
            f"{path}: is neither SQuAD's nor HotpotQA's official JSON:"
            f" {type(error).__name__} {error!s:.80}"
        ) from None
    if not questions:
        raise UserError(f"{path}: has no question that can be answered")
    return QuestionFile(documents, questions, hashlib.sha256(content).hexdigest())


def _squad(data: Any) -> tuple[tuple[str, ...], tuple[Asked, ...]]:  # noqa: ANN401 -- JSON
    documents = tuple(sorted({p["context"] for article in data for p in article["paragraphs"]}))
    numbers = {text: number for number, text in enumerate(documents)}

    def questions() -> Iterator[Asked]:
        for article in data:
            subject = [numbers[p["context"]] for p in article["paragraphs"]]
            for paragraph in article["paragraphs"]:
                current = numbers[paragraph["context"]]
                others = tuple(number for number in subject if number != current)
                for row in paragraph["qas"]:
                    if not row["is_impossible"]:
                        texts = tuple(answer["text"] for answer in row["answers"])
                        spans = {(a["answer_start"], len(a["text"])) for a in row["answers"]}
                        proof = tuple((current, start, start + n) for start, n in sorted(spans))
                        yield Asked(row["question"], texts, (current,), others, proof)

    return documents, tuple(questions())


def _hotpot(data: Any) -> tuple[tuple[str, ...], tuple[Asked, ...]]:  # noqa: ANN401 -- JSON
    def text(title: str, sentences: list[str]) -> str:
        return f"{title}\n{''.join(sentences)}"

    documents = tuple(sorted({text(*paragraph) for row in data for paragraph in row["context"]}))
    numbers = {text: number for number, text in enumerate(documents)}

    def questions() -> Iterator[Asked]:
        for row in data:
            paragraphs = {title: (title, sentences) for title, sentences in row["context"]}
            proof = []
            for title, index in row.get("supporting_facts", ()):
                ends = [*accumulate(map(len, paragraphs[title][1]), initial=len(title) + 1)]
                if index + 1 < len(ends):  # the official file has a few wrong numbers
                    number = numbers[text(*paragraphs[title])]
                    proof.append((number, ends[index], ends[index + 1]))
            chosen = tuple(numbers[text(*paragraph)] for paragraph in row["context"])
            yield Asked(row["question"], (row["answer"],), chosen, evidence=tuple(proof))

    return documents, tuple(questions())
