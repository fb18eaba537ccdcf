"""Whether a cluster has room for workers, and what is told when it has none."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from leporello.config.placement import Placement
from leporello.core.errors import UserError
from leporello.executors.ray.cluster import free_resources, nodes

_PATIENCE = 30.0  # seconds without a worker before that is told
_LONGEST = 600.0  # seconds without a node that could hold one after which the run ends
_log = logging.getLogger("leporello")


def worker_resources(placement: Placement) -> dict[str, float]:
    """Returns what each worker reserves, in Ray's words."""
    memory = {"memory": placement.worker_bytes} if placement.worker_bytes else {}
    return {"num_cpus": placement.worker_cpus, "num_gpus": placement.worker_gpus, **memory}


def resolved(placement: Placement, has: Mapping[str, float]) -> tuple[Placement, int]:
    """Returns what a placement comes to, and how many workers: `auto` is one a GPU, else by CPUs.

    Args:
        placement: Placement that is wanted.
        has: Resources of the cluster, by name.
    """
    if placement.workers != "auto":
        return placement, placement.workers
    gpus = placement.worker_gpus or float(has.get("GPU", 0.0) >= 1)
    count = has.get("CPU", 0.0) // (placement.worker_cpus or 1)
    if gpus:
        count = min(count, has.get("GPU", 0.0) // gpus)
    return replace(placement, worker_gpus=gpus), max(1, int(count))


def check_capacity(placement: Placement, nodes: Sequence[Mapping[str, float]]) -> None:
    """Refuses what no node has, busy or not.

    Args:
        placement: Placement with what each worker reserves.
        nodes: Resources of each node, by name.

    Raises:
        UserError: No node is large enough for a worker.
    """
    demands = (
        ("GPU", "worker_gpus", placement.worker_gpus, 1),
        ("CPU", "worker_cpus", placement.worker_cpus, 1),
        ("memory", "worker_memory", placement.worker_bytes / 2**30, 2**30),
    )
    for resource, setting, needed, unit in demands:
        most = max((node.get(resource, 0.0) / unit for node in nodes), default=0.0)
        if needed > most:
            named = "GiB of memory" if unit > 1 else resource
            raise UserError(
                f"each worker is to reserve {needed:.4g} {named}, and no node of the Ray cluster"
                f" has more than {most:.4g} (`ray status`): lower {setting}, or add such a node"
                " (one at least has to be there before the run, also where the cluster grows by"
                " itself)"
            )


class CapacityWatch:
    """Says in our own words that the cluster has no room."""

    def __init__(self, placement: Placement) -> None:
        """Takes what each worker reserves."""
        self._placement = placement
        self._began = self._looked = self._held = time.monotonic()
        self._has_warned = False

    def look(self, begun: int, workers: int) -> None:
        """Warns once that workers find no room.

        Args:
            begun: Number of workers that have begun.
            workers: Number of workers.

        Raises:
            UserError: For long no node has been there that could hold a worker.
        """
        if (now := time.monotonic()) - self._looked < _PATIENCE:
            return
        self._looked = now
        if begun < workers and not self._has_warned:
            self._has_warned = True
            _log.warning(
                "%d of %d workers have not begun after %.0f s: each is to reserve %s, and of the"
                " Ray cluster is free: %s; waiting goes on, and those that are there work",
                workers - begun, workers, now - self._began,
                worker_resources(self._placement), free_resources(),
            )  # fmt: skip
        try:
            check_capacity(self._placement, nodes())
            self._held = now
        except UserError as error:
            if now - self._held > _LONGEST:
                raise
            _log.warning("%s; waiting goes on", error)
