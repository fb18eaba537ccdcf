"""The directory that a run leaves: its name, its lock, its files."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from leporello.core.environment.platform import is_alive
from leporello.core.errors import UserError
from leporello.core.files import read_json, write_json
from leporello.core.hashing import digest
from leporello.core.records import JSON

# Characters before the hash: a name stays legible in `ls`.
_NAME_LIMIT = 60
_BYTES_LIMIT = 120  # of one folder's name, well below every file system's own


def run_name(pipelines: Sequence[str], tasks: Sequence[str], signatures: JSON) -> str:
    """Returns a name that says what is run, and differs where config or data differ."""
    name = f"{_several(pipelines)}+{_several(tasks)}"
    return f"{safe_name(name)[:_NAME_LIMIT]}-{digest(signatures)}"


def _several(names: Sequence[str]) -> str:
    # Points of one sweep are one pipeline here: their number stands in no name.
    distinct = list(dict.fromkeys(name.partition("@")[0] for name in names))
    return distinct[0] if len(distinct) == 1 else f"{len(distinct)}-{distinct[0]}"


def runs_in(folder: Path) -> list[Path]:
    """Returns the runs that lie in a folder; itself if it is one, or if there are none."""
    inner = sorted(manifest.parent for manifest in folder.glob("*/manifest.json"))
    return inner if inner and not (folder / "manifest.json").exists() else [folder]


def safe_name(name: str) -> str:
    """Returns a name that is one folder: other characters replaced, long ones cut with a hash."""
    safe = re.sub(r"^\.+|[^\w.,=@+-]+", "-", name).encode()  # no leading dot: nor `..`
    if safe.decode() == name and len(safe) <= _BYTES_LIMIT:
        return name
    return f"{safe[: _BYTES_LIMIT - 10].decode(errors='ignore')}-{digest(name)}"


def _folder(root: Path, pipeline: str, task: str) -> Path:
    return root.joinpath(safe_name(pipeline), *map(safe_name, task.split("/")))


@dataclass(frozen=True)
class RunDirectory:
    """Paths of a run, and what is written to them."""

    path: Path

    @classmethod
    def of_run(cls, path: Path) -> RunDirectory:
        """Returns the directory of a run that was made.

        Raises:
            UserError: No run lies there.
        """
        directory = cls(path)
        if not directory.manifest.exists():
            raise UserError(f"{path}: no run lies there (it has no manifest.json)")
        directory.check_version()
        return directory

    @property
    def manifest(self) -> Path:
        """Versions, hashes, signatures."""
        return self.path / "manifest.json"

    @property
    def config(self) -> Path:
        """The resolved config."""
        return self.path / "run.yaml"

    def results(self, pipeline: str, task: str) -> Path:
        """Where the files of one pipeline on one task lie; a task's `/` are folders."""
        return _folder(self.path, pipeline, task)

    def journals(self, pipeline: str, task: str) -> Path:
        """Where the stores of one pipeline on one task lie, one per shard."""
        return _folder(self.path / "journal", pipeline, task)

    @property
    def workers(self) -> Path:
        """What each worker did: a line a shard and attempt."""
        return self.path / "workers.jsonl"

    @property
    def logs(self) -> Path:
        """What workers said, a file a worker."""
        return self.path / "logs"

    def name_of(self, path: Path) -> str:
        """Returns the name of a file or folder in the run."""
        return path.relative_to(self.path).as_posix()

    def worker_log(self, worker: str) -> Path:
        """Returns the file of what a worker said, if it said anything."""
        return self.logs / f"{safe_name(worker)}.log"

    def add_worker_row(self, row: Mapping[str, JSON]) -> None:
        """Adds a line to what workers did."""
        with self.workers.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")

    def jobs(self) -> dict[tuple[str, str], Mapping[str, JSON]]:
        """Returns the signature of every (pipeline, task) that was run here; none if no run."""
        return {job: row["signature"] for job, row in self._jobs().items()}

    def expected(self) -> dict[tuple[str, str], int | None]:
        """Returns how many examples each (pipeline, task) has, as last run; None is unknown."""
        return {job: row.get("examples") for job, row in self._jobs().items()}

    def _jobs(self) -> dict[tuple[str, str], Mapping[str, Any]]:
        try:
            rows = self._read()["jobs"] if self.manifest.exists() else ()
            jobs = {(row["pipeline"], row["task"]): row for row in rows if row["signature"]}
        except (KeyError, TypeError):
            raise UserError(f"{self.manifest}: is no manifest of a run") from None
        return jobs

    def check_version(self) -> None:
        """Looks whether a run that lies here is of this version's form.

        Raises:
            UserError: It is one of Leporello 0.1, whose journals know no shards.
        """
        if self.manifest.exists() and "shard_examples" not in self.limits():
            raise UserError(
                f"{self.path}: is a run of Leporello 0.1, which this version does not read: give"
                " another --out to run it again, or look at it with the Leporello that made it;"
                " its predictions.jsonl can be scored with `score` (docs/upgrading.md)"
            )

    def check_stores(self) -> None:
        """Looks whether a run that lies here has stores, which resuming and explaining it needs.

        Raises:
            UserError: It is one of Leporello 0.2, which has journals.
        """
        if self.manifest.exists() and "stores" not in self._read():
            raise UserError(
                f"{self.path}: is a run of Leporello 0.2, whose journals this version does not"
                " read: give another --out to run it again; compare, table, report, export, submit"
                " and score still read its results, if it is finished (docs/upgrading.md)"
            )

    def limits(self) -> Mapping[str, JSON]:
        """Returns the limits that an earlier run here had; none if there was none."""
        limits: Mapping[str, JSON] = self._read().get("limits", {})
        return limits

    def sizes(self) -> dict[str, dict[str, int]]:
        """Returns the sizes that each reader found itself, by what `timings.reading_key` says."""
        sizes: dict[str, dict[str, int]] = self._read().get("sizes", {})
        return sizes

    def _read(self) -> dict[str, Any]:
        """Returns the manifest; empty where it does not exist."""
        manifest: dict[str, Any] = read_json(self.manifest) if self.manifest.exists() else {}
        return manifest

    def keep_sizes(self, key: str, sizes: Mapping[str, int]) -> None:
        """Writes a reader's sizes into the manifest."""
        manifest = self._read()
        manifest["sizes"] = {**manifest.get("sizes", {}), key: dict(sizes)}
        write_json(self.manifest, manifest)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keeps other processes out of the directory.

        Raises:
            UserError: Another process is running there; the message says which.
        """
        self._make()
        try:
            with FileLock(self.path / ".lock", timeout=0):
                self._holder.write_text(f"process {os.getpid()} on {platform.node()}")
                yield
        except Timeout:
            raise UserError(
                f"{self.path}: {self._who()} is running there; wait for it, or give another --out"
            ) from None
        except OSError as error:  # permissions, or no room
            reason = error.strerror or type(error).__name__
            raise UserError(f"{self.path}: cannot be written to: {reason}") from error

    @property
    def _holder(self) -> Path:
        return self.path / ".lock.holder"

    def runs_here(self) -> bool:
        """Says whether the process that last held the directory is alive on this machine."""
        with suppress(OSError, ValueError):
            _, number, _, machine = self._holder.read_text().split()
            return machine == platform.node() and is_alive(int(number))
        return False

    def _who(self) -> str:
        """Returns who holds the lock, and since when."""
        try:
            since = datetime.fromtimestamp(self._holder.stat().st_mtime).astimezone()
            return f"{self._holder.read_text()}, since {since:%Y-%m-%d %H:%M},"
        except OSError:
            return "another process"

    def _make(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{self.path}: cannot be made: {error.strerror}") from None
        foreign = [p.name for p in self.path.iterdir() if not p.name.startswith(".")]
        if foreign and not self.manifest.exists():
            raise UserError(
                f"{self.path}: holds other files ({foreign[0]}, …) and no run; give another --out"
            )
