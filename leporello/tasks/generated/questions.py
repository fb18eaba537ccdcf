"""Short documents with questions, from the official files of SQuAD 2.0 and HotpotQA."""

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


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, with numbers of documents.

    Attributes:
        question: The question.
        answers: References.
        documents: Documents that come with it.
        related: Others on the same subject.
        evidence: Document and characters in it of what proves the answer.
    """

    question: str
    answers: tuple[str, ...]
    documents: tuple[int, ...]
    related: tuple[int, ...] = ()
    evidence: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """Documents in alphabetical order, and questions in the file's."""

    documents: tuple[str, ...]
    questions: tuple[Asked, ...]
    sha256: str


def question_file(path: Path) -> QuestionFile:
    """Reads `dev-v2.0.json` of SQuAD or `hotpot_dev_distractor_v1.json`, whatever they are called.

    Raises:
        UserError: There is no such file, or it is neither.
    """
    if not path.exists():
        raise UserError(
            f"there is no {path}: RULER's qa_1 is made from SQuAD's dev-v2.0.json as squad.json,"
            " qa_2 from HotpotQA's hotpot_dev_distractor_v1.json as hotpotqa.json; put them there,"
            " or say with --data where they lie"
        )
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _read(path: Path, stamp: int) -> QuestionFile:  # noqa: ARG001 -- a changed file is read again
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

    def asked() -> Iterator[Asked]:
        for article in data:
            subject = [numbers[p["context"]] for p in article["paragraphs"]]
            for paragraph in article["paragraphs"]:
                own = numbers[paragraph["context"]]
                others = tuple(number for number in subject if number != own)
                for each in paragraph["qas"]:
                    if not each["is_impossible"]:
                        texts = tuple(answer["text"] for answer in each["answers"])
                        spans = {(a["answer_start"], len(a["text"])) for a in each["answers"]}
                        proof = tuple((own, start, start + size) for start, size in sorted(spans))
                        yield Asked(each["question"], texts, (own,), others, proof)

    return documents, tuple(asked())


def _hotpot(data: Any) -> tuple[tuple[str, ...], tuple[Asked, ...]]:  # noqa: ANN401 -- JSON
    def text(title: str, sentences: list[str]) -> str:
        return f"{title}\n{''.join(sentences)}"

    documents = tuple(sorted({text(*paragraph) for each in data for paragraph in each["context"]}))
    numbers = {text: number for number, text in enumerate(documents)}

    def asked() -> Iterator[Asked]:
        for each in data:
            own = {title: (title, sentences) for title, sentences in each["context"]}
            proof = []
            for title, index in each.get("supporting_facts", ()):
                ends = [*accumulate(map(len, own[title][1]), initial=len(title) + 1)]
                if index + 1 < len(ends):  # the official file names a few that are not there
                    proof.append((numbers[text(*own[title])], ends[index], ends[index + 1]))
            chosen = tuple(numbers[text(*paragraph)] for paragraph in each["context"])
            yield Asked(each["question"], (each["answer"],), chosen, evidence=tuple(proof))

    return documents, tuple(asked())
