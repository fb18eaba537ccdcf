"""Runs one example without an engine, and shows the reads of each round."""

from __future__ import annotations

from leporello.config import Pipeline
from leporello.core.records import Example, Read
from leporello.engine.active_example import ActiveExample
from leporello.engine.selection import select


def run_example(stages: Pipeline, example: Example) -> tuple[ActiveExample, list[list[Read]]]:
    """Returns the finished example and the reads of each round, which are read one by one."""
    [selection] = select(stages, [example])
    active = ActiveExample.create(stages, 0, example, selection)
    active.start()
    rounds: list[list[Read]] = []
    while not active.finished:
        rounds.append([*active.reads])
        active.replies = [stages.reader_of(read.role).read([read])[0] for read in active.reads]
        active.send()
    return active, rounds
