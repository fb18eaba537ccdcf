"""The connection to Ray: started here or joined, and what has room there."""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from leporello.config.placement import Placement
from leporello.core.environment.platform import cores
from leporello.core.errors import UserError
from leporello.executors.interface import BatchSpec
from leporello.executors.ray.environment import travelling_modules

_PATIENCE = 30.0  # seconds without a worker before that is told
_LONGEST = 600.0  # seconds without a node that could hold one after which the run ends
_log = logging.getLogger("leporello")


def resources() -> Mapping[str, float]:
    """Returns what the cluster has."""
    import ray

    has: Mapping[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]  # Ray leaves it so
    return has


def free_resources() -> dict[str, float]:
    """Returns what nobody on the cluster has reserved."""
    import ray

    free = ray.available_resources()  # type: ignore[no-untyped-call]  # as above
    return {name: free.get(name, 0.0) for name in ("CPU", "GPU", "memory")}


def nodes() -> list[Mapping[str, float]]:
    """Returns what each node of the cluster has."""
    import ray

    return [node["Resources"] for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]  # as above


@contextmanager
def connected(placement: Placement, spec: BatchSpec) -> Iterator[None]:
    """Connects to Ray for as long as the block runs; workers end with it.

    Raises:
        UserError: There is no such cluster, or no Ray can be started here.
    """
    _set_up()
    import ray

    if ray.is_initialized():  # whoever did that is to end it
        _check_connected(placement)
        yield
        return
    with TemporaryDirectory() as folder:
        try:
            _connect(placement, travelling_modules(spec, Path(folder)))
            yield
        finally:
            ray.shutdown()


def _set_up() -> None:
    """Sets what Ray reads when it is imported: only what the user has not set."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody
    # `uv run` would have Ray pack the folder that the command is run in, whatever lies there.
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    if "ray" in sys.modules:
        return
    # A token is shown where there is one, as `ray start` does; a cluster without takes it.
    token = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    if token or (Path.home() / ".ray" / "auth_token").exists():
        os.environ.setdefault("RAY_AUTH_MODE", "token")


def _connect(placement: Placement, modules: list[str]) -> None:
    import ray
    from ray._private import ray_constants

    # Otherwise it takes another address of this machine for 127.0.0.1, and listens on all of them.
    ray_constants.ENABLE_RAY_CLUSTER = bool(placement.address)
    options: dict[str, Any] = {"address": "local", "include_dashboard": False}
    if placement.address:
        options = {"address": placement.address, "runtime_env": {"py_modules": modules}}
    else:  # nobody else is to reach it; and all workers are to find room
        needed = 0 if placement.workers == "auto" else placement.workers * placement.worker_cpus
        cpus = max(cores(), math.ceil(needed))
        options.update(num_cpus=cpus, _node_ip_address="127.0.0.1")
    try:
        if ":" in placement.address:  # Ray itself tries for minutes
            host, _, port = placement.address.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
        with _kept_handler(signal.SIGTERM):  # Ray takes it as it starts
            ray.init(**options, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        where = f"at {placement.address}" if placement.address else "on this machine"
        first = str(error).strip().partition("\n")[0]
        raise UserError(
            f"Ray {where} cannot be had: {first}; `ray status` shows whether a cluster runs here,"
            " `ray start --head` starts one"
        ) from error


def _check_connected(placement: Placement) -> None:
    """Refuses another cluster than the one that this process is connected to already."""
    import ray

    connected = ray.get_runtime_context().gcs_address
    if placement.address not in ("", "auto", connected):
        raise UserError(
            f"this process is connected to Ray at {connected}, and address is"
            f" {placement.address}: leave it out, or call ray.shutdown() before"
        )


@contextmanager
def _kept_handler(number: int) -> Iterator[None]:
    """Gives a signal back to who handles it now, if the block has it handled otherwise."""
    before = signal.getsignal(number)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(number, before)


# -- room ------------------------------------------------------------------------------------


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
