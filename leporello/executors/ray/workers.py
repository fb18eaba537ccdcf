"""Workers on a Ray cluster: Ray finds room for actors, each of which starts a worker beside it."""

from __future__ import annotations

import platform
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from leporello.config.placement import Placement
from leporello.core.environment.classes import REMAPPED_PATHS
from leporello.executors.interface import BatchSpec
from leporello.executors.local import WorkerProcess
from leporello.executors.pickling import dump
from leporello.executors.pool import PoolWorker, WorkerLink
from leporello.executors.ray.cluster import (
    CapacityWatch,
    check_capacity,
    connected,
    nodes,
    resolved,
    resources,
    worker_resources,
)
from leporello.executors.ray.environment import WorkerEnvironment

_LOOK = 0.2  # seconds between looks at a wish to stop
_REPORTS = 200  # of progress a second, by all workers, at which the driver is at ease
_TRIES = 20  # a node that leaves, or is short of memory, may take many workers with it


class RayWorkers:
    """Actors of a Ray cluster; see `Workplace`."""

    tries = _TRIES
    advice = "what it said stands above, `ray status` shows the cluster; the same command goes on"

    def __init__(self, spec: BatchSpec, placement: Placement) -> None:
        """Connects to nothing yet."""
        self._spec, self._placement = spec, placement
        self._resources = ExitStack()
        self.workers = 1  # until the cluster is known

    def __enter__(self) -> RayWorkers:
        """Connects to Ray.

        Raises:
            UserError: There is no such cluster, or no node of it is large enough.
        """
        with ExitStack() as opening:
            opening.enter_context(connected(self._placement, self._spec))
            self._placement, self.workers = resolved(self._placement, resources())
            check_capacity(self._placement, nodes())
            token = Path(self._spec.directory, f".ray-{self._spec.driver}")
            token.touch()
            opening.callback(token.unlink, missing_ok=True)
            seen = None if self._spec.remote else token  # at a URL each machine has its own copy
            every = max(self._spec.report_every, self.workers / _REPORTS)
            spec = dump(replace(self._spec, report_every=every))
            self._setup = WorkerEnvironment.of(self._spec), spec, self._placement, seen
            self._room = CapacityWatch(self._placement)
            self._resources = opening.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def start(self, others: Sequence[WorkerLink]) -> WorkerLink:  # noqa: ARG002 -- Ray knows where
        """Asks Ray for an actor, which begins when there is room for it."""
        import ray

        options = worker_resources(self._placement)
        actor = ray.remote(ShardActor).options(**options, max_concurrency=2)  # receive and send
        return _ActorLink(actor.remote(*self._setup))

    def ready(self, links: Sequence[WorkerLink]) -> Sequence[WorkerLink]:
        """Returns those that say something, as soon as one does, or after some time none."""
        import ray

        ways = {link.answer: link for link in links if isinstance(link, _ActorLink)}
        if not ray.wait([*ways], timeout=_LOOK)[0]:
            return []
        return [ways[way] for way in ray.wait([*ways], num_returns=len(ways), timeout=0)[0]]

    def watch(self, workers: Sequence[PoolWorker]) -> None:
        """Tells of workers for which the cluster has no room."""
        self._room.look(sum(bool(worker.name) for worker in workers), len(workers))


class _ActorLink:
    """The way to an actor; see `WorkerLink`.

    Attributes:
        answer: What it says next, as Ray refers to it.
    """

    def __init__(self, actor: Any) -> None:  # noqa: ANN401 -- as Ray made it
        self._actor = actor
        self.answer = actor.receive.remote()

    def send(self, message: bytes) -> None:
        """Sends what was dumped; an actor that is gone gets nothing."""
        self._actor.send.remote(message)

    def receive(self) -> bytes:
        """Returns what it says, dumped; of one that is gone, how it died."""
        import ray

        try:
            message: bytes = ray.get(self.answer)
        except ray.exceptions.RayError as error:
            return dump(("died", f"is lost ({str(error).strip().partition(chr(10))[0]})"))
        self.answer = self._actor.receive.remote()
        return message

    def end(self) -> None:
        """Ends the actor, and the process beside it."""
        import ray

        ray.kill(self._actor)


class ShardActor:
    """A worker on a node of the cluster, in a process beside the actor: it may be ended."""

    def __init__(
        self, environment: WorkerEnvironment, spec: bytes, placement: Placement, token: Path | None
    ) -> None:
        """Starts the process.

        Args:
            environment: What the driver has and a worker may lack.
            spec: The batch, dumped.
            placement: Placement with what each worker reserves.
            token: File that the driver keeps in the run's directory; None if workers need not see
                that.
        """
        environment.apply()
        self._lock = threading.Lock()
        self._fault = b""
        if token and not token.exists():
            text = (
                f"{token.parent}: machine {platform.node()} of the Ray cluster does not see this"
                " directory: give an --out that all machines share, or one at a URL (s3://…)"
            )
            self._fault = dump(("failed", text))
            return
        # A GPU that nobody reserved is another's.
        variables = {} if placement.worker_gpus else {"CUDA_VISIBLE_DEVICES": ""}
        self._process = WorkerProcess(spec, placement.threads, variables, remapped=REMAPPED_PATHS)

    def receive(self) -> bytes:
        """Returns what the worker says, dumped."""
        return self._fault or self._process.receive()

    def send(self, message: bytes) -> None:
        """Passes on what the driver says."""
        with self._lock:
            if not self._fault:
                self._process.send(message)
