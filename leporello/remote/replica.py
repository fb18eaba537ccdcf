"""A run at a URL, and this machine's copy of it: what is fetched and put there, in which order.

A ledger beside the copy says of every file how it was, here and there, when both were the same.
So it is known who has written since: nobody, this machine, another one, or both.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from leporello.directory import atomically
from leporello.errors import UserError
from leporello.remote.folder import Folder

__all__ = ["Replica"]

_LEDGER = ".remote.json"
_OWN = (".lock", ".lock.holder", _LEDGER)
_MANIFEST = "manifest.json"
_BLOCK = 1 << 20  # bytes
Stamp: TypeAlias = "tuple[int, int]"  # bytes, and nanoseconds of the last writing


@dataclass(frozen=True, slots=True)
class Noted:
    """How a file was when here and there it was the same.

    Attributes:
        there: Its version in the store.
        here: Its stamp on this machine.
    """

    there: str
    here: Stamp


@dataclass
class Replica:
    """A folder in a store, and its copy.

    Attributes:
        folder: There.
        path: Here; there may be nothing yet.
    """

    folder: Folder
    path: Path
    _ledger: dict[str, Noted] = field(init=False)

    def __post_init__(self) -> None:
        self._ledger = self._load()

    def mirror(self) -> None:
        """Makes the copy what is there, whatever it was."""
        there = self.folder.versions()
        self._fetch(there, self._theirs(there))

    def pull(self) -> None:
        """Fetches what another machine has written, if it has.

        Raises:
            UserError: Both have gone on from where they were the same; or the run is gone there;
                or something else lies there.
        """
        there = self.folder.versions()
        theirs, mine = self._theirs(there), self._mine()
        self._check_manifest(there)
        if not theirs or (mine and there and self._is_ahead(there)):
            return
        self._fetch(there, theirs | mine)

    def push(self) -> int:
        """Puts there what this machine has written since; returns how many files.

        In an order in which every beginning of it is a run that goes on: what was removed; the
        manifest, which says what the journals were made with; the journals, as whole lines; and
        what is derived from them.
        """
        here = self._here()
        gone = sorted(self._ledger.keys() - here.keys(), key=_rank)
        changed = sorted(
            (n for n in here if n not in self._ledger or self._ledger[n].here != here[n]), key=_rank
        )
        try:
            for name in gone:
                self.folder.remove(name)
                del self._ledger[name]
            for name in changed:
                self._put(name)
        finally:
            if gone or changed:
                self._save()
        return len(changed)

    # -- who has written -------------------------------------------------------------------------

    def _theirs(self, there: dict[str, str]) -> set[str]:
        names = there.keys() | self._ledger.keys()
        known = {name: noted.there for name, noted in self._ledger.items()}
        return {name for name in names if there.get(name) != known.get(name)}

    def _mine(self) -> set[str]:
        here = self._here()
        known = {name: noted.here for name, noted in self._ledger.items()}
        return {name for name in here.keys() | known.keys() if here.get(name) != known.get(name)}

    def _check_manifest(self, there: dict[str, str]) -> None:
        if _MANIFEST in there:
            return
        if there:
            raise UserError(
                f"{self.folder.url}: holds other files ({min(there)}, …) and no run; give another"
                " --out"
            )
        if self._ledger:
            raise UserError(
                f"{self.folder.url}: the run that lay there is gone. This machine's copy of it is"
                f" {self.path}: remove that to begin anew, or copy it back to the URL"
            )

    def _is_ahead(self, there: dict[str, str]) -> bool:
        """Says whether this machine's journals go on from those there, or the other way round."""
        here = self._here()
        journals = sorted(name for name in {*there, *here} if name.startswith("journal/"))
        ahead = behind = True
        for name in journals:
            other = self.path / f".{name.replace('/', '-')}.part"
            try:
                if name in there:
                    self.folder.get(name, other)
                ahead &= _is_prefix(other, self.path / name)
                behind &= _is_prefix(self.path / name, other)
            finally:
                other.unlink(missing_ok=True)
        if not ahead and not behind:
            raise UserError(
                f"{self.folder.url}: the run went on there and on this machine, each in its own"
                f" way. This machine's copy is {self.path}: remove it to go on from what lies"
                " there, or give another --out"
            )
        return ahead and not behind

    # -- copying ---------------------------------------------------------------------------------

    def _fetch(self, there: dict[str, str], names: Iterable[str]) -> None:
        for name in sorted(names, key=_rank):
            file = self.path.joinpath(*_parts(name))
            if name in there:
                self.folder.get(name, file)
                self._ledger[name] = Noted(there[name], _stamp(file))
            else:
                file.unlink(missing_ok=True)
                self._ledger.pop(name, None)
        if names:
            self._save()

    def _put(self, name: str) -> None:
        """Puts a file as it is now: a journal without a line that is being written."""
        file, copy = self.path / name, self.path / ".put.part"
        try:
            stamp = _stamp(file)
            _copy(file, copy, whole_lines=name.startswith("journal/"))
        except FileNotFoundError:  # it was replaced or removed meanwhile: the next time
            return
        try:
            self.folder.put(copy, name)
        finally:
            copy.unlink(missing_ok=True)
        self._ledger[name] = Noted(self.folder.version(name), stamp)

    def _here(self) -> dict[str, Stamp]:
        found: dict[str, Stamp] = {}
        for file in self.path.rglob("*"):
            name = file.relative_to(self.path).as_posix()
            partial = file.name.startswith(".") and file.name.endswith(".part")
            try:
                if name not in _OWN and not partial and file.is_file():
                    found[name] = _stamp(file)
            except FileNotFoundError:
                continue
        return found

    # -- the ledger ------------------------------------------------------------------------------

    def _load(self) -> dict[str, Noted]:
        file = self.path / _LEDGER
        if not file.exists():
            return {}
        rows = json.loads(file.read_text(encoding="utf-8"))
        return {name: Noted(there, (size, time)) for name, [there, size, time] in rows.items()}

    def _save(self) -> None:
        rows = {name: [noted.there, *noted.here] for name, noted in self._ledger.items()}
        self.path.mkdir(parents=True, exist_ok=True)
        with atomically(self.path / _LEDGER) as file:
            json.dump(rows, file)


