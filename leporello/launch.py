"""Starts an example: its combiner as a generator, and what answers its searches at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

from leporello.calls import sees_gold
from leporello.config import Built
from leporello.flight import Flight, blame
from leporello.nested import combined
from leporello.records import Combination, Example, Fit, Hit, Search
from leporello.selection import Found, select
from leporello.stages import RendersPrompt

__all__ = ["launch"]


def launch(stages: Built, number: int, example: Example, found: Found) -> Flight:
    """Returns the flight of an example, not started yet.

    Args:
        stages: Of its pipeline.
        number: Of the example, in task order.
        example: With its gold, which the combiner sees only if it says so.
        found: What was selected for it.
    """
    answer = partial(_answer_now, stages)
    combiner = _combine(stages, example, found.hits)
    return Flight(number, example, found.hits, combiner, answer, notes=[*found.notes])


def _combine(stages: Built, example: Example, hits: Sequence[Hit]) -> Combination:
    """Starts the combiner at its first step, with what it may see."""
    visible = example if sees_gold(stages.combiner) else example.without_gold()
    return (yield from combined(stages.combiner, visible, tuple(hits)))


def _answer_now(stages: Built, flight: Flight, request: Search | Fit) -> Any:  # noqa: ANN401 -- hits or a number
    if isinstance(request, Fit):
        reader = stages.reader
        if not isinstance(reader, RendersPrompt):
            return len(request.read.passages)  # no window is known: all of it fits
        with blame("reader"):
            return reader.fit(request.read)
    with blame("retriever"):
        asked = dataclasses.replace(flight.example, question=request.question)
        [found] = select(stages, [asked])
    known = {hit.chunk.span for hit in flight.hits}
    new = [hit for hit in found.hits if hit.chunk.span not in known][: request.new]
    flight.hits += new
    flight.tell(found.notes)
    return tuple(found.hits if request.new is None else new)
