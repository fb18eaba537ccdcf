"""Passages that look as if they answered a question, and do not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from leporello.core.protocols import Retriever
from leporello.core.records import Chunk, Document
from recipes.answers.questions import Question

_BLOCK = 2000  # questions of a set that are searched for together


def nearest_passages(
    questions: Sequence[Question], retriever: Retriever, count: int
) -> list[list[str]]:
    """Returns for each question the passages that a retriever puts first and that lack its answer.

    They are those that the question came with; where these are too few, of its own document; and
    where that has too few, of its set.

    Args:
        questions: Questions with their passages.
        retriever: Retriever that is asked for them.
        count: Passages for each question at most.
    """
    found = [list(question.others[:count]) for question in questions]
    for rows in _shelves(questions):
        passages = list(dict.fromkeys(questions[row].passage for row in rows))
        asked = [row for row in rows if len(found[row]) < count]
        if not asked or len(passages) == 1:
            continue
        chunks = _chunks(passages)
        hits = retriever.retrieve([questions[row].text for row in asked], chunks)
        for row, ranked in zip(asked, hits, strict=True):
            own, answers = questions[row].passage, _answers(questions[row])
            fitting = (text for hit in ranked if _lacks(text := hit.chunk.text, answers))
            new = [text for text in fitting if text != own and text not in found[row]]
            found[row] += new[: count - len(found[row])]
    return found


def _shelves(questions: Sequence[Question]) -> Iterator[list[int]]:
    """Yields the questions of each document, then those of each set, in blocks."""
    documents, sets = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
    for row, question in enumerate(questions):
        documents[question.document].append(row)
        sets[question.source].append(row)
    yield from documents.values()
    for rows in sets.values():
        for first in range(0, len(rows), _BLOCK):
            yield rows[first : first + _BLOCK]


def _chunks(passages: Sequence[str]) -> list[Chunk]:
    """Returns passages as chunks of a document."""
    document = Document("passages", "\n".join(passages))
    chunks, start = [], 0
    for passage in passages:
        chunks.append(document.chunk(start, start + len(passage)))
        start += len(passage) + 1
    return chunks


def _answers(question: Question) -> set[str]:
    return {_plain(question.passage[first:end]) for first, end in question.answers}


def _lacks(passage: str, answers: set[str]) -> bool:
    plain = _plain(passage)
    return not any(answer in plain for answer in answers)


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
