"""Contracts of stages and loaders: parameters of methods, declarations, nested stages."""

import dataclasses
import inspect
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import cache, partial
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

from leporello.core.environment.user_code import user_code_errors
from leporello.core.errors import ReadError, UserError
from leporello.core.protocols import Batching, ChecksFiles, Chunker, Combiner, Loader
from leporello.core.records import (
    JSON,
    Combination,
    Document,
    Example,
    Fit,
    Generates,
    Hit,
    Loss,
    Member,
    Output,
    Place,
    Read,
    Request,
    Section,
    Span,
)

# Parameters of each method of a stage: required ones, then optional ones.
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


_MOST_CHARACTERS = 50_000_000  # ten times the longest book


Returned = TypeVar("Returned")


class StageError(Exception):
    """A stage violated its contract; the message states what the contract requires."""


class WrongCountError(StageError):
    """A reader did not return one output per read, so outputs cannot be matched to reads."""


def check_size(text: str, what: str) -> None:
    """Raises StageError for text that is far longer than any intended text."""
    if len(text) > _MOST_CHARACTERS:
        raise StageError(f"{what} has {len(text):,} characters; the limit is {_MOST_CHARACTERS:,}")


def sees_gold(stage: object) -> bool:
    """Returns whether a stage, or one nested in it, uses references and evidence."""
    # Gold in a nested oracle must show in the table as well, so no score looks better than it is.
    declaring = _outermost(stage, lambda s: getattr(s, "sees_gold", None) is not None)
    return any(outermost.sees_gold for outermost in declaring)


def index_methods(kind: type) -> tuple[str, ...]:
    """Returns which of `index` and `search` a class defines; `tuple.index` does not count."""
    methods = {name: getattr(kind, name, None) for name in ("index", "search")}
    return tuple(n for n, m in methods.items() if inspect.isfunction(m) or inspect.ismethod(m))


@cache
def has_index(kind: type) -> bool:
    """Returns whether a class has `index` and `search`, and no `retrieve` that overrides both."""
    if len(index_methods(kind)) < 2:  # noqa: PLR2004 -- both
        return False
    order = {name: n for n, base in reversed([*enumerate(kind.__mro__)]) for name in vars(base)}
    return order.get("retrieve", len(order)) >= min(order["index"], order["search"])


def asks_question(chunker: Chunker) -> bool:
    """Returns whether a chunker takes the question, and so runs once per example."""
    return _takes_question(type(chunker).chunk)


@cache
def _takes_question(chunk: Callable[..., object]) -> bool:
    return "question" in inspect.signature(chunk).parameters


def batching_of(reader: object) -> Batching | None:
    """Returns the micro-batches of a reader; None if it does not pack any."""
    batching: Batching | None = getattr(reader, "batching", None)
    return batching


def run_combiner(combiner: Combiner, example: Example, hits: Sequence[Hit]) -> Combination:
    """Runs a combiner, whether a generator or a plain function, and returns its answer.

    A combiner whose class declares `takes_failed_reads = True` is sent a `ReadError` instead of the
    output of a failed read; into other combiners the error is thrown.
    """
    result: Any = combiner.combine(example, hits)
    if inspect.isgenerator(result):
        generator: Any = result
        if getattr(combiner, "takes_failed_reads", False):
            generator = relayed(generator, sends_errors=True)
        result = yield from generator
    answer: JSON = result
    return answer


def resumption(generator: Generator[Any, Any, Any], answers: list[Any]) -> Callable[[], Any]:
    """Returns the call that sends answers to a generator, or throws their first `ReadError`."""
    for answer in answers:
        if isinstance(answer, ReadError):
            # It carries all answers: `run_combiner` decides whether to send them to the combiner.
            return partial(generator.throw, ReadError(answer.message, answer.trace, answers))
    return partial(generator.send, answers)


def watched(
    combination: Combination,
) -> Generator[Sequence[Request], list[Any], tuple[JSON, list[tuple[Read, Output]]]]:
    """Runs a combiner's generator; returns its answer, and its reads with their outputs."""
    reads: list[tuple[Read, Output]] = []

    def record(requests: Sequence[Request], answers: list[Any]) -> list[Any]:
        pairs = zip(requests, answers, strict=True)
        reads.extend(
            (request, answer)
            for request, answer in pairs
            if isinstance(request, Read) and isinstance(answer, Output)
        )
        return answers

    answer = yield from relayed(combination, restore=record)
    return answer, reads


