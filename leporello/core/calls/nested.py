"""What is asked of a stage and of those nested in it: models, files, a whole combination."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Sequence
from typing import Any

from leporello.core.protocols import ChecksFiles, Combiner
from leporello.core.records import JSON, Combination, Example, Hit


def run_combiner(combiner: Combiner, example: Example, hits: Sequence[Hit]) -> Combination:
    """Runs a combiner to its end, also one that answers at once, and returns what it returns."""
    result: Any = combiner.combine(example, hits)
    if inspect.isgenerator(result):
        result = yield from result
    answer: JSON = result
    return answer


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
