"""What a stage's methods may take, and what a class says of itself by having them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from leporello.core.calls.nested import nested
from leporello.core.protocols import Batching, Chunker, PacksBatches

# What a stage's method may take, by name: the first tuple must be there, of the second any.
PARAMETERS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "chunk": (("document",), ("question",)),
    "enrich": (("document", "chunks"), ()),
    "retrieve": (("chunks",), ("questions", "examples")),
    "index": (("chunks",), ()),
    "search": (("index",), ("questions", "examples", "chunks")),
    "read": (("inputs",), ()),
    "count": (("texts",), ()),
    "combine": (("example", "hits"), ()),
    "load": (("path",), ()),
}


_MOST_CHARACTERS = 50_000_000  # ten books of the longest


class StageError(Exception):
    """A stage took or returned what no stage of its kind may; its text says what is wanted."""


class WrongCountError(StageError):
    """A reader's outputs are not one an input, in their order: none of them can be trusted."""


def check_size(text: str, what: str) -> None:
    """Refuses text that is longer than any that was meant.

    Raises:
        StageError: It is.
    """
    if len(text) > _MOST_CHARACTERS:
        most = f"at most {_MOST_CHARACTERS:,} are kept"
        raise StageError(f"{what} has {len(text):,} characters; {most}")


def sees_gold(stage: object) -> bool:
    """Returns whether a stage looks at references and evidence, as oracles declare.

    A stage that declares nothing does if a stage nested in it does.
    """
    declared = getattr(stage, "sees_gold", None)
    return any(map(sees_gold, nested(stage))) if declared is None else bool(declared)


def indexers(retriever: object) -> Iterator[object]:
    """Yields those of a retriever and the stages nested in it whose index is kept."""
    kind: Any = type(retriever)
    if has_index(kind):
        yield retriever
    else:
        for inner in nested(retriever):
            yield from indexers(inner)


def index_methods(kind: type) -> tuple[str, ...]:
    """Returns which of `index` and `search` a class has; a tuple's own `index` is none."""
    named = {name: getattr(kind, name, None) for name in ("index", "search")}
    return tuple(n for n, m in named.items() if inspect.isfunction(m) or inspect.ismethod(m))


@cache
def has_index(kind: type) -> bool:
    """Says whether a class has `index` and `search`, and no `retrieve` that overrides both."""
    if len(index_methods(kind)) < 2:  # noqa: PLR2004 -- both
        return False
    order = {name: n for n, base in reversed([*enumerate(kind.__mro__)]) for name in vars(base)}
    return order.get("retrieve", len(order)) >= min(order["index"], order["search"])


def asks_question(chunker: Chunker) -> bool:
    """Returns whether a chunker wants the question, and so runs once an example."""
    return _takes_question(type(chunker).chunk)


@cache
def _takes_question(chunk: Callable[..., object]) -> bool:
    return "question" in inspect.signature(chunk).parameters


def batching_of(reader: object) -> Batching | None:
    """Returns how a reader packs micro-batches, None if it packs none."""
    return reader.batching if isinstance(reader, PacksBatches) else None
