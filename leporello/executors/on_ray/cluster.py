"""The connection to Ray, and the actors of a run on it."""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from leporello.errors import UserError
from leporello.executors.beside import module_paths
from leporello.executors.on_ray.ingest import Ingest
from leporello.executors.on_ray.kit import Kit
from leporello.executors.on_ray.lead import Lead
from leporello.executors.on_ray.orders import Orders
from leporello.executors.on_ray.parcel import parcel
from leporello.executors.on_ray.room import check_room
from leporello.executors.on_ray.worker import Worker
from leporello.executors.sending import dump
from leporello.executors.site import Assignment
from leporello.placement import Placement
from leporello.reading import inputs_at_once
from leporello.sources import OWN, source_hash

__all__ = ["Actors", "Share", "connected", "share"]

# What actors are to have of this process's environment, besides the pipelines' keys.
_PREFIXES = ("LEPORELLO_", "HF_", "TRANSFORMERS_", "AWS_", "GOOGLE_", "FSSPEC_")


@dataclass(frozen=True, slots=True)
class Share:
    """How many actors a run has of a cluster.

    Attributes:
        workers: That divide, select and combine.
        replicas: That read.
        gpus: Of each of these.
    """

    workers: int
    replicas: int
    gpus: float


def share(placement: Placement, cpus: float, gpus: float) -> Share:
    """Returns what a placement comes to on a cluster of so many CPUs and GPUs.

    `auto` replicas are one a GPU, or else half of the cores; `auto` workers are what is left.
    """
    each = placement.reader_gpus
    if placement.reader_replicas == "auto" and not each:
        each = float(gpus >= 1)
    replicas = _replicas(placement, cpus, gpus, each)
    if placement.workers != "auto":
        return Share(placement.workers, replicas, each)
    left = (cpus - _reading(replicas) * placement.reader_cpus) // (placement.worker_cpus or 1)
    if placement.worker_gpus:
        left = min(left, (gpus - replicas * each) // placement.worker_gpus)
    return Share(max(1, int(left)), replicas, each)


def _replicas(placement: Placement, cpus: float, gpus: float, each: float) -> int:
    """Returns how many read; where neither is known, workers have half of what both need."""
    if placement.reader_replicas != "auto":
        return placement.reader_replicas
    workers = placement.workers
    if each:
        half = gpus / 2 if placement.worker_gpus else gpus
        free = half if workers == "auto" else gpus - workers * placement.worker_gpus
        return max(1, int(free // each))
    free = cpus / 2 if workers == "auto" else cpus - workers * placement.worker_cpus
    return max(1, int(free // (placement.reader_cpus or 1)))


def _reading(replicas: int) -> int:
    """Returns how many actors have to do with reading: one leads several."""
    return replicas + (replicas > 1)


@dataclass(frozen=True)
class Actors:
    """Starts the actors of a run.

    Attributes:
        assignment: What is run.
        share: How many there are.
    """

    assignment: Assignment
    share: Share

    @property
    def workers(self) -> int:
        """Actors that divide, select and combine."""
        return self.share.workers

    @property
    def at_once(self) -> int:
        """Inputs in one window."""
        reader = self.assignment.stages[0].reader
        return max(self.assignment.means.limits.inputs, inputs_at_once(reader))

    def worker(self) -> Any:  # noqa: ANN401 -- Ray makes its classes as it runs
        """Starts an actor that divides, selects and combines."""
        placement = self._placement
        memory = {"memory": placement.worker_bytes} if placement.worker_bytes else {}
        each = {"num_cpus": placement.worker_cpus, "num_gpus": placement.worker_gpus}
        return self._start(Worker, **each, **memory)

    def lead(self) -> Any:  # noqa: ANN401 -- as above
        """Starts the actor that reads, or has others read."""
        gpus = self.share.gpus if self.share.replicas == 1 else 0
        return self._start(Lead, num_cpus=self._placement.reader_cpus, num_gpus=gpus)

    def ingest(self) -> Any:  # noqa: ANN401 -- as above
        """Starts the actor that reads the data, beside this process: the files are here."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        return self._start(Ingest, num_cpus=0, scheduling_strategy=here)

    def _start(self, actor: type, **options: Any) -> Any:  # noqa: ANN401 -- Ray's own
        import ray

        made: Any = ray.remote(actor).options(
            max_restarts=0,  # what it held would be gone
            **options,
        )
        return made.remote(self._orders, self._kit)

    @property
    def _placement(self) -> Placement:
        return self.assignment.jobs[0].placement

    @cached_property
    def _orders(self) -> Any:  # noqa: ANN401 -- an ObjectRef
        import ray

        assignment, jobs = self.assignment, self.assignment.jobs
        orders = Orders(
            pipelines=[job.pipeline for job in jobs],
            task=jobs[0].task,
            limit=assignment.means.limit,
            timeout=assignment.means.limits.example_timeout,
            cached=assignment.means.cache is not None,
            classes=self._classes,
            sources={name: source_hash(cls) for name, cls in self._classes.items()},
            replicas=self.share.replicas,
            gpus=self.share.gpus,
            cpus=self._placement.reader_cpus,
        )
        return ray.put(dump(orders))

    @cached_property
    def _classes(self) -> Mapping[str, type]:
        """All that the pipelines and the task name."""
        stages = [s for job in self.assignment.jobs for s in job.pipeline.stages.values()]
        specs = [*stages, self.assignment.jobs[0].task.spec]
        return {each.name: each.cls for spec in specs for each in spec.all_specs()}

    @cached_property
    def _kit(self) -> Any:  # noqa: ANN401 -- an ObjectRef: no key stands in what Ray keeps of actors
        import ray

        jobs = self.assignment.jobs
        keys = {name.removeprefix("$") for job in jobs for name in job.pipeline.variables()}
        environment = {
            name: value
            for name, value in os.environ.items()
            if name.startswith(_PREFIXES) or name in keys
        }
        return ray.put(Kit(environment, module_paths(), parcel(self._classes.values())))


@contextmanager
def connected(assignment: Assignment) -> Iterator[Actors]:
    """Connects to Ray for as long as the block runs; the actors end with it.

    Raises:
        UserError: There is no such cluster, or no Ray can be started here.
    """
    placement = assignment.jobs[0].placement
    _show_token()
    import ray

    ours = not ray.is_initialized()  # else whoever did that is to end it
    if ours:
        _connect(placement)
    else:
        _check_connected(placement)
    try:
        has = ray.cluster_resources()  # type: ignore[no-untyped-call]  # Ray leaves it so
        made = Actors(assignment, share(placement, has.get("CPU", 0.0), has.get("GPU", 0.0)))
        worker = (placement.worker_gpus, placement.worker_cpus, placement.worker_bytes)
        check_room("worker", *worker)
        check_room("reader", made.share.gpus, placement.reader_cpus)
        yield made
    finally:
        if ours:
            ray.shutdown()


def _show_token() -> None:
    """Has Ray show a token where there is one, as `ray start` does; a cluster without takes it.

    It is read when Ray is imported.
    """
    if "ray" in sys.modules:
        return
    given = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    if given or (Path.home() / ".ray" / "auth_token").exists():
        os.environ.setdefault("RAY_AUTH_MODE", "token")


def _connect(placement: Placement) -> None:
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody
    here = {"address": "local", "num_cpus": _cpus_for(placement), "include_dashboard": False}
    there = {"address": placement.address, "runtime_env": {"py_modules": _packages()}}
    options: dict[str, Any] = there if placement.address else here
    try:
        if ":" in placement.address:  # Ray itself tries for minutes
            host, _, port = placement.address.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
        with _own_signals():
            ray.init(**options, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        where = f"at {placement.address}" if placement.address else "on this machine"
        first = str(error).strip().partition("\n")[0]
        raise UserError(
            f"Ray {where} cannot be had: {first}; `ray status` shows whether a cluster runs here,"
            " `ray start --head` starts one"
        ) from error


@contextmanager
def _own_signals() -> Iterator[None]:
    """Gives SIGTERM back to the run, which it asks for a clean end; Ray takes it as it starts."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def _check_connected(placement: Placement) -> None:
    """Refuses another cluster than the one that this process is connected to already."""
    import ray

    there = ray.get_runtime_context().gcs_address
    if placement.address not in ("", "auto", there):
        raise UserError(
            f"this process is connected to Ray at {there}, and address is"
            f" {placement.address}: leave it out, or call ray.shutdown() before"
        )


def _cpus_for(placement: Placement) -> int:
    """Returns how many CPUs a Ray of one's own must believe in, for all actors to find room."""
    cores = placement.cores
    asked = share(placement, cores, 0.0)
    reading = _reading(asked.replicas) * placement.reader_cpus
    return max(cores, math.ceil(asked.workers * placement.worker_cpus + reading))


def _packages() -> list[str]:
    """Returns the folders of Leporello's own packages: a cluster's machines need not have them."""
    top = Path(__file__).parents[3]
    return [str(top / name) for name in sorted(OWN)]