def _rank(name: str) -> tuple[int, str]:
    """Returns where a file stands in the order of `push`."""
    if name in (_MANIFEST, "run.yaml"):
        return 0, name
    return (1 if name.startswith("journal/") else 2), name


def _parts(name: str) -> list[str]:
    """Returns the folders of a name, and its last part; none leads out of the copy."""
    parts = name.split("/")
    if ".." in parts or not all(parts):
        raise UserError(f"{name}: is no name of a run's file; remove it there")
    return parts


def _stamp(file: Path) -> Stamp:
    found = file.stat()
    return found.st_size, found.st_mtime_ns


def _copy(file: Path, to: Path, *, whole_lines: bool) -> None:
    with file.open("rb") as source, to.open("wb") as copy:
        shutil.copyfileobj(source, copy, _BLOCK)
        if not whole_lines:
            return
    to_end = _whole(to)
    with to.open("r+b") as copy:
        copy.truncate(to_end)


def _whole(file: Path) -> int:
    """Returns where the last whole line of a file ends."""
    with file.open("rb") as lines:
        end = lines.seek(0, 2)
        while end:
            begin = max(0, end - _BLOCK)
            lines.seek(begin)
            found = lines.read(end - begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            end = begin
    return 0


def _is_prefix(one: Path, other: Path) -> bool:
    """Says whether the whole lines of a file are the first of another; one that is not has none."""
    left = _whole(one) if one.exists() else 0
    if not left:
        return True
    if not other.exists() or _whole(other) < left:
        return False
    with one.open("rb") as first, other.open("rb") as second:
        while left:
            size = min(left, _BLOCK)
            if first.read(size) != second.read(size):
                return False
            left -= size
    return True
