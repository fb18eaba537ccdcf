"""Workers on a Ray cluster: Ray schedules actors, each of which starts a worker process.

Workers on other machines require a part of the environment of the driver: variables, paths, files.
"""

import os
import platform
import secrets
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from leporello.cache.source_code import is_own, sources
from leporello.config.placement import Placement
from leporello.core.annotations import declared_files, declared_variables
from leporello.core.environment.classes import REMAPPED_PATHS
from leporello.executors.channel import dump
from leporello.executors.child_process import INTERVAL, WorkerProcess, show_log
from leporello.executors.interface import Death, JobGroupSpec
from leporello.executors.pool import WorkerLink, Workplace
from leporello.executors.ray.cluster import check_capacity, connected, resolved, worker_resources

_REPORTS = 200  # progress reports per second, from all workers, that the driver handles easily
_TRIES = 20  # a node that is lost, or lacks memory, may kill many workers at once
_PLUG_INS = "leporello_plug_ins"  # folder for the files of plug-ins
# Variables that workers receive in addition to the pipelines' API keys: paths of models and data,
# and credentials. A node may set all other variables differently.
_PREFIXES = ("LEPORELLO_", "HF_", "TRANSFORMERS_", "AWS_", "GOOGLE_", "FSSPEC_")


@dataclass(frozen=True)
class WorkerEnvironment:
    """Environment of the driver, for workers."""

    variables: Mapping[str, str]  # environment variables, including API keys
    paths: tuple[str, ...]  # module paths of the driver; workers search them last
    plug_ins: Mapping[str, str]  # places of plug-ins' files in the sent folder, by path here

    @classmethod
    def of(cls, spec: JobGroupSpec) -> Self:
        """Returns the part of this process's environment that the batch requires."""
        keys = {name.removeprefix("$") for s in spec.all_specs() for name in s.variables()}
        keys |= {name for s in spec.all_specs() for name in declared_variables(s.cls)}
        variables = {n: v for n, v in os.environ.items() if n.startswith(_PREFIXES) or n in keys}
        return cls(variables, tuple(p or str(Path.cwd()) for p in sys.path), _plug_ins(spec))

    def apply(self) -> None:
        """Sets up this process; must be called before it imports plug-ins."""
        os.environ.update(self.variables)
        for folder in [p / _PLUG_INS for p in map(Path, sys.path) if (p / _PLUG_INS).is_dir()]:
            for path, place in self.plug_ins.items():
                REMAPPED_PATHS[path] = str(folder / place)
                sys.path.append(str(folder / place.partition("/")[0]))
        # Last, so that the packages of this machine win over a folder of the driver's.
        sys.path.extend(path for path in self.paths if path not in sys.path)
        show_log()


class RayWorkers(Workplace):
    """Actors of a Ray cluster."""

    tries = _TRIES
    advice = "see its output above and `ray status`; run the same command to resume"

    def __init__(self, spec: JobGroupSpec, placement: Placement) -> None:
        """Connects to Ray."""
        with ExitStack() as opening:
            opening.enter_context(connected(placement, partial(travelling_modules, spec)))
            import ray

            total = ray.cluster_resources()  # type: ignore[no-untyped-call]  # not annotated
            nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
            placement, self.workers = resolved(placement, total)
            check_capacity(placement, nodes)
            token = spec.directory.path / f".ray-{secrets.token_hex(8)}"
            token.touch()
            opening.callback(token.unlink, missing_ok=True)
            shared = None if spec.directory.remote else token  # at a URL machines have copies
            interval = max(spec.report_every, self.workers / _REPORTS)
            sent = dump(replace(spec, report_every=interval))
            self._setup = WorkerEnvironment.of(spec), sent, placement, shared
            self._options = worker_resources(placement)
            self._resources = opening.pop_all()

    def close(self) -> None:
        """Ends the connection."""
        self._resources.close()

    def start(self, others: Sequence[WorkerLink]) -> WorkerLink:  # noqa: ARG002 -- Ray schedules it
        """Requests an actor, which Ray starts when there is room."""
        import ray

        # An actor receives and sends at the same time, otherwise `stop` would wait for a message.
        actor = ray.remote(ShardActor).options(**self._options, max_concurrency=2)
        return _ActorLink(actor.remote(*self._setup))

    def ready(self, links: Sequence[WorkerLink]) -> Sequence[WorkerLink]:
        """See `Workplace`."""
        import ray

        pending = {link.answer: link for link in links if isinstance(link, _ActorLink)}
        # Two calls: the first returns with one message, the second collects all that are there.
        if not ray.wait([*pending], timeout=INTERVAL)[0]:
            return []
        ready, _ = ray.wait([*pending], num_returns=len(pending), timeout=0)
        return [pending[answer] for answer in ready]


