"""Reads questions on short documents from the official files of SQuAD 2.0 and HotpotQA."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from leporello.core.errors import UserError
from leporello.core.files import Stamp, stamp


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, with numbers of documents.

    Attributes:
        question: The question.
        answers: References.
        documents: Documents of the question.
        related: Other documents on the same subject.
        evidence: Document, start and end of each text that proves the answer.
    """

    question: str
    answers: tuple[str, ...]
    documents: tuple[int, ...]
    related: tuple[int, ...] = ()
    evidence: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """Documents in alphabetical order, and questions in the order of the file."""

    documents: tuple[str, ...]
    questions: tuple[Asked, ...]
    sha256: str


def question_file(path: Path) -> QuestionFile:
    """Reads `dev-v2.0.json` of SQuAD or `hotpot_dev_distractor_v1.json`, under any name.

    Raises:
        UserError: The file does not exist, or has neither format.
    """
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
