"""What every actor of a run is told, and what it makes of it."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from leporello.cache import Cache
from leporello.config import Built, PipelineSpec, TaskSpec
from leporello.config.classes import ClassError
from leporello.crew import Crew
from leporello.errors import UserError
from leporello.executors.on_ray.kit import Kit
from leporello.executors.sending import opened
from leporello.metrics import make_metrics
from leporello.models import cache_directory
from leporello.sources import source_hash
from leporello.stages import Task
from leporello.supply import normaliser_of
from leporello.workshop import Workshop

__all__ = ["Bench", "Orders", "told"]

T = TypeVar("T")


@dataclass(frozen=True)
class Orders:
    """What a run is.

    Attributes:
        pipelines: By the places that errands name.
        task: Of all of them.
        limit: Examples at most.
        timeout: Seconds that a call may take for each example in it; None is no limit.
        cached: Whether to use and fill the cache of the actor's machine.
        classes: All that the pipelines and the task name, by their names.
        sources: The hash of the source of each.
        replicas: Actors that read.
        gpus: Of each of these.
        cpus: Likewise.
    """

    pipelines: Sequence[PipelineSpec]
    task: TaskSpec
    limit: int | None
    timeout: float | None
    cached: bool
    classes: Mapping[str, type]
    sources: Mapping[str, str]
    replicas: int
    gpus: float
    cpus: float


class Bench:
    """An actor's tools: built from its orders when they are first used."""

    def __init__(self, orders: bytes, kit: Kit) -> None:
        """Opens nothing yet, since that can fail.

        Args:
            orders: `Orders`, as `dump` leaves them.
            kit: Put on at once.
        """
        self._orders, self.kit = orders, kit
        kit.put_on()

    @cached_property
    def orders(self) -> Orders:
        """What the run is.

        Raises:
            UserError: A class that it names is not to be had here, or is another one.
        """
        self.kit.unpack()
        try:
            orders: Orders = opened(self._orders)
        except (ImportError, ClassError) as error:
            raise UserError(
                f"{platform.node()} cannot import what the pipelines name: {error}; install it on"
                " all machines of the cluster"
            ) from error
        for name, known in orders.sources.items():
            if source_hash(orders.classes[name]) != known:
                raise UserError(
                    f"{name} is not the same on {platform.node()} as where the command runs;"
                    " install one version of it on all machines of the cluster"
                )
        return orders

    @cached_property
    def task(self) -> Task:
        """The task, built."""
        built: Task = self.orders.task.spec.build()
        return built

    @cached_property
    def stages(self) -> Sequence[Built]:
        """Of each pipeline."""
        workshop = Workshop()
        return [workshop.build(pipeline) for pipeline in self.orders.pipelines]

    @cached_property
    def cache(self) -> Cache | None:
        """Of this machine; None keeps nothing."""
        return Cache(cache_directory()) if self.orders.cached else None

    def crew(self, place: int) -> Crew:
        """Returns a new crew for a pipeline."""
        return Crew(
            self.stages[place],
            make_metrics(self.task.metrics),
            normaliser_of(self.task),
            self.orders.timeout,
        )


def told(work: Callable[[], T]) -> T | UserError:
    """Returns what work comes to; a mistake of the user's is an answer too."""
    try:
        return work()
    except UserError as error:
        return UserError(str(error))
