"""Reads the questions of a training, and splits them by document."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from leporello.config.parameters import adapter
from leporello.core.errors import UserError
from leporello.core.files import opened

_WORDS = re.compile(r"[a-z0-9]+")
_ANCHOR = 3  # words whose hash decides whether a fingerprint begins with them
_SPAN = 12  # words of a fingerprint
_EVERY = 24  # words between fingerprints, on average
_SOURCE = "hotpotqa"


@dataclass(frozen=True)
class _QuestionRow:
    set: str
    document_id: str
    question: str
    passage: str
    answers: tuple[tuple[int, str], ...] = ()
    yes_no: Literal["yes", "no"] | None = None
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """A question with a passage and its answers in the passage."""

    source: str  # name of the data set
    document: str  # name of the passage's document, unique over all sets
    text: str  # text of the question
    passage: str  # text to read
    # Right answers as half-open ranges of characters in the passage.
    answers: tuple[tuple[int, int], ...] = ()
    # Answer to a yes/no question, or None. A question with neither this nor answers is not answered
    # by the passage.
    yes_no: Literal["yes", "no"] | None = None
    others: tuple[str, ...] = ()  # further passages, which do not answer the question


def read_questions(path: Path) -> Iterator[Question]:
    """Yields the questions of a file; raises UserError with the line of an invalid row.

    The file has rows in JSON Lines, or is `.json` in HotpotQA's format; both may be gzipped
    (`.gz`).
    """
    check: TypeAdapter[_QuestionRow] = adapter(_QuestionRow)
    try:
        with opened(path) as raw, gzip.open(raw) if path.suffix == ".gz" else raw as file:
            if ".json" in path.suffixes:
                items: Sequence[Any] = json.loads(file.read())
                numbered = [(n, row) for n, item in enumerate(items, 1) for row in rows_of(item)]
                yield from (_question(check.validate_python(r), f"{path}:{n}") for n, r in numbered)
                return
            for number, line in enumerate(file, 1):
                place = f"{path}:{number}"
                try:
                    row = check.validate_json(line)
                except ValidationError as error:
                    [first, *_] = error.errors(include_url=False)
                    where = ".".join(map(str, first["loc"]))
                    raise UserError(f"{place}: {where or 'row'}: {first['msg']}") from None
                yield _question(row, place)
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: cannot be read: {error!r}") from None


def _question(row: _QuestionRow, place: str) -> Question:
    places = []
    for first, text in row.answers:
        if first < 0 or row.passage[first : first + len(text)] != text:
            raise UserError(f"{place}: the answer {text!r} is not at {first} in the passage")
        if text.strip():
            places.append((first + len(text) - len(text.lstrip()), first + len(text.rstrip())))
    text = " ".join(row.question.split())
    answers = tuple(dict.fromkeys(places))
    return Question(row.set, row.document_id, text, row.passage, answers, row.yes_no, row.others)


def split(
    questions: Sequence[Question], share: float, seed: int
) -> tuple[list[Question], list[Question]]:
    """Splits questions into training and validation questions.

    Documents that share text are on the same side, whatever their names.
    """
    group = document_groups(questions)
    train: list[Question] = []
    validation: list[Question] = []
    for question in questions:
        is_held_out = _draw(group[question.document], seed) < share
        (validation if is_held_out else train).append(question)
    return train, validation


def document_groups(questions: Iterable[Question]) -> dict[str, str]:
    """Returns for each document the first name among the documents that share text with it."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        parent.setdefault(name, name)
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    owner: dict[bytes, str] = {}
    texts = ((text, q.document) for q in questions for text in (q.passage, *q.others))
    for text, document in dict.fromkeys(texts):
        for key in fingerprints(text):
            first, second = sorted((root(document), root(owner.setdefault(key, document))))
            parent[second] = first
    return {name: root(name) for name in parent}


def fingerprints(text: str) -> set[bytes]:
    """Returns hashes of parts of a text, most of which a truncated copy has too.

    The words themselves determine the beginnings of the parts, about one in 24 words. A text
    without such a beginning has one hash of its complete text. Only ASCII letters and digits count
    as words.
    """
    words = _WORDS.findall(text.lower())
    keys = {
        _hash(words[i : i + _SPAN])
        for i in range(len(words) - _SPAN + 1)
        if int.from_bytes(_hash(words[i : i + _ANCHOR]), "big") % _EVERY == 0
    }
    return keys or {_hash(words or [text])}


def _hash(words: Sequence[str]) -> bytes:
    return hashlib.blake2b(" ".join(words).encode(), digest_size=8).digest()


def _draw(name: str, seed: int) -> float:
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def rows_of(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the rows of one question of the distractor setting.

    The passage of the first row has both supporting paragraphs; each further row has one paragraph
    that contains the answer. The question is in the format of HotpotQA's files, or of the hub's
    files with columns.
    """
    texts = {title: f"{title}\n{''.join(sentences).strip()}" for title, sentences in _pairs(item)}
    facts = item["supporting_facts"]
    titles = facts["title"] if isinstance(facts, dict) else [title for title, _ in facts]
    gold = [title for title in texts if title in titles]
    name = item.get("id") or item["_id"]
    random.Random(name).shuffle(gold)
    yes_no = item["answer"] if item["answer"] in ("yes", "no") else None
    single = [] if yes_no else [texts[title] for title in gold]
    for passage in ["\n\n".join(texts[title] for title in gold), *single]:
        answers = [] if yes_no else _places(passage, item["answer"])
        if answers or yes_no:
            yield {
                "set": _SOURCE,
                "document_id": f"{_SOURCE}/{name}",
                "question": item["question"],
                "passage": passage,
                "answers": tuple(answers),
                "yes_no": yes_no,
                "others": tuple(text for title, text in texts.items() if title not in gold),
            }


def _pairs(item: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    context = item["context"]
    if isinstance(context, dict):
        return zip(context["title"], context["sentences"], strict=True)
    return iter(context)


def _places(text: str, answer: str) -> list[tuple[int, str]]:
    """Returns the occurrences of an answer as complete words with the same case."""
    pattern = rf"(?<!\w){re.escape(answer)}(?!\w)"
    return [(match.start(), match.group()) for match in re.finditer(pattern, text)]
