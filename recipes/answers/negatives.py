"""Finds negatives: passages that resemble those with the answer, but lack it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from leporello.core.protocols import Retriever
from leporello.core.records import Chunk, Document
from recipes.answers.questions import Question

_BLOCK = 2000  # questions of a set per search


def nearest_passages(
    questions: Sequence[Question], retriever: Retriever, count: int
) -> list[list[str]]:
    """Returns for each question the best passages of a retriever that lack its answer.

    The question's other passages in the data come first, then passages of its document, and then of
    its set.
    """
    negatives = [list(question.others[:count]) for question in questions]
    for rows in _blocks(questions):
        passages = list(dict.fromkeys(questions[row].passage for row in rows))
        searching = [row for row in rows if len(negatives[row]) < count]
        if not searching or len(passages) == 1:
            continue
        chunks = _chunks(passages)
        hits = retriever.retrieve([questions[row].text for row in searching], chunks)
        for row, ranked in zip(searching, hits, strict=True):
            positive, answers = questions[row].passage, _answers(questions[row])
            lacking = (text for hit in ranked if _lacks(text := hit.chunk.text, answers))
            new = [text for text in lacking if text != positive and text not in negatives[row]]
            negatives[row] += new[: count - len(negatives[row])]
    return negatives


def _blocks(questions: Sequence[Question]) -> Iterator[list[int]]:
    """Yields the questions of each document, then the questions of each set in blocks."""
    documents, sets = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
    for row, question in enumerate(questions):
        documents[question.document].append(row)
        sets[question.source].append(row)
    yield from documents.values()
    for rows in sets.values():
        for first in range(0, len(rows), _BLOCK):
            yield rows[first : first + _BLOCK]


def _chunks(passages: Sequence[str]) -> list[Chunk]:
    """Returns passages as chunks of one document."""
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
