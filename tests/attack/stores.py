"""Bytes and lines of what a run has left are changed; then it goes on, or is looked at.

Either all results are those of an uninterrupted run, or it is refused with a reason.
"""

from __future__ import annotations

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
_LONGEST = 60  # bytes that are cut or doubled


def _at(content: bytes, random: Random) -> int:
    return random.randrange(len(content)) if content else 0


def _flip(content: bytes, random: Random) -> bytes:
    at = _at(content, random)
    return content[:at] + bytes([content[at] ^ 1 << random.randrange(8)]) + content[at + 1 :]


def _letter(content: bytes, random: Random) -> bytes:
    """Another letter for a letter, another digit for a digit: most such lines are still JSON."""
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
    """What a power cut leaves: the length is there, the content is not."""
    at = _at(content, random)
    return content[:at] + b"\0" * (len(content) - at)


def _lines(change: Callable[[list[bytes], int, int], object]) -> Callable[[bytes, Random], bytes]:
    def changed(content: bytes, random: Random) -> bytes:
        lines = content.splitlines(keepends=True)
        if lines:
            change(lines, random.randrange(len(lines)), random.randrange(len(lines)))
        return b"".join(lines)

    return changed


def _swap(lines: list[bytes], one: int, other: int) -> None:
    lines[one], lines[other] = lines[other], lines[one]


WAYS: Mapping[str, Callable[[bytes, Random], bytes]] = {
    "flip": _flip,
    "letter": _letter,
    "insert": _insert,
    "cut": _cut,
    "tear": _tear,
    "double": _double,
    "zeros": _zeros,
    "line out": _lines(lambda lines, one, _: lines.pop(one)),
    "line twice": _lines(lambda lines, one, other: lines.insert(other, lines[one])),
    "line replaced": _lines(lambda lines, one, other: lines.__setitem__(one, lines[other])),
    "lines swapped": _lines(_swap),
    "lines from here out": _lines(lambda lines, one, _: lines.__delitem__(slice(one, None))),
    "empty": lambda _content, _random: b"",
}
_OF_FILES = ("gone", "another's", "a folder", "a link to nothing")


@dataclass(frozen=True)
class Change:
    """One change of one file.

    Attributes:
        file: Number of the file, in order.
        way: What is done to it.
        seed: Of where.
        only: Part of names that the file is looked for among.
    """

    file: int
    way: str
    seed: int
    only: str

    def told(self) -> str:
        """Returns it in a few words."""
        return f"{self.way} (file {self.file}, at {self.seed}, {self.only or 'any'})"

    def make(self, out: Path) -> str:
        """Changes the file; returns what it did."""
        every = sorted(path for path in out.rglob("*") if path.is_file())
        files = [p for p in every if self.only in str(p.relative_to(out)) and p.stat().st_size]
        if not files:
            return "nothing"
        path, random = files[self.file % len(files)], Random(self.seed)
        before = path.read_bytes()
        if self.way in WAYS:
            path.write_bytes(WAYS[self.way](before, random))
        else:
            alike = [p for p in every if p.suffix == path.suffix and p != path]
            path.unlink()
            if self.way == "another's" and alike:
                shutil.copy(random.choice(alike), path)
            elif self.way == "a folder":
                path.mkdir()
            elif self.way == "a link to nothing":
                path.symlink_to("nowhere")
        return f"{self.way}: {path.relative_to(out)}"


