"""Attacks that change bytes and lines of a run's files, then resume or inspect the run.

Either all results equal those of an uninterrupted run, or the command refuses with a reason.
"""

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from lamps import FILES, project

from tests.attack.command import Done, leporello, scratch, wrong

_PIPELINES = ("mine", "cast")
LOOKS = (("compare", "out"), ("explain", "out"), ("explain", "out", "q3"), ("report", "out"))
_LONGEST = 60  # largest number of bytes to cut or repeat


def _at(content: bytes, random: Random) -> int:
    return random.randrange(len(content)) if content else 0


def _flip(content: bytes, random: Random) -> bytes:
    at = _at(content, random)
    return content[:at] + bytes([content[at] ^ 1 << random.randrange(8)]) + content[at + 1 :]


def _letter(content: bytes, random: Random) -> bytes:
    """Exchanges letters for letters and digits for digits, so that most lines are still JSON."""
    places = [n for n, byte in enumerate(content) if chr(byte).isalnum() and byte < 128]
    at = random.choice(places)
    others = b"0123456789" if chr(content[at]).isdigit() else b"abcdefghijklmnopqrstuvwxyz"
    return content[:at] + bytes([random.choice(others)]) + content[at + 1 :]


def _insert(content: bytes, random: Random) -> bytes:
    at = _at(content, random)
    return content[:at] + random.choice([b"\n", b"0", b"{}", b"\0", b"\xff"]) + content[at:]


def _cut(content: bytes, random: Random) -> bytes:
    at = _at(content, random)
    return content[:at] + content[at + random.randint(1, _LONGEST) :]


def _tear(content: bytes, random: Random) -> bytes:
    return content[: _at(content, random)]


def _double(content: bytes, random: Random) -> bytes:
    at = _at(content, random)
    return content[:at] + content[at : at + random.randint(1, _LONGEST)] + content[at:]


def _zeros(content: bytes, random: Random) -> bytes:
    """Fills the end with zeros, as a power cut may do."""
    at = _at(content, random)
    return content[:at] + b"\0" * (len(content) - at)


def _lines(change: Callable[[list[bytes], int, int], object]) -> Callable[[bytes, Random], bytes]:
    def changed(content: bytes, random: Random) -> bytes:
        lines = content.splitlines(keepends=True)
        if lines:
            change(lines, random.randrange(len(lines)), random.randrange(len(lines)))
        return b"".join(lines)

    return changed


def _swap(lines: list[bytes], first: int, second: int) -> None:
    lines[first], lines[second] = lines[second], lines[first]


WAYS: Mapping[str, Callable[[bytes, Random], bytes]] = {
    "flip": _flip,
    "letter": _letter,
    "insert": _insert,
    "cut": _cut,
    "tear": _tear,
    "double": _double,
    "zeros": _zeros,
    "line out": _lines(lambda lines, at, _: lines.pop(at)),
    "line twice": _lines(lambda lines, at, to: lines.insert(to, lines[at])),
    "line replaced": _lines(lambda lines, at, source: lines.__setitem__(at, lines[source])),
    "lines swapped": _lines(_swap),
    "lines from here out": _lines(lambda lines, at, _: lines.__delitem__(slice(at, None))),
    "empty": lambda _content, _random: b"",
}
_WAYS_OF_FILES = ("gone", "another's", "a folder", "a link to nothing")


@dataclass(frozen=True)
class Change:
    """Change of one file."""

    file: int  # index of the file among those that match `only`
    way: str  # kind of change
    seed: int  # random seed of the place in the file
    only: str  # substring of the paths of files that may be changed

    def make(self, out: Path) -> str:
        """Changes the file; returns the kind of change and the path."""
        paths = sorted(path for path in out.rglob("*") if path.is_file())
        files = [p for p in paths if self.only in str(p.relative_to(out)) and p.stat().st_size]
        if not files:
            return "nothing"
        path, random = files[self.file % len(files)], Random(self.seed)
        before = path.read_bytes()
        if self.way in WAYS:
            path.write_bytes(WAYS[self.way](before, random))
        else:
            similar = [p for p in paths if p.suffix == path.suffix and p != path]
            path.unlink()
            if self.way == "another's" and similar:
                shutil.copy(random.choice(similar), path)
            elif self.way == "a folder":
                path.mkdir()
            elif self.way == "a link to nothing":
                path.symlink_to("nowhere")
        return f"{self.way}: {path.relative_to(out)}"


