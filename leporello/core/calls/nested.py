"""What is asked of a stage and of those nested in it: models, files, a whole combination."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from leporello.core.protocols import ChecksFiles, Combiner
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


def run_combiner(combiner: Combiner, example: Example, hits: Sequence[Hit]) -> Combination:
    """Runs a combiner to its end, also one that answers at once, and returns what it returns."""
    result: Any = combiner.combine(example, hits)
    if inspect.isgenerator(result):
        result = yield from result
    answer: JSON = result
    return answer


def watched(
    combination: Combination,
) -> Generator[Sequence[Request], list[Any], tuple[JSON, list[tuple[Read, Output]]]]:
    """Runs a combination to its end; returns its answer and what it read, with the outputs."""
    seen: list[tuple[Read, Output]] = []
    try:
        requests = next(combination)
        while True:
            try:
                answers = yield requests
            except Exception as error:  # a failed read, which is the combiner's to catch
                requests = combination.throw(error)
                continue
            seen += [
                (asked, answer)
                for asked, answer in zip(requests, answers, strict=True)
                if isinstance(asked, Read)
            ]
            requests = combination.send(answers)
    except StopIteration as stop:
        return stop.value, seen


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


Returned = TypeVar("Returned")


def in_role(
    role: str, generator: Generator[Any, list[Any], Returned]
) -> Generator[Any, list[Any], Returned]:
    """Runs a generator of requests; those that name no role ask this one.

    Args:
        role: Role of a reader; empty leaves requests as they are.
        generator: Generator that yields lists of requests, a combiner's or a part of one.
    """
    resume: Callable[[], Any] = partial(next, generator)
    while True:
        try:
            requests = resume()
        except StopIteration as stop:
            returned: Returned = stop.value
            return returned
        if isinstance(requests, (list, tuple)):  # whoever runs it tells what is wrong with others
            requests = [_in_role(role, request) for request in requests]
        try:
            answers = yield requests
        except Exception as error:  # of a read: it may be caught within
            resume = partial(generator.throw, error)
        else:
            resume = partial(generator.send, answers)


def _in_role(role: str, request: object) -> object:
    asked = request.read if isinstance(request, Fit) else request
    if not isinstance(asked, Read | Generates) or asked.role:
        return request
    named = dataclasses.replace(asked, role=role)
    return Fit(named, request.behind) if isinstance(request, Fit) else named  # type: ignore[arg-type]
