"""The directory that a run leaves: its name, its lock, its files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from leporello.errors import UserError
from leporello.journal import Journal
from leporello.records import JSON
from leporello.signature import digest

__all__ = ["RunDirectory", "read_json", "read_rows", "run_name", "write_atomically", "write_json"]

_NAME_LIMIT = 60
_BYTES_LIMIT = 120  # of one folder's name, well below every file system's own


def run_name(pipelines: Sequence[str], tasks: Sequence[str], signatures: JSON) -> str:
    """Returns a name that says what is run, and differs where config or data differ."""
    shown = f"{_several(pipelines)}+{_several(tasks)}"
    return f"{safe_name(shown)[:_NAME_LIMIT]}-{digest(signatures)}"


def _several(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(name.partition("@")[0] for name in names))
    return distinct[0] if len(distinct) == 1 else f"{len(distinct)}-{distinct[0]}"


def safe_name(name: str) -> str:
    """Returns a name that is one folder: other characters replaced, long ones cut with a hash."""
    safe = re.sub(r"[^\w.,=@+-]+", "-", name).encode()
    if safe.decode() == name and len(safe) <= _BYTES_LIMIT:
        return name
    return f"{safe[: _BYTES_LIMIT - 10].decode(errors='ignore')}-{digest(name)}"


@dataclass(frozen=True)
class RunDirectory:
    """Paths of a run, and what is written to them."""

    path: Path

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
        return self.path.joinpath(safe_name(pipeline), *map(safe_name, task.split("/")))

    def journal(self, pipeline: str, task: str) -> Path:
        """The journal of one pipeline on one task."""
        *folders, last = map(safe_name, task.split("/"))
        return self.path.joinpath("journal", safe_name(pipeline), *folders, f"{last}.jsonl")

    def jobs(self) -> dict[tuple[str, str], Mapping[str, JSON]]:
        """Returns the signature of every (pipeline, task) that was run here; none if no run."""
        if not self.manifest.exists():
            return {}
        try:
            rows = read_json(self.manifest)["jobs"]
            return {(row["pipeline"], row["task"]): row["signature"] for row in rows}
        except (KeyError, TypeError):
            raise UserError(f"{self.manifest}: is no manifest of a run") from None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keeps other processes out of the directory.

        Raises:
            UserError: Another process is running there; the message says which.
        """
        self._make()
        holder = self.path / ".lock.pid"
        try:
            with FileLock(self.path / ".lock", timeout=0):
                holder.write_text(str(os.getpid()))
                yield
        except Timeout:
            pid = holder.read_text() if holder.exists() else "unknown"
            raise UserError(
                f"{self.path}: another process (pid {pid}) is running there;"
                " wait for it, or give another --out"
            ) from None
        except PermissionError as error:
            raise UserError(f"{self.path}: cannot be written to: {error.strerror}") from None

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

    def write_results(self, pipeline: str, task: str, journal: Journal) -> None:
        """Derives predictions, calls and failures from the journal, in task order."""
        folder = self.results(pipeline, task)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(
            folder / "predictions.jsonl",
            _lines(row["prediction"] for row in journal.rows() if "prediction" in row),
        )
        write_atomically(
            folder / "calls.jsonl",
            _lines(
                {"id": row["prediction"]["id"], "calls": row["calls"]}
                for row in journal.rows()
                if "prediction" in row
            ),
        )
        write_atomically(
            folder / "failures.jsonl",
            _lines(row["failure"] for row in journal.rows() if "failure" in row),
        )


def _lines(rows: Iterable[JSON]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(row, ensure_ascii=False) + "\n"


def write_atomically(path: Path, parts: Iterable[str]) -> None:
    """Writes a file beside its place and renames it there, so that it is whole or absent."""
    temporary = path.with_name(f".{path.name}.part")
    with temporary.open("w", encoding="utf-8", errors="surrogatepass", newline="\n") as file:
        file.writelines(parts)
    temporary.replace(path)


def write_json(path: Path, value: JSON) -> None:
    """Writes a JSON file for people to read, atomically."""
    write_atomically(path, [json.dumps(value, indent=2, ensure_ascii=False) + "\n"])


def read_json(path: Path) -> Any:  # noqa: ANN401 -- any JSON
    """Reads a JSON file.

    Raises:
        UserError: It is missing or no JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON: {error}") from None


def read_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yields the rows of a JSON Lines file that a run wrote.

    Raises:
        UserError: The file is missing or a line is no JSON.
    """
    try:
        with path.open(encoding="utf-8", errors="surrogatepass") as file:
            for number, line in enumerate(file, 1):
                yield _row(line, path, number)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start})") from None


def _row(line: str, path: Path, number: int) -> Mapping[str, Any]:
    try:
        row: Mapping[str, Any] = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}:{number}: not JSON: {error}") from None
    return row
