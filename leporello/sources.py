"""The source that a stage is made of: its file and every local module that it imports."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import site
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["source_hash", "source_hashes"]

_OWN = frozenset({"chunkers", "combiners", "leporello", "readers", "retrievers"})


def source_hashes(cls: type) -> dict[str, str]:
    """Returns the SHA-256 of each local source file that a class depends on, by module name.

    Local is what is neither the standard library's nor an installed package's; Leporello's own
    modules count as local wherever they lie.
    """
    found: dict[str, str] = {}
    pending = [cls.__module__]
    while pending:
        name = pending.pop()
        path = _local_source(name)
        if name in found or path is None:
            continue
        found[name] = _hash(path)
        pending.extend(_imported(path, name))
    return dict(sorted(found.items()))


def source_hash(cls: type) -> str:
    """Returns one hash over all of `source_hashes`."""
    return hashlib.sha256(repr(source_hashes(cls)).encode()).hexdigest()[:16]


def _local_source(name: str) -> Path | None:
    """Returns a local module's file; what is installed is never imported to find out."""
    if not _is_local(name.partition(".")[0]):
        return None
    module = sys.modules.get(name)
    return _source(getattr(module, "__file__", None) if module else _origin(name))


@cache
def _is_local(package: str) -> bool:
    if package in _OWN:
        return True
    module = sys.modules.get(package)
    path = _source(getattr(module, "__file__", None) if module else _origin(package))
    return path is not None and not any(path.is_relative_to(folder) for folder in _installed())


def _source(origin: str | None) -> Path | None:
    return Path(origin).resolve() if origin and origin.endswith(".py") else None


def _origin(name: str) -> str | None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # a parent that is no package, or a name without a spec
        return None
    return spec.origin if spec else None


@cache
def _installed() -> tuple[Path, ...]:
    folders = [*site.getsitepackages(), *(sysconfig.get_path(k) for k in ("stdlib", "purelib"))]
    return tuple(Path(folder).resolve() for folder in folders)


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _imported(path: Path, name: str) -> Iterator[str]:
    """Yields the names of imported modules, those imported inside functions too."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            try:
                target = importlib.util.resolve_name(base, package) if node.level else base
            except ImportError:  # beyond the top: it fails when it runs, and says so
                continue
            yield target
            yield from (f"{target}.{alias.name}" for alias in node.names)
