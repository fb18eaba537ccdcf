"""Where a run's work happens: in processes of this machine, or in actors of a Ray cluster."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from annotated_types import Ge
from pydantic import AllowInfNan

from leporello.config.parameters import setting, settings_of
from leporello.core.environment.extras import require
from leporello.core.environment.platform import cores, memory_free
from leporello.core.errors import ConfigError, Fault
from leporello.core.protocols import Count, Positive
from leporello.core.yaml.tree import Tree

T = TypeVar("T")

ExecutorName: TypeAlias = Literal["local", "ray"]
Auto: TypeAlias = Literal["auto"]
Amount: TypeAlias = Annotated[float, Ge(0), AllowInfNan(False)]

_PORT = 6379  # of a cluster's head, unless `ray start --port` says another
_LAST_PORT = 65_535
_ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]+))?")
_MEMORY = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT]i?)?B", re.ASCII)
_BYTES = {letter: power for power, letter in enumerate("KMGT", 1)}
_MODEL_SHARE = 1.5  # times a model's size that a worker with it takes


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a run's work happens, and by how many; no result depends on it but by `threads`.

    Attributes:
        executor: `local` works in processes of this machine, `ray` in actors of a Ray cluster.
        address: Address of a Ray cluster: `auto`, for the one that this machine belongs to, or
            HOST:PORT; 6379 is the port if none is given. If empty, a Ray is started on this
            machine, which ends with the run.
        workers: Number of processes or actors that work at shards, each with its own model; 0, for
            `local` alone, is this process; `auto` is one a GPU, or else as many as cores and memory
            hold.
        selectors: Number of processes a worker that divide and select ahead of its reader; 0 does
            it in the worker.
        worker_cpus: CPUs that each worker reserves on Ray, those of its selectors included.
        worker_gpus: GPUs that each worker reserves on Ray; below 1, several share one. Locally each
            of several workers has a GPU to itself, where there are any.
        worker_memory: Memory of each worker, as `4GiB`: reserved on Ray, the most that it gets on
            this machine; if empty, there is no limit.
        threads: Threads of each worker on its CPUs. A model's words may depend on it, so another
            number is a difference like any other.
    """

    executor: ExecutorName = "local"
    address: str = ""
    workers: Count | Auto = 1
    selectors: Count = 0
    worker_cpus: Amount = 1.0
    worker_gpus: Amount = 0.0
    worker_memory: str = ""
    threads: Positive = 1

    def __post_init__(self) -> None:
        problems = problems_of({name: getattr(self, name) for name in _DEFAULTS})
        if problems:
            raise ValueError("; ".join(f"{name}: {text}" for name, text in problems.items()))
        object.__setattr__(self, "address", full_address(self.address))  # before it is seen

    def count(self, model_bytes: int = 0) -> int:
        """Returns how many workers this machine has; 0 is this process."""
        if self.workers != "auto":
            return self.workers
        if gpus := visible_gpus():
            return len(gpus)
        fitting = memory_free() // (_MODEL_SHARE * model_bytes) if model_bytes else cores()
        return max(1, min(cores() // self.threads, int(fitting)))

    @property
    def worker_bytes(self) -> int:
        """Memory of each worker; 0 is no limit."""
        return _bytes_in(self.worker_memory)

    def check(self) -> None:
        """Looks whether the executor is installed, before any work.

        Raises:
            UserError: It is not.
        """
        if self.executor == "ray":
            require("executor: ray", "ray")

    def __str__(self) -> str:
        """Returns one line for people."""
        ray = "a Ray started on this machine" if not self.address else f"Ray at {self.address}"
        where = "this machine" if self.executor == "local" else ray
        reserved = f" with {self.worker_gpus:g} GPUs each" if self.worker_gpus else ""
        ahead = f", selectors: {self.selectors} a worker" if self.selectors else ""
        return f"{where}, workers: {self.workers}{reserved}{ahead}"


_DEFAULTS: Mapping[str, Any] = {each.name: each.default for each in fields(Placement)}
_RAYS = ("address", "worker_cpus", "worker_gpus")


def kept_under(below: Mapping[str, T], executor: object) -> dict[str, T]:
    """Returns which settings still hold where something laid over them names an executor.

    What Ray alone knows does not reach `local`, so that one word takes a run off the cluster.

    Args:
        below: Values by setting: a parent's, or the pipeline's under the command line.
        executor: The executor that is laid over them; None if none is named there.
    """
    left_out = _RAYS if executor == "local" else ()
    return {name: value for name, value in below.items() if name not in left_out}


def problems_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """Returns what is wrong with settings beside each other, by setting.

    Args:
        settings: Values of the right types, by setting; those left out have their defaults.
    """
    values = {**_DEFAULTS, **settings}
    on_ray = values["executor"] == "ray"
    problems = dict(_problems_on_ray(values) if on_ray else _problems_here(values))
    for name, check in (("address", full_address), ("worker_memory", _bytes_in)):
        try:
            if name not in problems:
                check(values[name])
        except ValueError as error:
            problems[name] = str(error)
    return problems


def _problems_here(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in _RAYS:
        if values[name] != _DEFAULTS[name]:
            gpus = ": here each of several workers has a GPU to itself, where there are any"
            why = gpus if name == "worker_gpus" else ""
            yield name, f"is Ray's alone{why}; say `executor: ray` as well, or leave it out"
    if values["workers"] == 0 and values["selectors"]:
        yield "selectors", "are kept by workers, and 0 workers are none: give workers: 1"


def _problems_on_ray(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if values["workers"] == 0:
        yield "workers", "0 works in this process, which is not on Ray: give 1 or more, or `auto`"
    gpus = values["worker_gpus"]
    if gpus > 1 and gpus % 1:
        yield "worker_gpus", f"above 1, Ray gives whole GPUs only, got {gpus:g}"


def full_address(text: str) -> str:
    """Returns HOST:PORT of a cluster's address; `auto` and nothing stay.

    Raises:
        ValueError: It is no address.
    """
    if text in ("", "auto"):
        return text
    if "://" in text:
        raise ValueError(
            f"{text!r} is for clients from elsewhere: run the command on a machine of the cluster"
            " with `auto`, or submit it with `ray job submit`"
        )
    if text == "local":
        raise ValueError("leave it out to start a Ray on this machine, rather than say 'local'")
    match = _ADDRESS.fullmatch(text)
    port = int(match["port"] or _PORT) if match else 0
    if match is None or not 0 < port <= _LAST_PORT:
        raise ValueError(
            f"must be `auto`, HOST or HOST:PORT of the cluster, as 10.0.0.5:{_PORT}, got {text!r}"
        )
    return f"{match['host']}:{port}"


def _bytes_in(text: str) -> int:
    """Returns the bytes that `4GiB` or `500MB` means; an empty text is 0."""
    if not text:
        return 0
    match = _MEMORY.fullmatch(text)
    if match is None or not float(match[1]):
        raise ValueError(f"must be a size, as 4GiB or 500MB, got {text!r}")
    unit = match[2] or ""
    base = 1024 if unit.endswith("i") else 1000
    return int(float(match[1]) * base ** _BYTES.get(unit[:1], 0))


def visible_gpus() -> list[str]:
    """Returns the names of this machine's GPUs, as far as they are not hidden."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name for name in visible.split(",") if name]
    devices = Path("/dev").glob("nvidia[0-9]*")  # no library is loaded for it
    return [str(number) for number, _ in enumerate(devices)]


# A list in a file; what `--set placement.workers=1,2` comes to.
_SWEPT = "takes one value: where a run works is no part of what it is, so it is not swept"


@dataclass(frozen=True)
class PlacementSpec:
    """What `placement:` says.

    Attributes:
        given: Values that are written, by setting, checked.
    """

    given: Mapping[str, Any] = field(default_factory=dict)

    def under(self, flags: PlacementSpec, owner: str) -> Placement:
        """Returns the placement: what the flags say, else this, else the defaults.

        Raises:
            ConfigError: They contradict each other.
        """
        values = {**kept_under(self.given, flags.given.get("executor")), **flags.given}
        if problems := problems_of(values):
            texts = (f"{owner}.placement.{name}: {text}" for name, text in problems.items())
            raise ConfigError([Fault(None, 0, text) for text in texts])
        return Placement(**values)


def placement_flags(given: Mapping[str, Any]) -> PlacementSpec:
    """Checks what the command line says of the placement.

    Args:
        given: Values by setting; None leaves what the pipeline says.

    Raises:
        ConfigError: A value that means nothing.
    """
    trees = {n: Tree(value, None, 0) for n, value in given.items() if value is not None}
    values, faults = settings_of("placement", Tree({**trees}, None, 0), _setting)
    if faults:
        raise ConfigError(faults)
    return PlacementSpec(values)


def check_placement(owner: str, tree: Tree) -> tuple[PlacementSpec, list[Fault]]:
    """Checks the `placement` of a pipeline, and returns all that is wrong with it too."""
    given, faults = settings_of(f"{owner}.placement", tree, _setting)
    if not faults:
        faults = [
            tree.items[name].fault(f"{owner}.placement.{name}: {text}")
            for name, text in problems_of(given).items()
        ]
    return PlacementSpec(given), faults


def _setting(name: str, tree: Tree) -> tuple[Any, str | None]:
    if isinstance(tree.value, list) or name == "sweep" or "sweep" in tree.items:
        return None, _SWEPT
    return setting(Placement, name, tree)
