"""What plug-in code asks of the machine while it works: files, variables, servers, programs.

Kept results and runs remember it with its content: what has changed since is not used again. What a
library asks for elsewhere than in the plug-in's folder is not observed, nor what raises no event:
times, sizes and existence of files, clocks. A class with `repeatable: ClassVar[bool] = True` says
that its results depend on none of it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import site
import sys
import sysconfig
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

NONE = "none"  # the content of what is not there
_READ, _LISTED, _PACKAGE = "file", "folder", "package"
_UNKNOWN = ("server", "program")  # kinds of what says something else at any time
_LEPORELLO = str(Path(__file__).parents[2]) + os.sep
_STORAGE = str(Path(_LEPORELLO, "storage")) + os.sep
_LEFT_OUT = ("/dev/", "/proc/", "/sys/", _LEPORELLO)
_BLOCK = 1 << 20  # bytes

_seen: dict[str, str] = {}  # content by `kind:name`; empty until it is looked at
_written: set[str] = set()
_shared: set[str] = set()  # opened for reading and writing: content is taken at once
_packages: set[str] = set()  # installed ones that are plug-ins
_busy = threading.local()
_is_watching = False


def watch(package: str = "") -> None:
    """Has observed from here on what plug-in code asks for.

    Args:
        package: Name of an installed package that is plug-in code.
    """
    global _is_watching  # noqa: PLW0603 -- hooks are a process's, and never taken off
    if package:
        _packages.add(package.partition(".")[0])
        _is_plug_in.cache_clear()
    if not _is_watching:
        _is_watching = True
        sys.addaudithook(_hook)
        for environment in (os.environ, getattr(os, "environb", None)):
            if environment is not None:
                environment.__class__ = _WatchedEnvironment


def observed() -> dict[str, str]:
    """Returns what was asked for so far in this process, with its content when first seen."""
    _busy.now = True
    try:
        for thing, content in [*_seen.items()]:
            if not content:
                _seen[thing] = content_of(thing)
            elif thing in _shared and content_of(thing) != content:
                _written.add(thing.partition(":")[2])
    finally:
        _busy.now = False
    return {thing: c for thing, c in _seen.items() if thing.partition(":")[2] not in _written}


def add(things: Mapping[str, str]) -> None:
    """Adds what was observed in another process."""
    for thing, content in things.items():
        _seen.setdefault(thing, content)


def forget() -> None:
    """Forgets what was asked for so far, also while plug-ins were imported."""
    _seen.clear()
    _written.clear()
    _shared.clear()


def servers(things: Iterable[str]) -> list[str]:
    """Returns the servers and programs among what was observed: what they say is not known."""
    parts = (thing.partition(":") for thing in things)
    return [name for kind, _, name in parts if kind in _UNKNOWN]


def changed(things: Mapping[str, str]) -> str:
    """Returns the first of what was observed that has another content now, in words; or nothing."""
    for thing, content in things.items():
        if content_of(thing) != content:
            kind, _, name = thing.partition(":")
            return f"{kind} {name}"
    return ""


def content_of(thing: str) -> str:
    """Returns the hash of what a thing holds now; a server's is always the same."""
    kind, _, name = thing.partition(":")
    if kind == "variable":
        value = os.environ.get(name)
        return NONE if value is None else _hash(value.encode("utf-8", "surrogateescape"))
    try:
        if kind == _PACKAGE:  # wherever this machine has it
            kind = _READ
            name = next((f + name for f in _installed() if Path(f + name).exists()), name)
        if kind == _READ:
            status = Path(name).stat()
            return _file_hash(name, status.st_mtime_ns, status.st_size)
        if kind == _LISTED:
            names = sorted(path.name for path in Path(name).iterdir())
            return _hash("\0".join(names).encode("utf-8", "surrogateescape"))
    except (OSError, ValueError):
        return NONE
    return "-"


@cache
def _file_hash(name: str, time: int, size: int) -> str:  # noqa: ARG001 -- of the file as it is now
    if not Path(name).is_file():  # a pipe would wait for ever
        return NONE
    with Path(name).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


class _WatchedEnvironment(os._Environ[Any]):
    """The environment: what is read of it raises no event."""

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401 -- text, or bytes of `environb`
        _note("variable", os.fsdecode(key))
        return super().__getitem__(key)