class _ActorLink:
    """Connection to an actor; see `WorkerLink`."""

    def __init__(self, actor: Any) -> None:  # noqa: ANN401 -- type of Ray
        self._actor = actor
        self.answer = actor.receive.remote()  # Ray's reference to the next message

    def send(self, message: bytes) -> None:
        """Sends a pickled message; ignores that the actor has died."""
        self._actor.send.remote(message)

    def receive(self) -> bytes:
        """Returns the next pickled message; if the actor has died, the cause of its death."""
        import ray

        try:
            message: bytes = ray.get(self.answer)
        except ray.exceptions.RayError as error:
            cause = f"was lost ({str(error).strip().partition(chr(10))[0]})"
            return dump(("died", Death(cause)))
        self.answer = self._actor.receive.remote()
        return message

    def end(self) -> None:
        """Kills the actor and its process."""
        import ray

        ray.kill(self._actor)


class ShardActor:
    """Actor that starts a worker process on its node, and forwards messages."""

    def __init__(
        self, environment: WorkerEnvironment, spec: bytes, placement: Placement, token: Path | None
    ) -> None:
        """Starts the process; this machine must see `token`, a file of the driver in the run."""
        environment.apply()
        self._lock = threading.Lock()
        self._fault = b""
        if token and not token.exists():
            text = (
                f"{token.parent}: machine {platform.node()} of the Ray cluster does not see this"
                " directory; use an --out that all machines share, or a URL (s3://…)"
            )
            self._fault = dump(("failed", text))
            return
        # Without a reserved GPU the worker must not use those that other workers reserved.
        variables = {} if placement.worker_gpus else {"CUDA_VISIBLE_DEVICES": ""}
        self._process = WorkerProcess(spec, placement.threads, variables, remapped=REMAPPED_PATHS)

    def receive(self) -> bytes:
        """Returns the next pickled message of the worker."""
        return self._fault or self._process.receive()

    def send(self, message: bytes) -> None:
        """Forwards a message of the driver."""
        with self._lock:
            if not self._fault:
                self._process.send(message)


def travelling_modules(spec: JobGroupSpec, folder: Path) -> list[str]:
    """Returns the folders to send: Leporello's package, and copies of plug-ins' files."""
    package = Path(__file__).parents[2]  # includes the stages, which are links in a checkout
    # Copies of the needed files alone, since Ray sends complete folders.
    plug_ins = folder / _PLUG_INS
    plug_ins.mkdir()
    for file, place in _plug_ins(spec).items():
        (plug_ins / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, plug_ins / place)
    return [str(package), str(plug_ins)]


def _plug_ins(spec: JobGroupSpec) -> dict[str, str]:
    """Returns the target path of each local file that stages depend on, by its path here."""
    places: dict[str, str] = {}
    for cls in {stage.cls for stage in spec.all_specs()}:
        for module, path in sources(cls).files.items():
            if not is_own(module):
                root = _root(module, path)
                for file in (path, *_declared(cls, path.parent)):
                    short = sha256(str(root).encode()).hexdigest()[:8]
                    # A folder per root, since two plug-ins may have files of the same name.
                    places.setdefault(str(file), f"{short}/{file.relative_to(root).as_posix()}")
    return places


def _declared(cls: type, folder: Path) -> Iterator[Path]:
    """Yields the files in a folder that `depends_on` of a class names."""
    for _, path in declared_files(cls):
        files = path.rglob("*") if path.is_dir() else [path]
        inside = (file for file in files if file.is_file() and file.is_relative_to(folder))
        yield from (file for file in inside if ".." not in file.relative_to(folder).parts)


def _root(module: str, path: Path) -> Path:
    """Returns the folder from which a module is imported; for a plug-in the folder of its file."""
    if module.endswith(".py"):
        return path.parent
    return path.parents[module.count(".") + (path.name == "__init__.py")]
