"""Placement of a run's work: processes of this machine, or actors of a Ray cluster."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from annotated_types import Ge
from pydantic import AllowInfNan

from leporello.config.parameters import setting, settings_of
from leporello.core.environment.extras import require
from leporello.core.environment.platform import cores, memory_free
from leporello.core.errors import ConfigError
from leporello.core.protocols import Count, Positive
from leporello.core.yaml.tree import Tree

ExecutorName: TypeAlias = Literal["local", "ray"]
Auto: TypeAlias = Literal["auto"]
Amount: TypeAlias = Annotated[float, Ge(0), AllowInfNan(False)]

_PORT = 6379  # default port of `ray start --head`
_LAST_PORT = 65_535
_ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]+))?")
# The rest is for activations, documents and the libraries.
_MODEL_SHARE = 1.5  # memory of a worker, as a multiple of its model's size


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a run works, and with how many workers; only `threads` may change results.

    Attributes:
        executor: `local` runs in processes of this machine, `ray` in actors of a Ray cluster.
        address: Address of a Ray cluster: `auto` for the cluster of this machine, or HOST:PORT with
            6379 as the default port. If empty, the run starts Ray on this machine and stops it at
            the end.
        workers: Number of processes or actors that run shards, each with its own model; 0, only for
            `local`, is this process; `auto` is one per GPU, or without GPUs the number that cores
            and memory allow.
        selectors: Number of processes per worker that chunk and retrieve ahead of its reader; with
            0 the worker does so itself.
        worker_cpus: CPUs that each worker reserves on Ray, including those of its selectors.
        worker_gpus: GPUs that each worker reserves on Ray; below 1, several workers share a GPU.
            Locally, each of several workers has its own GPU if there are any.
        threads: Threads of each worker on its CPUs. A model's output may depend on it, so runs with
            different numbers count as different.
    """

    executor: ExecutorName = "local"
    address: str = ""
    workers: Count | Auto = 1
    selectors: Count = 0
    worker_cpus: Amount = 1.0
    worker_gpus: Amount = 0.0
    threads: Positive = 1

    def count(self, model_bytes: int = 0) -> int:
        """Returns the number of workers on this machine; 0 is this process."""
        if self.workers != "auto":
            return self.workers
        if gpus := visible_gpus():
            return len(gpus)
        # Each worker has its own copy of the model; the machine must not swap.
        fitting = memory_free() // (_MODEL_SHARE * model_bytes) if model_bytes else cores()
        return max(1, min(cores() // self.threads, int(fitting)))

    def check(self) -> None:
        """Raises UserError if the executor is not installed."""
        if self.executor == "ray":
            require("executor: ray", "ray")

    def __str__(self) -> str:
        ray = "Ray on this machine" if not self.address else f"Ray at {self.address}"
        place = "this machine" if self.executor == "local" else ray
        reserved = f" with {self.worker_gpus:g} GPUs each" if self.worker_gpus else ""
        ahead = f", selectors: {self.selectors} per worker" if self.selectors else ""
        return f"{place}, workers: {self.workers}{reserved}{ahead}"


_DEFAULT = Placement()
RAY_ONLY = ("address", "worker_cpus", "worker_gpus")


def _problems(placement: Placement) -> Iterator[tuple[str, str]]:
    """Yields settings that are not valid, alone or with the others, and their problems."""
    if placement.executor == "local":
        for name in RAY_ONLY:
            if getattr(placement, name) != getattr(_DEFAULT, name):
                gpus = ": on this machine each of several workers has its own GPU, if there are any"
                why = gpus if name == "worker_gpus" else ""
                yield name, f"applies only to Ray{why}; add `executor: ray`, or leave it out"
        if placement.workers == 0 and placement.selectors:
            yield "selectors", "need a worker, and there are 0: give workers: 1"
    else:
        if placement.workers == 0:
            yield "workers", "0 means this process, which is not on Ray: give 1 or more, or `auto`"
        if placement.worker_gpus > 1 and placement.worker_gpus % 1:
            yield "worker_gpus", f"must be a whole number if above 1, got {placement.worker_gpus:g}"


def _full_address(text: str) -> str:
    """Returns a cluster's address as HOST:PORT, or `auto`; raises ValueError for other texts."""
    if text in ("", "auto"):
        return text
    match = _ADDRESS.fullmatch(text)
    port = int(match["port"] or _PORT) if match else 0
    if match is None or not 0 < port <= _LAST_PORT:
        raise ValueError(
            f"must be `auto`, HOST or HOST:PORT, such as 10.0.0.5:{_PORT}, got {text!r}"
        )
    return f"{match['host']}:{port}"


def visible_gpus() -> list[str]:
    """Returns the names of this machine's GPUs, without those that are hidden."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name for name in visible.split(",") if name]
    devices = Path("/dev").glob("nvidia[0-9]*")  # avoids importing a library
    return [str(number) for number, _ in enumerate(devices)]


def check_placement(path: str, tree: Tree) -> Placement:
    """Returns the checked `placement` of a pipeline; raises ConfigError."""
    placement = Placement(**settings_of(path, tree, _setting))
    problems = _problems(placement)
    if faults := [tree.items[name].fault(f"{path}.{name}: {text}") for name, text in problems]:
        raise ConfigError(faults)
    return placement


def _setting(name: str, tree: Tree) -> Any:  # noqa: ANN401 -- of any setting
    if isinstance(tree.value, list) or name == "sweep" or "sweep" in tree.items:
        raise ValueError("takes one value and cannot be swept: no result depends on a placement")
    value = setting(Placement, name, tree)
    return _full_address(value) if name == "address" else value
