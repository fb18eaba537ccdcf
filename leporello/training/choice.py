"""The one pipeline and the one task that a verb works with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from leporello.config import PipelineSpec, TaskSpec
from leporello.core.errors import UserError

_NAMED = 5  # of many, in a message

T = TypeVar("T", PipelineSpec, TaskSpec)


def only(verb: str, choices: Sequence[T]) -> T:
    """Returns the pipeline or task, if it is one.

    Args:
        verb: Name of the verb that takes one; for messages.
        choices: Pipelines or tasks, one at least.

    Raises:
        UserError: There are several.
    """
    if len(choices) > 1:
        kind = "task" if isinstance(choices[0], TaskSpec) else "pipeline"
        names = ", ".join(choice.name for choice in choices[:_NAMED])
        raise UserError(f"{verb} takes one {kind}, and these are {len(choices)}: {names}; name one")
    return choices[0]