@dataclass(frozen=True)
class Damage:
    """Changes of a run's files, and a command that uses them."""

    changes: tuple[Change, ...]  # the changes
    then: tuple[str, ...]  # the command
    # Share of stores, in thousandths, that a kill left; None if the run finished.
    killed_at: int | None = None

    def run(self, folder: Path) -> str | None:
        """Runs the command on changed files; compares its results with an uninterrupted run."""
        out = folder / "out"
        shutil.copytree(uninterrupted() / "out", out)
        if self.killed_at is not None:
            _kill(out, self.killed_at)
        changes = [change.make(out) for change in self.changes]
        fault = self._fault(folder)
        return fault and f"{fault} [{'; '.join(changes)}]"

    def _fault(self, folder: Path) -> str | None:
        expected = answer(self.then)
        assert expected.status == (1 if self.then[0] == "run" else 0), expected.stderr
        result = leporello(folder, *full_command(self.then))
        if (fault := wrong(result, expected.status, 2)) or result.status == 2:
            return fault
        if self.then[0] == "run":
            return different(folder / "out")
        return None if result.stdout == expected.stdout else "prints another text"


def _kill(out: Path, where: int) -> None:
    """Removes all results and some stores, as if the run had been killed between two shards."""
    for pipeline in _PIPELINES:
        shutil.rmtree(out / pipeline)
    stores = sorted((out / "journal").rglob("*.sqlite"))
    for path in stores[len(stores) * where // 1000 :]:
        path.unlink()


def full_command(command: tuple[str, ...], *options: str) -> tuple[str, ...]:
    """Returns a command; adds its arguments to `run`, by default without workers."""
    if command[0] != "run":
        return command
    options = options or ("--workers", "0", "--unsupervised")
    config = str(project_folder() / "mine.yaml")
    return (*command, *_PIPELINES, "--config", config, "--out", "out",
            "--shard-examples", "8", *options)  # fmt: skip


def different(out: Path) -> str | None:
    """Returns a line on the first result file that differs from the uninterrupted run."""
    for path in (Path(pipeline, "lamps", name) for pipeline in _PIPELINES for name in FILES):
        if not (out / path).is_file():
            return f"{path} is missing"
        if _content(out / path) != _content(uninterrupted() / "out" / path):
            return f"{path} differs"
    return None


def _content(path: Path) -> bytes:
    """Returns a file without tracebacks, which differ if a read was repeated."""
    return re.sub(rb'"traceback": "[^"]*"', b"", path.read_bytes())


@cache
def project_folder() -> Path:
    """Returns the folder of the project."""
    folder = scratch() / "lamps"
    folder.mkdir()
    project(folder, examples=24, documents=24)
    return folder


@cache
def uninterrupted() -> Path:
    """Returns the project's folder with an uninterrupted run in `out`."""
    result = leporello(project_folder(), *full_command(("run",)))
    assert wrong(result, 1) is None, result.stderr  # some reads always fail
    return project_folder()


@cache
def answer(command: tuple[str, ...]) -> Done:
    """Returns the result of a command on the uninterrupted run."""
    folder = scratch() / "answers"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(uninterrupted(), folder)
    return leporello(folder, *full_command(command))


def case(random: Random, number: int) -> Damage:
    """Returns a case of one to three changes; the first is another way for each number."""
    ways = (*WAYS, *_WAYS_OF_FILES)
    only = random.choice(("journal", "journal", "metrics", "merged", ".jsonl", ""))
    changes = [
        Change(random.randrange(1000), way, random.randrange(10**6), only)
        for way in (ways[number % len(ways)], *random.choices(ways, k=random.choice((0, 0, 1, 2))))
    ]
    killed_at = random.randrange(1000) if random.random() < 0.4 else None
    is_run = killed_at is not None or random.random() < 0.6
    return Damage(tuple(changes), ("run",) if is_run else random.choice(LOOKS), killed_at)
