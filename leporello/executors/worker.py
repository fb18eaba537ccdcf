"""A process that divides and selects for another, over a socket that it inherits.

It is started afresh rather than forked, since forking a process that runs models can hang it;
and by name rather than by multiprocessing, which would run the user's own script once more.
"""

from __future__ import annotations

import ctypes
import io
import logging
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias

from leporello.cache import Cache
from leporello.config import Built, Spec
from leporello.config.classes import find_class
from leporello.errors import UserError
from leporello.executors.groups import select_group
from leporello.flight import ExampleError
from leporello.records import Example
from leporello.selection import Found
from leporello.sources import file_module_name, source_hash
from leporello.workshop import Workshop

__all__ = ["CANNOT_BE_SENT", "Answer", "Orders", "Sent", "Work", "dump", "main", "source_hashes_of"]

# What sending an object to another process raises if it cannot be.
CANNOT_BE_SENT = (pickle.PicklingError, AttributeError, TypeError)

_PR_SET_PDEATHSIG = 1
_LOOK = 1.0  # seconds between looks at the process that asks

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


class _Pickler(pickle.Pickler):
    """Names a class from a plug-in's file by that file, which no import would find."""

    def reducer_override(self, thing: Any) -> Any:  # noqa: ANN401 -- whatever is pickled
        if not isinstance(thing, type):
            return NotImplemented
        file = getattr(sys.modules.get(thing.__module__), "__file__", None)
        if file is None or thing.__module__ != file_module_name(Path(file)):
            return NotImplemented
        return find_class, (f"{file}:{thing.__qualname__}", "", Path())


def source_hashes_of(pipelines: Sequence[Mapping[str, Spec]]) -> dict[str, str]:
    """Returns the hash of the source of each class that divides or selects, by its name."""
    stages = (stages[key] for stages in pipelines for key in ("chunker", "retriever"))
    return {spec.name: source_hash(spec.cls) for stage in stages for spec in stage.all_specs()}


def dump(orders: Orders) -> bytes:
    """Returns the orders as bytes for a process of one's own; plug-ins' files are loaded there."""
    buffer = io.BytesIO()
    _Pickler(buffer).dump(orders)
    return buffer.getvalue()


def main() -> None:
    """Answers until the other side is gone."""
    _die_with_parent()
    threading.Thread(target=_end_with, args=[os.getppid()], daemon=True).start()
    logging.basicConfig(format="%(message)s", stream=sys.stderr, level=logging.WARNING)
    logging.getLogger("leporello").setLevel(logging.INFO)
    connection = Connection(int(sys.argv[1]))
    try:
        sys.path[:] = connection.recv()
        _serve(connection, connection.recv())
    except (EOFError, ConnectionError):
        return  # nobody wants the answer any more


def _die_with_parent() -> None:
    """Has Linux kill this process when the one that asks is gone, whatever it is at."""
    with suppress(OSError, AttributeError):  # elsewhere the thread below has to do
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_with(parent: int) -> None:
    """Ends this process when the one that asks is gone, killed perhaps."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(0)


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
