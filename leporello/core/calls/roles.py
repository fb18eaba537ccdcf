"""Which reader a generator's requests are for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, TypeVar

from leporello.core.records import Fit, Generates, Read

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