def _hook(event: str, given: tuple[object, ...]) -> None:
    if event == "open":
        path, mode, flags = given
        _opened(path, mode, flags)
    elif event == "sqlite3.connect":
        _opened(str(given[0]).removeprefix("file:").partition("?")[0], "r+", 0)
    elif event in ("os.listdir", "os.scandir"):
        _note(_LISTED, given[0] or ".")
    elif event in ("subprocess.Popen", "os.system", "os.posix_spawn"):
        _note("program", given[0])
    elif event == "os.fork":
        _note("program", "a process of its own")
    elif event == "socket.connect":
        address = given[1]
        _note("server", address[0] if isinstance(address, tuple) else address)


def _opened(path: object, mode: object, flags: object) -> None:
    if isinstance(path, int) or getattr(_busy, "now", False):
        return
    if not isinstance(mode, str):
        mode = "r"
        if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR):
            mode = "w" if flags & (os.O_WRONLY | os.O_TRUNC) else "r+"
    if "+" in mode and not set(mode) & set("wx"):
        _note(_READ, path, may_be_written=True)
    elif not set(mode) & set("wax"):
        _note(_READ, path)
    elif _asked_by_plug_in():
        _written.add(_path(path))


def _note(kind: str, name: object, *, may_be_written: bool = False) -> None:
    if getattr(_busy, "now", False) or isinstance(name, int):  # of an open file
        return
    _busy.now = True
    try:
        path = text = _path(name) if kind in (_READ, _LISTED) else str(name)
        if kind == _READ and (folder := next(filter(text.startswith, _installed()), "")):
            kind, text = _PACKAGE, text.removeprefix(folder)
        thing = f"{kind}:{text}"
        is_new = thing not in _seen or (may_be_written and not _seen[thing])
        if is_new and not text.startswith(_LEFT_OUT) and _asked_by_plug_in(path):
            _seen[thing] = content_of(thing) if may_be_written else ""
            _shared.update([thing] * may_be_written)
    finally:
        _busy.now = False


def _path(name: object) -> str:
    path = os.path.abspath(os.fsdecode(name))  # type: ignore[arg-type]  # noqa: PTH100 -- quick
    with suppress(ValueError):  # of another program
        if path.endswith(".pyc") and "__pycache__" in path:
            return importlib.util.source_from_cache(path)
    return path


def _asked_by_plug_in(path: str = "") -> bool:
    """Says whether the nearest code that is no library's is a plug-in's, and not repeatable.

    A library reads for the plug-in that calls it what lies in that one's folder. A script that
    calls Leporello is no plug-in, only what Leporello calls: and threads, of which none knows who
    began them.
    """
    frame: FrameType | None = sys._getframe(2)
    folder = "" if path.startswith(_installed()) else os.path.dirname(path)  # noqa: PTH120 -- quick
    is_library = False
    while frame is not None and not (kind := _is_plug_in(file := frame.f_code.co_filename)):
        if kind is False and (not folder or file.startswith(_LEPORELLO)):
            return False
        is_library |= kind is False
        frame = frame.f_back
    if frame is None or (is_library and not f"{folder}/".startswith(f"{os.path.dirname(file)}/")):  # noqa: PTH120 -- quick
        return False
    while frame is not None and not frame.f_code.co_filename.startswith(_LEPORELLO):
        if getattr(type(frame.f_locals.get("self")), "repeatable", False):
            return False
        frame = frame.f_back
    if frame is None:
        return threading.current_thread() is not threading.main_thread()
    return not frame.f_code.co_filename.startswith(_STORAGE)  # file systems of one's own: no stages


@cache
def _is_plug_in(file: str) -> bool | None:
    """Says whether a file is a plug-in's; None of the standard library and of code without one."""
    if file.startswith("<"):
        return None
    if file == __file__:
        return None
    if file.startswith(_LEPORELLO):
        return False
    for folder in _installed():
        if file.startswith(folder):
            return file[len(folder) :].partition(os.sep)[0].removesuffix(".py") in _packages
    return None if file.startswith(_standard()) else True


@cache
def _installed() -> tuple[str, ...]:
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    folders += [sysconfig.get_path(kind) for kind in ("purelib", "platlib")]
    return tuple(folder + os.sep for folder in folders)


@cache
def _standard() -> tuple[str, ...]:
    return tuple(sysconfig.get_path(kind) + os.sep for kind in ("stdlib", "platstdlib"))
