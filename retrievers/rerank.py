"""Reranks the hits of another retriever with a cross-encoder, or by a reader's scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import TYPE_CHECKING, TypeAlias

from leporello.core.calls.contracts import load_models
from leporello.core.calls.stage_calls import read, retrieve
from leporello.core.protocols import ModelSource, Positive, Reader, Retriever
from leporello.core.records import Chunk, Example, Hit, Read
from leporello.retrievers.embedders import count, cut, load_encoder, room
from leporello.retrievers.postings import in_order

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder


Pair: TypeAlias = tuple[str, str]

_DIGITS = 5  # the other pairs of a batch change the sixth digit of a score


@dataclass(frozen=True)
class Rerank:
    """Scores the hits of another retriever with a cross-encoder, and returns the best.

    Nothing is truncated. A passage that does not fit the input window with its question is scored
    in segments, and has the score of its best segment (MaxP: Dai and Callan, SIGIR 2019). A
    question longer than half the input window is read in segments too, and its score is their mean.
    With a blank question, every passage scores 0.

    Attributes:
        retriever: Retriever whose hits are scored; it should return more than k.
        model: A cross-encoder that returns one score per pair.
        k: Number of hits per question.
        batch_size: Number of pairs per batch, sorted by length.
    """

    retriever: Retriever
    model: ModelSource
    k: Positive = 10
    batch_size: Positive = 32

    def load(self) -> None:
        """Loads the models, which the first call would load otherwise."""
        load_encoder("CrossEncoder", self.model)
        load_models(self.retriever)

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the k best hits of each example; scores are logits, without a sigmoid."""
        candidates = retrieve(self.retriever, examples, chunks)
        scores = self._scores(
            (example.question, [hit.chunk.text for hit in hits])
            for example, hits in zip(examples, candidates, strict=True)
        )
        return [
            in_order(map(Hit, (hit.chunk for hit in hits), row))[: self.k]
            for hits, row in zip(candidates, scores, strict=True)
        ]

    def _scores(self, groups: Iterable[tuple[str, list[str]]]) -> Iterator[list[float]]:
        blocks = [(self._readings(*group), len(group[1])) for group in groups]
        pieces = chain.from_iterable(
            passage for readings, _ in blocks for reading in readings for passage in reading
        )
        scores = iter(self._predict(list(pieces)))
        for readings, passages in blocks:
            best = [[max(next(scores) for _ in p) for p in reading] for reading in readings]
            means = [round(fmean(column), _DIGITS) for column in zip(*best, strict=True)]
            yield means or [0.0] * passages

    def _readings(self, question: str, passages: list[str]) -> list[list[list[Pair]]]:
        """Returns the pairs to score: for each piece of the question and passage, its pieces."""
        if not question.strip() or not passages:
            return []
        model = load_encoder("CrossEncoder", self.model)
        window = room(model, ("", ""), _prompt(model))
        readings = []
        # Half of the window at most, since a long question would leave no room for the passage.
        for piece in cut(model, [question], window / 2)[0]:
            remaining = window - count(model, [piece])[0]
            pieces = cut(model, passages, remaining)
            readings.append([[(piece, part) for part in parts] for parts in pieces])
        return readings

    def _predict(self, pairs: list[Pair]) -> list[float]:
        if not pairs:
            return []
        from torch.nn import Identity

        model = load_encoder("CrossEncoder", self.model)
        scores = model.predict(
            pairs,
            prompt=_prompt(model),
            batch_size=self.batch_size,
            activation_fn=Identity(),  # a sigmoid would round all good passages to 1
            show_progress_bar=False,
        )
        values: list[float] = scores.tolist()
        return values


def _prompt(model: CrossEncoder) -> str:
    """Returns the default prompt that is saved with some models, or an empty text."""
    return model.prompts.get(model.default_prompt_name or "") or ""


@dataclass(frozen=True)
class RerankByReader:
    """Sorts the hits of another retriever by a reader's scores, and returns the best.

    The reader's scores must be comparable between passages: `Embedded`, whose score approximates
    the log odds that the passage has the answer, or `Extractive`.

    Attributes:
        retriever: Retriever whose hits are read; it should return more than k.
        reader: Reader that reads the question with one hit at a time.
        k: Number of hits per question.
    """

    retriever: Retriever
    reader: Reader
    k: Positive = 10

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the k best hits of each example by the reader's scores; raises ValueError."""
        candidates = retrieve(self.retriever, examples, chunks)
        reads = [
            Read((hit.chunk,), example.question, example.instruction, example.choices)
            for example, hits in zip(examples, candidates, strict=True)
            for hit in hits
        ]
        outputs = iter(read(self.reader, reads) if reads else ())
        rankings = []
        for hits in candidates:
            scored = [Hit(hit.chunk, _score(next(outputs).score)) for hit in hits]
            rankings.append(in_order(scored)[: self.k])
        return rankings


def _score(score: float | None) -> float:
    if score is None:
        raise ValueError("RerankByReader needs a reader that returns scores, such as Embedded")
    return score
