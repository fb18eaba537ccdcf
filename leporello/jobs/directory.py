"""Directory of a run: its name, its lock, the paths of its files, and their copies at a URL."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from leporello.core.errors import UserError
from leporello.core.files import locked, read_json, write_json
from leporello.core.hashing import digest
from leporello.core.records import JSON

if TYPE_CHECKING:
    from leporello.storage.runs import RemoteRun

_NAME_LIMIT = 60  # characters before the hash, so that names stay readable in `ls`
_BYTES_LIMIT = 120  # of a folder's name, well below the limits of file systems


def run_name(pipelines: Sequence[str], tasks: Sequence[str], signatures: JSON) -> str:
    """Returns a name with the pipelines and tasks, and a hash of their config and data."""
    name = f"{_several(pipelines)}+{_several(tasks)}"
    return f"{safe_name(name)[:_NAME_LIMIT]}-{digest(signatures)}"


def _several(names: Sequence[str]) -> str:
    # The points of a sweep count as one pipeline.
    distinct = list(dict.fromkeys(name.partition("@")[0] for name in names))
    return distinct[0] if len(distinct) == 1 else f"{len(distinct)}-{distinct[0]}"


def runs_in(folder: Path) -> list[Path]:
    """Returns the runs in a folder; the folder itself if it is a run, or contains none."""
    inner = sorted(manifest.parent for manifest in folder.glob("*/manifest.json"))
    return inner if inner and not (folder / "manifest.json").exists() else [folder]


def safe_name(name: str) -> str:
    """Returns a valid folder name: replaces other characters, and shortens long names by a hash."""
    safe = re.sub(r"^\.+|[^\w.,=@+-]+", "-", name).encode()  # also no leading dot
    if safe.decode() == name and len(safe) <= _BYTES_LIMIT:
        return name
    return f"{safe[: _BYTES_LIMIT - 10].decode(errors='ignore')}-{digest(name)}"


def _folder(root: Path, pipeline: str, task: str) -> Path:
    return root.joinpath(safe_name(pipeline), *map(safe_name, task.split("/")))


@dataclass(frozen=True)
class RunDirectory:
    """Directory of a run; may be the copy of a run at a URL."""

    path: Path
    remote: RemoteRun | None = field(default=None, compare=False)  # the run at the URL

    @classmethod
    def of_run(cls, path: Path | str) -> Self:
        """Returns the directory of an existing run."""
        directory = cls(Path(path))
        if not directory.manifest.exists():
            raise UserError(f"{path}: is not a run (it has no manifest.json)")
        return directory

    def on_worker(self) -> Self:
        """Returns the directory on a worker's machine, which has its own copy of a run at a URL."""
        remote = self.remote and self.remote.here()
        return type(self)(remote.directory, remote) if remote else self

    def upload(self, *paths: Path) -> None:
        """Uploads files and folders, and deletes those that do not exist, of a run at a URL."""
        if self.remote:
            self.remote.put(*map(self._name, paths))

    def download(self, paths: Iterable[Path]) -> None:
        """Downloads files that do not exist here, of a run at a URL."""
        missing = [self._name(path) for path in paths if not path.exists()] if self.remote else []
        if self.remote and missing:  # without names, `get` would download the complete run
            self.remote.get(*missing)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.path).as_posix()

    @property
    def manifest(self) -> Path:
        """Manifest: versions, hashes and signatures."""
        return self.path / "manifest.json"

    @property
    def config(self) -> Path:
        """Resolved config."""
        return self.path / "run.yaml"

    def results(self, pipeline: str, task: str) -> Path:
        """Returns the folder of a job's results; `/` in a task's name separates folders."""
        return _folder(self.path, pipeline, task)

    def journals(self, pipeline: str, task: str) -> Path:
        """Returns the folder of a job's stores, one per shard."""
        return _folder(self.path / "journal", pipeline, task)

    @property
    def workers(self) -> Path:
        """Log of the workers' results, with a line per shard and attempt."""
        return self.path / "workers.jsonl"

    def jobs(self) -> dict[tuple[str, str], Mapping[str, JSON]]:
        """Returns the signature of every (pipeline, task) of the run; empty without a run."""
        return {job: row["signature"] for job, row in self.rows().items()}

    def expected(self) -> dict[tuple[str, str], int | None]:
        """Returns the number of examples of every (pipeline, task) of the run; None if unknown."""
        return {job: row.get("examples") for job, row in self.rows().items()}

    def rows(self) -> dict[tuple[str, str], Mapping[str, Any]]:
        """Returns the row of every (pipeline, task) in the manifest; empty without a run."""
        try:
            rows = self.read()["jobs"] if self.manifest.exists() else ()
            return {(row["pipeline"], row["task"]): row for row in rows if row["signature"]}
        except (KeyError, TypeError):
            raise UserError(f"{self.manifest}: is not the manifest of a run") from None

    def check_stores(self) -> None:
        """Raises UserError for a run of Leporello 0.2 or earlier, which has no stores."""
        if self.manifest.exists() and "stores" not in self.read():
            raise UserError(
                f"{self.path}: is a run of Leporello 0.2, whose journals this version does not"
                " read; use another --out to run it again; compare, table, report, export, submit"
                " and score still read its results if it is finished (docs/upgrading.md)"
            )

    def sizes(self) -> dict[str, dict[str, int]]:
        """Returns the micro-batch sizes that the readers determined, by a hash of the readers."""
        sizes: dict[str, dict[str, int]] = self.read().get("sizes", {})
        return sizes

    def read(self) -> dict[str, Any]:
        """Returns the manifest; empty without a run."""
        manifest: dict[str, Any] = read_json(self.manifest) if self.manifest.exists() else {}
        return manifest

    def keep_sizes(self, key: str, sizes: Mapping[str, int]) -> None:
        """Writes the sizes of a reader to the manifest."""
        manifest = self.read()
        manifest["sizes"] = {**manifest.get("sizes", {}), key: dict(sizes)}
        write_json(self.manifest, manifest)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the directory; raises UserError with the name of a process that has locked it."""
        self._create()
        holder = self.path / ".lock.holder"  # as a locked file cannot be read on Windows
        try:
            owner = holder.read_text(errors="replace") if holder.is_file() else "another process"
            busy = f"{self.path}: {owner} is running there; wait for it, or use another --out"
            with locked(self.path / ".lock", busy):
                holder.write_text(f"process {os.getpid()} on {platform.node()}")
                yield
        except OSError as error:  # no permission, or the disk is full
            reason = error.strerror or type(error).__name__
            raise UserError(f"{self.path}: cannot be written to: {reason}") from error

    def _create(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{self.path}: cannot be created: {error.strerror}") from None
        foreign = [p.name for p in self.path.iterdir() if not p.name.startswith(".")]
        # A run writes and deletes files, which must not happen in other folders of the user.
        if foreign and not self.manifest.exists():
            raise UserError(
                f"{self.path}: has other files ({foreign[0]}, …), but no run; use another --out"
            )
