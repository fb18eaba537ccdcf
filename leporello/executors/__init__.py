"""Where a run's work happens: on this machine, or on Ray."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from leporello.executors.local import Local
from leporello.executors.site import Assignment, Site

__all__ = ["site_of"]


def site_of(assignment: Assignment) -> AbstractContextManager[Site[Any]]:
    """Returns the place where an assignment is to be carried out."""
    placement = assignment.jobs[0].placement
    if placement.executor == "local":
        return Local(assignment)
    from leporello.executors.on_ray.site import OnRay

    return OnRay(assignment)
