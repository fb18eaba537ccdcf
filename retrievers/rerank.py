"""A cross-encoder reads the question together with each hit of another retriever."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import TYPE_CHECKING, TypeAlias

from leporello.core.calls.contracts import load_models
from leporello.core.calls.stage_calls import retrieve
from leporello.core.protocols import ModelSource, Positive, Retriever
from leporello.core.records import Chunk, Example, Hit
from leporello.retrievers.index.embedders import count, cut, load_cross_encoder, room
from leporello.retrievers.index.postings import in_order

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

Pair: TypeAlias = tuple[str, str]

# What a pair's batch mates change in its score shows in the sixth digit.
_DIGITS = 5


@dataclass(frozen=True)
class Rerank:
    """Scores the hits of another retriever with a cross-encoder, and keeps the best.

    Nothing is cut off. A passage too long for the window beside its question is scored in pieces
    and has the score of its best one (MaxP: Dai and Callan, SIGIR 2019); a question of more than
    half the window is read in pieces as well, and its scores are their mean. A blank question
    gives every passage 0.

    Attributes:
        retriever: Retriever whose hits are scored; let it return more than k.
        model: A cross-encoder that gives one score a pair.
        k: Number of chunks a question gets.
        batch_size: Number of pairs read at once; they are sorted by length.
    """

    retriever: Retriever
    model: ModelSource
    k: Positive = 10
    batch_size: Positive = 32

    def load(self) -> None:
        """Loads the models, which is otherwise done when they are first asked."""
        load_cross_encoder(self.model)
        load_models(self.retriever)

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the k best hits of each example; scores are logits, before any sigmoid."""
        candidates = retrieve(self.retriever, examples, chunks)
        scores = self._scores(
            (example.question, [hit.chunk.text for hit in hits])
            for example, hits in zip(examples, candidates, strict=True)
        )
        return [
            in_order(map(Hit, (hit.chunk for hit in hits), row))[: self.k]
            for hits, row in zip(candidates, scores, strict=True)
        ]

    def _scores(self, asked: Iterable[tuple[str, list[str]]]) -> Iterator[list[float]]:
        """Yields one score a passage, for each question and its passages."""
        blocks = [(self._readings(*block), len(block[1])) for block in asked]
        pieces = chain.from_iterable(
            passage for readings, _ in blocks for reading in readings for passage in reading
        )
        scores = iter(self._predict(list(pieces)))
        for readings, passages in blocks:
            best = [[max(next(scores) for _ in p) for p in reading] for reading in readings]
            means = [round(fmean(column), _DIGITS) for column in zip(*best, strict=True)]
            yield means or [0.0] * passages

    def _readings(self, question: str, passages: list[str]) -> list[list[list[Pair]]]:
        """Returns what to read for each piece of the question, for each passage: its pieces."""
        if not question.strip() or not passages:
            return []
        model = load_cross_encoder(self.model)
        window = room(model, ("", ""), _prompt(model))
        readings = []
        for piece in cut(model, [question], window / 2)[0]:
            beside = window - count(model, [piece])[0]
            readings.append([[(piece, p) for p in cuts] for cuts in cut(model, passages, beside)])
        return readings

    def _predict(self, pairs: list[Pair]) -> list[float]:
        if not pairs:
            return []
        from torch.nn import Identity

        model = load_cross_encoder(self.model)
        scores = model.predict(
            pairs,
            prompt=_prompt(model),
            batch_size=self.batch_size,
            activation_fn=Identity(),  # a sigmoid would make all good passages equal
            show_progress_bar=False,
        )
        values: list[float] = scores.tolist()
        return values


def _prompt(model: CrossEncoder) -> str:
    """Returns the prompt that is saved with a model, as some that follow instructions have it."""
    return model.prompts.get(model.default_prompt_name or "") or ""
