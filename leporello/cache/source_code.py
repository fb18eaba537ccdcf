"""Finds the source files of a stage, the local modules that they import, and the libraries used.

A module is local if it belongs neither to the standard library nor to an installed package.
Leporello's own modules always count as local. Finding them imports nothing.
"""

import ast
import hashlib
import importlib.util
import re
import site
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from leporello.core.calls.memory import canonical
from leporello.core.environment.classes import file_module_name

_FOR_TYPES = "TYPE_CHECKING"
_OWN = "leporello"  # this package, which also contains the stages
# Import statements of our own modules. Parsing only these saves 0.1 CPU seconds per run.
_STATEMENT = re.compile(
    rb"^if TYPE_CHECKING:\n(?:[ \t].*\n|\n)+"
    rb"|^[ \t]*((?:from [.\w]+ )?import (?:\([^()]*\)|[^\n]+))",
    re.M,
)


@dataclass(frozen=True, slots=True)
class Sources:
    """Source files and libraries that a class uses."""

    hashes: Mapping[str, str]  # short SHA-256 by module; empty for an installed class
    # Further packages that each local module imports; for an installed class, its package
    libraries: Mapping[str, frozenset[str]]
    files: Mapping[str, Path]  # path of each local module, by name


@cache
def sources(cls: type) -> Sources:
    """Returns the local modules and libraries that a class and its bases import.

    Cached, because an imported module stays as it is even if its file changes.
    """
    if not _is_local(_top(cls.__module__)):
        return Sources({}, {cls.__module__: frozenset({_top(cls.__module__)})}, {})
    hashes: dict[str, str] = {}
    libraries: dict[str, frozenset[str]] = {}
    files: dict[str, Path] = {}
    pending = [*dict.fromkeys(base.__module__ for base in cls.__mro__)]
    visited = {*pending}
    while pending:
        name = pending.pop()
        if (path := _local_source(name)) is None:
            continue
        content, module_name = path.read_bytes(), _module_name(name)
        files[module_name] = path
        # 64 bits suffice, since nobody attacks this hash; it is part of every cache key.
        hashes[module_name] = hashlib.sha256(content).hexdigest()[:16]
        imported = _imported(content, name, path.name) if path.suffix == ".py" else frozenset()
        if (stub := path.with_suffix(".pyi")).is_file():  # lists the lazy imports of a package
            imported |= _imported(stub.read_bytes(), name, path.name)
        imported |= {parent for module in imported for parent in _parent_packages(module)}
        libraries[module_name] = frozenset(filter(_is_library, map(_top, imported)))
        new_modules = {module for module in imported if _is_local(_top(module))} - visited
        visited |= new_modules
        pending.extend(new_modules)
    return Sources(dict(sorted(hashes.items())), libraries, files)


def source_hash(cls: type) -> str:
    """Returns one hash over all local source files of a class."""
    return hashlib.sha256(canonical({**sources(cls).hashes}).encode()).hexdigest()[:32]


def is_own(module: str) -> bool:
    """Returns whether a module, named as in `Sources`, belongs to Leporello."""
    return _top(module) == _OWN and not module.endswith(".py")


def public_name(cls: type) -> str | None:
    """Returns a class name that is equal in every process: `module.Class`, or `file.py:Class`.

    None for a class in a function, or without a source file.
    """
    value: object = sys.modules.get(cls.__module__)
    for attribute in cls.__qualname__.split("."):
        value = getattr(value, attribute, None)
    top = _top(cls.__module__)
    if value is not cls or (_is_local(top) and _local_source(cls.__module__) is None):
        return None
    if _place(top) is None:
        return None
    module = _module_name(cls.__module__)
    return f"{module}{':' if module.endswith('.py') else '.'}{cls.__qualname__}"


def _module_name(name: str) -> str:
    """Returns the name of a module: for a file loaded by its path, the file name without folder."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if file and name in ("__main__", file_module_name(Path(file))):
        return Path(file).name
    return name


def _parent_packages(module: str) -> Iterator[str]:
    """Yields the packages around a module, which importing it runs, except Leporello's lists."""
    while _top(module) != _OWN and (module := module.rpartition(".")[0]):
        yield module


def _top(module: str) -> str:
    return module.partition(".")[0]


def _local_source(name: str) -> Path | None:
    """Returns the file of a local module; None if it is not local or not a file."""
    path = _place(name) if _is_local(_top(name)) else None
    return path if path and path.is_file() else None


@cache
def _is_local(package: str) -> bool:
    if package == _OWN:
        return True
    place = None if package in sys.stdlib_module_names else _place(package)
    return place is not None and not any(place.is_relative_to(folder) for folder in _installed())


@cache
def _is_library(package: str) -> bool:
    """Returns whether a package is neither local nor part of the standard library."""
    return not (package in sys.stdlib_module_names or package == "__main__" or _is_local(package))


def _place(name: str) -> Path | None:
    """Returns the file of a module, or the folder of a package without one."""
    if file := getattr(sys.modules.get(name), "__file__", None):
        return Path(file).resolve()
    spec = _spec(name)
    if spec is None or not (spec.has_location or spec.submodule_search_locations):
        return None
    return Path(spec.origin or next(iter(spec.submodule_search_locations or ()))).resolve()


def _spec(name: str) -> ModuleSpec | None:
    """Finds a module as an import would, without importing the packages that contain it."""
    parent = name.rpartition(".")[0]
    try:
        if not parent:
            return importlib.util.find_spec(name)
        package = getattr(sys.modules.get(parent), "__spec__", None) or _spec(parent)
        folders = package.submodule_search_locations if package else None
        return PathFinder.find_spec(name, folders) if folders else None
    except (ImportError, ValueError, KeyError):
        # Not a module name, a module without a spec, or a namespace in a package not yet imported.
        return None


@cache
def _installed() -> tuple[Path, ...]:
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    folders += [sysconfig.get_path(kind) for kind in kinds]
    return tuple(Path(folder).resolve() for folder in folders)


@cache
def _imported(content: bytes, name: str, file: str) -> frozenset[str]:
    """Returns the names of imported modules, including imports inside functions."""
    package = name if file == "__init__.py" else name.rpartition(".")[0]
    modules: set[str] = set()
    if _top(name) == _OWN:
        content = b"\n".join(_STATEMENT.findall(content))
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):  # importing the module will report the error
        return frozenset()
    for node in _running(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            try:
                target = importlib.util.resolve_name(base, package) if node.level else base
            except ImportError:  # beyond the top-level package: running it will report the error
                continue
            modules |= {target, *(f"{target}.{alias.name}" for alias in node.names)}
    return frozenset(modules)


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """Yields all statements except those that only a type checker reads."""
    for part in ("body", "orelse", "handlers", "finalbody", "cases"):
        if part == "body" and isinstance(tree, ast.If):
            names = (getattr(tree.test, name, None) for name in ("id", "attr"))
            if _FOR_TYPES in names:
                continue
        for node in getattr(tree, part, ()):
            yield node
            yield from _running(node)
