"""Ending actors."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

__all__ = ["kill"]


def kill(actor: Any) -> None:  # noqa: ANN401 -- Ray makes its classes as it runs
    """Ends an actor, if it is still there."""
    import ray

    if ray.is_initialized():  # else it has ended with Ray
        with suppress(ray.exceptions.RayError):
            ray.kill(actor)
