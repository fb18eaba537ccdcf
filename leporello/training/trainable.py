"""Which stages can be trained, and how."""

from __future__ import annotations

from typing import Any

from leporello.config import Pipeline
from leporello.core.errors import UserError
from leporello.core.protocols import FineTunes, Learns, Supervises


def tuner_of(reader: Any) -> str:  # noqa: ANN401 -- any reader
    """Returns what fine-tunes a reader's model; empty if it learns by itself, or not at all."""
    return reader.trainer if isinstance(reader, FineTunes) else ""


def check_trainable(pipeline: str, stages: Pipeline) -> None:
    """Refuses a pipeline whose reader learns nothing, or whose combiner cannot say what.

    Raises:
        UserError: It is such.
    """
    reader, combiner = stages.reader, stages.combiner
    if not (tuner_of(reader) or isinstance(reader, Learns)):
        raise UserError(
            f"pipeline {pipeline!r} cannot be trained: its reader {type(reader).__name__} has no"
            " method `learn`, and no model that is fine-tuned; docs/training.md names those that"
            " have"
        )
    if not isinstance(combiner, Supervises):
        raise UserError(
            f"pipeline {pipeline!r} cannot be trained: its combiner {type(combiner).__name__} has"
            " no method `supervise`, for of the reference it cannot tell what each read should"
            " come to; train with Stuff, and use the model with it"
        )
