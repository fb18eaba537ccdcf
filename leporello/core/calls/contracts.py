"""Contracts of stages: parameters of their methods, what their classes declare, nested stages."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, TypeVar

from leporello.core.errors import ReadError
from leporello.core.protocols import Batching, ChecksFiles, Chunker, Combiner, PacksBatches
from leporello.core.records import (
    JSON,
    Combination,
    Example,
    Fit,
    Generates,
    Hit,
    Output,
    Read,
    Request,
)

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


Returned = TypeVar("Returned")


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


def run_combiner(combiner: Combiner, example: Example, hits: Sequence[Hit]) -> Combination:
    """Runs a combiner to its end, also one that answers at once, and returns what it returns.

    A combiner whose class declares `takes_failed_reads = True` is sent a `ReadError` in place of
    the output of a read that failed; into any other one the error is thrown.
    """
    result: Any = combiner.combine(example, hits)
    if inspect.isgenerator(result):
        takes = getattr(combiner, "takes_failed_reads", False)
        generator: Any = result
        result = yield from (_with_failed_reads(generator) if takes else generator)
    answer: JSON = result
    return answer


def _with_failed_reads(combination: Combination) -> Combination:
    """Runs a combination that is sent errors of reads as values."""
    step: Callable[[], Any] = partial(next, combination)
    while True:
        try:
            requests = step()
        except StopIteration as stop:
            answer: JSON = stop.value
            return answer
        answers = yield from answers_to(requests)
        step = partial(combination.send, answers)


def answers_to(requests: Any) -> Generator[Any, list[Any], list[Any]]:  # noqa: ANN401 -- the engine checks them
    """Yields requests; returns one answer each, a `ReadError` where the read failed.

    Raises:
        ReadError: A read failed, and the answers to the others are not known.
    """
    try:
        return (yield requests)
    except ReadError as error:
        if not error.answers:
            raise
        return [*error.answers]


def resumption(generator: Generator[Any, Any, Any], answers: list[Any]) -> Callable[[], Any]:
    """Returns the call that sends answers to a generator, or throws the first `ReadError` of them.

    Args:
        generator: Generator that waits for the answers.
        answers: Answers to all requests of its round.
    """
    for answer in answers:
        if isinstance(answer, ReadError):
            # Only `run_combiner` knows whether the combiner takes it as a value: all go with it.
            return partial(generator.throw, ReadError(answer.message, answer.trace, answers))
    return partial(generator.send, answers)


def watched(
    combination: Combination,
) -> Generator[Sequence[Request], list[Any], tuple[JSON, list[tuple[Read, Output]]]]:
    """Runs a combination to its end; returns its answer and what it read, with the outputs."""
    seen: list[tuple[Read, Output]] = []

    def see(requests: Sequence[Request], answers: Sequence[Any]) -> None:
        pairs = zip(requests, answers, strict=True)
        seen.extend(
            (asked, answer)
            for asked, answer in pairs
            if isinstance(asked, Read) and isinstance(answer, Output)
        )

    answer = yield from _relayed(combination, lambda requests: requests, see)
    return answer, seen


def _relayed(
    generator: Generator[Any, list[Any], Returned],
    change: Callable[[Any], Any],
    see: Callable[[Any, list[Any]], None] = lambda requests, answers: None,  # noqa: ARG005
) -> Generator[Any, list[Any], Returned]:
    """Runs a generator of requests: asks what `change` makes of them; `see` gets the answers."""
    resume: Callable[[], Any] = partial(next, generator)
    while True:
        try:
            requests = change(resume())
        except StopIteration as stop:
            returned: Returned = stop.value
            return returned
        answers = yield from answers_to(requests)
        see(requests, answers)
        resume = resumption(generator, answers)


def nested(stage: object) -> Iterator[object]:
    """Yields the values of a stage's parameters, those in lists one by one: stages among them."""
    if dataclasses.is_dataclass(stage):
        for field in dataclasses.fields(stage):
            value = getattr(stage, field.name, None)
            yield from value if isinstance(value, (tuple, list)) else (value,)


def load_models(stage: object) -> None:
    """Calls `load` of a stage and of those nested in it, where they have it.

    Loading takes its time and must not be interrupted; so it is done before a limit holds.
    """
    if callable(load := getattr(stage, "load", None)):
        load()
    else:
        for inner in nested(stage):
            load_models(inner)


def check_files(stage: object, data: str = "") -> None:
    """Calls `check_files` of a stage and of those nested in it, where they have it.

    Args:
        stage: A stage of any kind.
        data: The fingerprint of the task's data; empty where no task is known.

    Raises:
        UserError: A file that a parameter names is not there, faulty, or not for that data.
    """
    if isinstance(stage, ChecksFiles):
        stage.check_files(data)
    else:
        for inner in nested(stage):
            check_files(inner, data)


def in_role(
    role: str, generator: Generator[Any, list[Any], Returned]
) -> Generator[Any, list[Any], Returned]:
    """Runs a generator of requests; those that name no role ask this one; empty changes nothing."""

    def named(requests: Any) -> Any:  # noqa: ANN401 -- whoever runs it reports what is wrong
        if not isinstance(requests, (list, tuple)):
            return requests
        return [_in_role(role, request) for request in requests]

    return _relayed(generator, named)


def _in_role(role: str, request: object) -> object:
    asked = request.read if isinstance(request, Fit) else request
    if not isinstance(asked, Read | Generates) or asked.role:
        return request
    named = dataclasses.replace(asked, role=role)
    return Fit(named, request.behind) if isinstance(request, Fit) else named  # type: ignore[arg-type]