def relayed(
    generator: Generator[Any, list[Any], Returned],
    change: Callable[[Any], Any] = lambda requests: requests,
    restore: Callable[[Any, list[Any]], list[Any]] = lambda _, answers: answers,
    *,
    sends_errors: bool = False,
) -> Generator[Any, list[Any], Returned]:
    """Runs a generator; relays its requests through `change`, and their answers through `restore`.

    With `sends_errors`, it is sent the errors of failed reads as values; else they are thrown in.
    """
    resume: Callable[[], Any] = partial(next, generator)
    while True:
        try:
            requests = resume()
        except StopIteration as stop:
            returned: Returned = stop.value
            return returned
        is_valid = isinstance(requests, (list, tuple))  # otherwise the engine raises an error
        try:
            answers = yield change(requests) if is_valid else requests
        except ReadError as error:
            if not error.answers:
                raise
            answers = [*error.answers]
        answers = restore(requests, answers)
        resume = (
            partial(generator.send, answers) if sends_errors else resumption(generator, answers)
        )


def nested(stage: object) -> Iterator[object]:
    """Yields the values of a stage's parameters and of lists in them, stages or not."""
    if dataclasses.is_dataclass(stage):
        for field in dataclasses.fields(stage):
            value = getattr(stage, field.name, None)
            yield from value if isinstance(value, (tuple, list)) else (value,)


def _outermost(stage: object, is_wanted: Callable[[Any], bool]) -> Iterator[Any]:
    """Yields a stage if it is wanted, or else the outermost wanted ones of its nested stages."""
    if is_wanted(stage):
        yield stage
    else:
        for inner in nested(stage):
            yield from _outermost(inner, is_wanted)


def load_models(stage: object) -> None:
    """Loads the models of a stage or of its nested ones; slow, so outside any time limit."""
    # A stage that defines `load` knows which nested models it needs; others load all of them.
    for outermost in _outermost(stage, lambda s: callable(getattr(s, "load", None))):
        outermost.load()


def check_files(stage: object, data: str = "") -> None:
    """Calls `check_files` of a stage, or else of its nested stages; see `ChecksFiles`."""
    # Before any work: a missing file must not end a run after hours of reading.
    for outermost in _outermost(stage, lambda s: isinstance(s, ChecksFiles)):
        outermost.check_files(data)


def in_role(
    role: str, generator: Generator[Any, list[Any], Returned]
) -> Generator[Any, list[Any], Returned]:
    """Runs a generator and gives its requests this role, except those that name a role."""
    return relayed(generator, lambda requests: [_in_role(role, request) for request in requests])


def _in_role(role: str, request: object) -> object:
    inner = request.read if isinstance(request, Fit) else request
    # The innermost role applies, since a nested combiner may name its own reader (decision 47).
    if not isinstance(inner, Read | Generates) or inner.role:
        return request
    inner = dataclasses.replace(inner, role=role)
    return Fit(inner, request.behind) if isinstance(request, Fit) else inner  # type: ignore[arg-type]


_KINDS = {"sections": Section, "parts": Span, "places": Place, "losses": Loss, "members": Member}


def load_with(loader: Loader, path: Path) -> Document:
    """Returns a file as a document, read by a plug-in's loader; raises UserError if that fails."""
    name = f"{type(loader).__name__}.load"
    with user_code_errors(f"{path}: {name}", MemoryError, TimeoutError):
        document = loader.load(path)
    # Checked like the results of stages: a wrong span would fail only in a later stage.
    if problem := next(_problems(document), ""):
        raise UserError(f"{path}: {name} returned {problem}")
    return document


def _problems(document: object) -> Iterator[str]:
    if not isinstance(document, Document):
        yield f"{document!r:.80}; it must return a Document"
        return
    for field in ("id", "text", "title"):
        if not isinstance(value := getattr(document, field), str):
            yield f"a Document whose {field} is {value!r:.80}; it must be text"
    for field, kind in _KINDS.items():
        values = getattr(document, field)
        if not isinstance(values, tuple) or not all(isinstance(value, kind) for value in values):
            yield f"a Document whose {field} is not a tuple of {kind.__name__}"
        for value in values if kind is not Loss else ():
            numbers = all(isinstance(n, Integral) for n in (value.start, value.end))
            if not (numbers and 0 <= value.start <= value.end <= len(document.text)):
                yield (
                    f"a Document with {value!r:.120} among its {field}, which is outside its text"
                    f" of {len(document.text)} characters"
                )
