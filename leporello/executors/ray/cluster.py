"""Connects to a Ray cluster, or starts Ray here, and checks the capacity for workers."""

import logging
import math
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from leporello.config.placement import Placement
from leporello.core.environment.platform import cores
from leporello.core.errors import UserError


@contextmanager
def connected(placement: Placement, modules: Callable[[Path], list[str]]) -> Iterator[None]:
    """Connects to Ray while the block runs; workers end with the connection.

    `modules` returns the folders to send; it may write to the given folder.
    """
    _set_up()
    import ray

    if ray.is_initialized():  # its caller shuts it down
        address = ray.get_runtime_context().gcs_address
        if placement.address not in ("", "auto", address):
            raise UserError(
                f"this process is connected to Ray at {address}, but address is"
                f" {placement.address}; omit the address, or call ray.shutdown() first"
            )
        yield
        return
    with TemporaryDirectory() as folder:
        try:
            _connect(placement, modules(Path(folder)))
            yield
        finally:
            ray.shutdown()


def _set_up() -> None:
    """Sets environment variables that Ray reads at import, unless the user has set them."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
    # With `uv run`, Ray would send all files of the current folder to the workers.
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    if "ray" in sys.modules:
        return
    # If a token exists, send it, as `ray start` does; a cluster without tokens accepts it.
    token = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    if token or (Path.home() / ".ray" / "auth_token").exists():
        os.environ.setdefault("RAY_AUTH_MODE", "token")


def _connect(placement: Placement, modules: list[str]) -> None:
    import ray
    from ray._private import ray_constants

    # Otherwise Ray replaces 127.0.0.1 by another address of this machine, and listens on all.
    ray_constants.ENABLE_RAY_CLUSTER = bool(placement.address)
    options: dict[str, Any] = {"address": "local", "include_dashboard": False}
    if placement.address:
        options = {"address": placement.address, "runtime_env": {"py_modules": modules}}
    else:  # not reachable from other machines, and with enough CPUs for all workers
        needed = 0 if placement.workers == "auto" else placement.workers * placement.worker_cpus
        # Ray starts no worker beyond the cores that it knows, even if workers wait for a server.
        cpus = max(cores(), math.ceil(needed))
        options.update(num_cpus=cpus, _node_ip_address="127.0.0.1")
    handler = signal.getsignal(signal.SIGTERM)
    try:
        if ":" in placement.address:  # check first: Ray itself retries for minutes
            host, _, port = placement.address.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
        ray.init(**options, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        where = f"at {placement.address}" if placement.address else "on this machine"
        first = str(error).strip().partition("\n")[0]
        raise UserError(
            f"Ray {where} is not available: {first}; `ray status` shows whether a cluster runs"
            " here, `ray start --head` starts one"
        ) from error
    finally:
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray has replaced it


# -- capacity --------------------------------------------------------------------------------


def worker_resources(placement: Placement) -> dict[str, float]:
    """Returns the resources that each worker reserves, with Ray's names."""
    return {"num_cpus": placement.worker_cpus, "num_gpus": placement.worker_gpus}


def resolved(placement: Placement, total: Mapping[str, float]) -> tuple[Placement, int]:
    """Returns a placement with the resources per worker, and the number of workers on a cluster."""
    if placement.workers != "auto":
        return placement, placement.workers
    gpus = placement.worker_gpus or float(total.get("GPU", 0.0) >= 1)
    count = total.get("CPU", 0.0) // (placement.worker_cpus or 1)
    if gpus:
        count = min(count, total.get("GPU", 0.0) // gpus)
    return replace(placement, worker_gpus=gpus), max(1, int(count))


def check_capacity(placement: Placement, nodes: Sequence[Mapping[str, float]]) -> None:
    """Raises UserError if none of these nodes is large enough for a worker, even when idle."""
    demands = (
        ("GPU", "worker_gpus", placement.worker_gpus),
        ("CPU", "worker_cpus", placement.worker_cpus),
    )
    for resource, parameter, needed in demands:
        most = max((node.get(resource, 0.0) for node in nodes), default=0.0)
        if needed > most:
            raise UserError(
                f"each worker must reserve {needed:.4g} {resource}, but no node of the Ray cluster"
                f" has more than {most:.4g} (`ray status`); lower {parameter}, or add such a node"
                " (at least one must exist before the run, even if the cluster scales by itself)"
            )