@dataclass(frozen=True)
class Damage:
    """Changes of a run's files, and what is done then.

    Attributes:
        changes: The changes.
        then: The command.
        begun: Whether the run was killed before it had results; where, in thousandths.
    """

    changes: tuple[Change, ...]
    then: tuple[str, ...]
    begun: int | None = None

    @property
    def name(self) -> str:
        """In a line."""
        state = "finished" if self.begun is None else f"killed at {self.begun}"
        return f"{state}, {'; '.join(c.told() for c in self.changes)}, then {self.then[0]}"

    @property
    def command(self) -> str:
        """On what was given, of which `out` is what became."""
        line = " ".join(given(self.then))
        return f"rm -r out && cp -r given out && LEPORELLO_CACHE=$PWD/cache leporello {line}"

    def run(self, folder: Path) -> str | None:
        """Holds what becomes of it against an uninterrupted run."""
        out = folder / "out"
        shutil.copytree(whole() / "out", out)
        if self.begun is not None:
            _kill(out, self.begun)
        did = [change.make(out) for change in self.changes]
        shutil.copytree(out, folder / "given", symlinks=True)
        told = self._judged(folder)
        return told and f"{told} [{'; '.join(did)}]"

    def _judged(self, folder: Path) -> str | None:
        expected = _answer(self.then)
        assert expected.status == (1 if self.then[0] == "run" else 0), expected.stderr
        done = leporello(folder, *given(self.then))
        if (told := wrong(done, expected.status, 2)) or done.status == 2:
            return told
        if self.then[0] == "run":
            return different(folder / "out")
        return None if done.stdout == expected.stdout else "prints something else"


def _kill(out: Path, where: int) -> None:
    """Leaves what a kill between two shards would have left of a run: some stores."""
    for pipeline in _PIPELINES:
        shutil.rmtree(out / pipeline)
    stores = sorted((out / "journal").rglob("*.sqlite"))
    for path in stores[len(stores) * where // 1000 :]:
        path.unlink()


def given(command: tuple[str, ...], *options: str) -> tuple[str, ...]:
    """Returns a command; `run` with all that it is given, by default in this process."""
    if command[0] != "run":
        return command
    options = options or ("--workers", "0", "--unsupervised")
    config = str(whole_project() / "mine.yaml")
    return (*command, *_PIPELINES, "--config", config, "--out", "out",
            "--shard-examples", "8", *options)  # fmt: skip


def different(out: Path) -> str | None:
    """Returns the first file of results that is not that of the uninterrupted run."""
    for path in (Path(pipeline, "lamps", name) for pipeline in _PIPELINES for name in FILES):
        if not (out / path).is_file():
            return f"{path} is not there"
        if _told(out / path) != _told(whole() / "out" / path):
            return f"{path} is another"
    return None


def _told(path: Path) -> bytes:
    """Returns a file, but for where tracebacks lie: a read that is tried again has another."""
    return re.sub(rb'"traceback": "[^"]*"', b"", path.read_bytes())


@cache
def whole_project() -> Path:
    """Returns the folder of a project."""
    folder = scratch() / "lamps"
    folder.mkdir()
    project(folder, examples=24, documents=24)
    return folder


@cache
def whole() -> Path:
    """Returns the project's folder with an uninterrupted run in `out`."""
    done = leporello(whole_project(), *given(("run",)))
    assert wrong(done, 1) is None, done.stderr  # some reads fail, always
    return whole_project()


@cache
def _answer(command: tuple[str, ...]) -> Done:
    """Returns how a command ends on the uninterrupted run."""
    folder = scratch() / "answers"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole(), folder)
    return leporello(folder, *given(command))


def case(random: Random, number: int) -> Damage:
    """Each way once in `len(WAYS) + len(_OF_FILES)` cases; one to three changes."""
    ways = (*WAYS, *_OF_FILES)
    only = random.choice(("journal", "journal", "metrics", "merged", ".jsonl", ""))
    changes = [
        Change(random.randrange(1000), way, random.randrange(10**6), only)
        for way in (ways[number % len(ways)], *random.choices(ways, k=random.choice((0, 0, 1, 2))))
    ]
    begun = random.randrange(1000) if random.random() < 0.4 else None
    runs = begun is not None or random.random() < 0.6
    return Damage(tuple(changes), ("run",) if runs else random.choice(LOOKS), begun)
