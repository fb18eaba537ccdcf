"""A process that divides and selects for another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeAlias

from leporello.cache import Cache
from leporello.config import Built, Spec
from leporello.errors import UserError
from leporello.executors.beside import connected
from leporello.executors.groups import select_group
from leporello.flight import ExampleError
from leporello.records import Example
from leporello.selection import Found
from leporello.sources import source_hash
from leporello.workshop import Workshop

__all__ = ["Answer", "Orders", "Sent", "Work", "main", "source_hashes_of"]

# What is found for an example: its hits as (start, end, score), and its notes. Spans instead of
# chunks: the document stays where it is.
Sent: TypeAlias = "tuple[list[tuple[int, int, float]], tuple[str, ...]]"
# For each wanted pipeline what is found for each example, or why nothing is; and the seconds.
Answer: TypeAlias = "dict[int, tuple[list[Sent | ExampleError], float]] | UserError"


@dataclass(frozen=True, slots=True)
class Orders:
    """What a worker is to do with every document.

    Attributes:
        pipelines: Chunker and retriever of each.
        sources: The hash of the source of each of their classes.
        cache: Where what is derived from documents is kept; None keeps nothing.
        timeout: Seconds that a call may take for each example in it.
    """

    pipelines: Sequence[Mapping[str, Spec]]
    sources: Mapping[str, str]
    cache: Path | None
    timeout: float | None


@dataclass(frozen=True, slots=True)
class Work:
    """Examples on one document, and the places of the pipelines that want them."""

    examples: tuple[Example, ...]
    wanted: tuple[int, ...]


def source_hashes_of(pipelines: Sequence[Mapping[str, Spec]]) -> dict[str, str]:
    """Returns the hash of the source of each class that divides or selects, by its name."""
    stages = (stages[key] for stages in pipelines for key in ("chunker", "retriever"))
    return {spec.name: source_hash(spec.cls) for stage in stages for spec in stage.all_specs()}


def main() -> None:
    """Answers until the other side is gone."""
    try:
        connection = connected()
        _serve(connection, connection.recv())
    except (EOFError, ConnectionError):
        return  # nobody wants the answer any more


def _serve(connection: Connection, orders: Orders) -> None:
    workshop = Workshop()
    pipelines = [
        Built(workshop.stage(p["chunker"]), workshop.stage(p["retriever"]), None, None)
        for p in orders.pipelines
    ]
    cache = Cache(orders.cache) if orders.cache else None
    if changed := _changed(orders):
        told = f"{changed} changed while the run was going on; --update does again what it touches"
        connection.send(UserError(told))
        return
    connection.send("ready")
    while True:
        work: Work = connection.recv()
        if cache and work.examples:
            work.examples[0].document.keep_on(cache)
        connection.send(_answer(pipelines, work, orders.timeout))


def _changed(orders: Orders) -> str:
    """Returns the name of a class whose source is not what the run began with, or nothing."""
    now = source_hashes_of(orders.pipelines)
    return next((name for name, known in orders.sources.items() if now[name] != known), "")


def _answer(pipelines: Sequence[Built], work: Work, timeout: float | None) -> Answer:
    answer = {}
    try:
        for place in work.wanted:
            selection = select_group(pipelines[place], work.examples, timeout)
            answer[place] = ([*map(_sent, selection.found)], selection.seconds)
    except UserError as error:
        return UserError(str(error))
    return answer


def _sent(found: Found | ExampleError) -> Sent | ExampleError:
    if isinstance(found, ExampleError):
        return found
    return [(hit.chunk.start, hit.chunk.end, hit.score) for hit in found.hits], found.notes
