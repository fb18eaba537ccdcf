"""Where a run's work happens: in processes of this machine, or in actors of a Ray cluster."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from annotated_types import Ge
from pydantic import AllowInfNan

from leporello.errors import UserError
from leporello.stages import Count, Positive

__all__ = ["Placement", "full_address", "kept_under", "problems_of"]

T = TypeVar("T")

ExecutorName: TypeAlias = Literal["local", "ray"]
Auto: TypeAlias = Literal["auto"]
Amount: TypeAlias = Annotated[float, Ge(0), AllowInfNan(False)]

_PORT = 6379  # of a cluster's head, unless `ray start --port` says another
_LAST_PORT = 65_535
_ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]+))?")
_MEMORY = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT]i?)?B", re.ASCII)
_BYTES = {letter: power for power, letter in enumerate("KMGT", 1)}
_FINEST = 0.0001  # of a CPU or GPU, that Ray can tell from nothing


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a run's work happens, and by how many; no result depends on it.

    Attributes:
        executor: `local` works in processes of this machine, `ray` in actors of a Ray cluster.
        address: Ray's: `auto`, for the cluster that this machine belongs to, or HOST:PORT of one;
            6379 is the port if none is given. If empty, a Ray is started on this machine, which
            ends with the run.
        workers: Processes or actors that divide and select, and on Ray hold the combiners; 0, for
            `local` alone, does it in this process; `auto` is one a core.
        worker_cpus: Ray's: CPUs that each of them reserves.
        worker_gpus: Ray's: GPUs that each of them reserves, for encoders; below 1, several share
            one.
        worker_memory: Ray's: memory that each of them reserves, as `4GiB`; if empty, none.
        reader_replicas: Processes or actors that read, with a model each. For `local`, 1 reads in
            this process. `auto` is one a GPU, or else one a core.
        reader_gpus: Ray's: GPUs that each of them reserves; below 1, several share one.
        reader_cpus: Ray's: CPUs that each of them reserves.
    """

    executor: ExecutorName = "local"
    address: str = ""
    workers: Count | Auto = 1
    worker_cpus: Amount = 1.0
    worker_gpus: Amount = 0.0
    worker_memory: str = ""
    reader_replicas: Positive | Auto = 1
    reader_gpus: Amount = 0.0
    reader_cpus: Amount = 1.0

    def __post_init__(self) -> None:
        found = problems_of({name: getattr(self, name) for name in _DEFAULTS})
        if found:
            raise ValueError("; ".join(f"{name}: {text}" for name, text in found.items()))
        object.__setattr__(self, "address", full_address(self.address))  # before it is seen

    @property
    def workers_here(self) -> int:
        """Processes of this machine that divide and select; 0 does it in this one."""
        return _cores() if self.workers == "auto" else self.workers

    @property
    def replicas_here(self) -> int:
        """Processes of this machine that read; 1 reads in this one."""
        return (_gpus() or _cores()) if self.reader_replicas == "auto" else self.reader_replicas

    @property
    def worker_bytes(self) -> int:
        """Memory that each worker reserves on Ray; 0 reserves none."""
        return _bytes_in(self.worker_memory) if self.worker_memory else 0

    @property
    def cores(self) -> int:
        """Of this machine, as far as this process may use them."""
        return _cores()

    def check(self) -> None:
        """Looks whether the executor is installed, before any work.

        Raises:
            UserError: It is not.
        """
        if self.executor == "ray" and importlib.util.find_spec("ray") is None:
            raise UserError("executor: ray needs its extra: pip install 'leporello[ray]'")

    def __str__(self) -> str:
        """Returns one line for people."""
        ray = "a Ray started on this machine" if not self.address else f"Ray at {self.address}"
        where = "this machine" if self.executor == "local" else ray
        reserved = f" with {self.reader_gpus:g} GPUs each" if self.reader_gpus else ""
        return (
            f"{where}, workers: {self.workers}, reader replicas: {self.reader_replicas}{reserved}"
        )


_DEFAULTS: Mapping[str, Any] = {each.name: each.default for each in fields(Placement)}
_RAYS = ("address", "worker_cpus", "worker_gpus", "worker_memory", "reader_gpus", "reader_cpus")


def kept_under(below: Mapping[str, T], executor: object) -> dict[str, T]:
    """Returns which settings still hold where something laid over them names an executor.

    What Ray alone knows does not reach `local`, so that one word takes a run off the cluster.

    Args:
        below: By setting: a parent's, or the pipeline's under the command line.
        executor: What is laid over them says; None if it says nothing.
    """
    left_out = _RAYS if executor == "local" else ()
    return {name: value for name, value in below.items() if name not in left_out}


def problems_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """Returns what is wrong with settings beside each other, by setting.

    Args:
        settings: Each of the right type; those left out have their defaults.
    """
    on_ray = settings.get("executor") == "ray"
    return dict(_problems_on_ray(settings) if on_ray else _problems_here(settings))


def _problems_here(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in _RAYS:
        if settings.get(name, _DEFAULTS[name]) != _DEFAULTS[name]:
            gpus = ": here each of several reader_replicas has a GPU to itself, where there are any"
            why = gpus if name == "reader_gpus" else ""
            yield name, f"is Ray's alone{why}; say `executor: ray` as well, or leave it out"


def _problems_on_ray(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if settings.get("workers") == 0:
        yield "workers", "0 works in this process, which is not on Ray: give 1 or more, or `auto`"
    for name, check in (("address", full_address), ("worker_memory", _memory)):
        try:
            check(settings.get(name, ""))
        except ValueError as error:
            yield name, str(error)
    for name in ("worker_cpus", "worker_gpus", "reader_cpus", "reader_gpus"):
        amount = settings.get(name, _DEFAULTS[name])
        if 0 < amount < _FINEST:
            yield name, f"Ray divides no finer than {_FINEST:g}, got {amount:g}"
    for name in ("worker_gpus", "reader_gpus"):
        gpus = settings.get(name, 0.0)
        if gpus > 1 and gpus % 1:
            yield name, f"above 1, Ray gives whole GPUs only, got {gpus:g}"


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
    found = _ADDRESS.fullmatch(text)
    port = int(found["port"] or _PORT) if found else 0
    if found is None or not 0 < port <= _LAST_PORT:
        raise ValueError(
            f"must be `auto`, HOST or HOST:PORT of the cluster, as 10.0.0.5:{_PORT}, got {text!r}"
        )
    return f"{found['host']}:{port}"


def _memory(text: str) -> None:
    if text:
        _bytes_in(text)


def _bytes_in(text: str) -> int:
    """Returns the bytes that `4GiB` or `500MB` means."""
    found = _MEMORY.fullmatch(text)
    if found is None or not float(found[1]):
        raise ValueError(f"must be a size, as 4GiB or 500MB, got {text!r}")
    unit = found[2] or ""
    base = 1024 if unit.endswith("i") else 1000
    return int(float(found[1]) * base ** _BYTES.get(unit[:1], 0))


def _cores() -> int:
    """Returns how many cores this process may use."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    return cores or 1


def _gpus() -> int:
    import torch

    return torch.cuda.device_count()
