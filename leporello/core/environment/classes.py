"""Finds classes by name: built-in, from an installed package, dotted, or `file.py:Class`.

Python's import system is the registry, so a class name in YAML can run any code. Packages register
classes as entry points: the group `leporello.retrievers` contains retrievers, and so on.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from leporello.core.environment.user_code import describe_error
from leporello.core.errors import UserError, build_all, did_you_mean, likely
from leporello.core.protocols import Kind

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

# Local paths of plug-in files that were copied from another machine, by their paths there.
REMAPPED_PATHS: dict[str, str] = {}
_LONGEST = 1_000  # letters of a name; paths of files are not longer


class ClassError(UserError):
    """A class cannot be found or imported."""


class Lazy(Mapping[str, T]):
    """Values by name, each made on first access; `ready` has those that were made."""

    def __init__(self, names: Collection[str], make: Callable[[str], T]) -> None:
        self.ready: dict[str, T] = {}
        self._names, self._make = names, make

    def __getitem__(self, name: str) -> T:
        if name not in self.ready:
            if name not in self._names:
                raise KeyError(name)
            self.ready[name] = self._make(name)
        return self.ready[name]

    def of(self, names: Iterable[str]) -> dict[str, T]:
        """Returns several values; raises ConfigError with the faults of all."""
        return dict(build_all(names, lambda name: (name, self[name])))

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def lazy_classes(modules: Mapping[str, str]) -> Lazy[Any]:
    """Returns classes by name, from a mapping of names to `module:Class`."""
    # On first access only, since `list` and `check` must answer without importing torch.
    return Lazy(modules, lambda name: resolve_name(modules[name]))


def built_ins(kind: Kind) -> Mapping[str, Any]:
    """Returns Leporello's classes of a kind by their names in configs."""
    # Packages are imported by name: `core` imports no room above it (decision 39).
    module = import_module(kind.package)
    if kind.table:
        table: Mapping[str, Any] = getattr(module, kind.table)
        return table
    return lazy_classes({name: f"{kind.package}:{name}" for name in module.__all__})


@cache
def plug_ins() -> Mapping[str, Mapping[str, tuple[EntryPoint, ...]]]:
    """Returns the entry points of installed packages, by group and name, without importing any."""
    from importlib.metadata import distributions

    groups: dict[str, dict[str, tuple[EntryPoint, ...]]] = {}
    packages: set[str] = set()
    # Once per process: 15 ms in an environment of 150 packages (decision 39).
    for package in distributions():
        # Checked before `package.name`, which parses all metadata of a package.
        if "[leporello." not in (package.read_text("entry_points.txt") or ""):
            continue
        if package.name in packages:  # Python imports the first of several copies
            continue
        packages.add(package.name)
        for point in package.entry_points:
            names = groups.setdefault(point.group, {})
            names[point.name] = (*names.get(point.name, ()), point)
    return groups


def origin(point: EntryPoint) -> str:
    """Returns the package and version of an entry point."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


def find_class(name: str, kind: Kind, folder: Path, *, ours: bool = False) -> Any:  # noqa: ANN401 -- of this kind
    """Returns the class `TfIdf`, `my_package.module.Longest` or `./my_retriever.py:Longest`.

    Relative files and dotted modules are in `folder`. With `ours`, a plain name is a built-in class
    even if a package has one of that name. Raises ClassError without a class.
    """
    if not name or not name.isprintable() or len(name) > _LONGEST:
        shown = name if len(name) <= _LONGEST else f"{name[:40]}…"
        raise ClassError(f"{shown!r} is not a valid class name; {_plug_in_hint()}")
    if ":" in name:
        file, _, attribute = name.rpartition(":")
        return _class_of(load_file(path_of(file, folder)), attribute)
    if "." in name:
        module_name, _, attribute = name.rpartition(".")
        return _class_of(_import(module_name, folder), attribute)
    # The shipped pipelines mean our classes: an installed package with a duplicate name breaks only
    # the files that name its class (decision 39).
    return built_ins(kind)[name] if ours and name in built_ins(kind) else _plain_class(name, kind)


def path_of(file: str, folder: Path) -> Path:
    """Returns the absolute path of a plug-in's file."""
    try:
        return (folder / Path(file).expanduser()).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # an unknown user, for example
        raise ClassError(f"{file!r} is not a valid path: {error}") from None


def _plain_class(name: str, kind: Kind) -> Any:  # noqa: ANN401 -- of this kind
    built_in, installed = built_ins(kind), plug_ins().get(kind.group, {})
    points = sorted(installed.get(name, ()), key=origin)
    # Entry points are read for built-in names too: a package with such a name must neither change
    # results nor be ignored silently (decision 39).
    if len(points) + (name in built_in) > 1:
        packages = [*(["Leporello itself"] if name in built_in else []), *map(origin, points)]
        names = " or ".join(point.value.replace(":", ".") for point in points)
        both = " and ".join(packages)
        raise ClassError(f"{both} both have a {kind.key} {name!r}; write {names}")
    if name in built_in:
        return built_in[name]
    if not points:
        hint = did_you_mean(name, [*built_in, *installed])
        title = kind.key.replace("_", " ")
        absent = f"there is no {title}" if kind.table else f"{kind.title} has no class"
        raise ClassError(f"{absent} {name!r}{hint}; {_plug_in_hint(name)}")
    try:
        return _checked(points[0].load(), name, origin(points[0]))
    except ClassError:
        raise
    except (Exception, SystemExit) as error:  # a package may raise anything
        raise ClassError(
            f"importing {name!r} of {origin(points[0])} failed: {describe_error(error)}"
        ) from None


def _plug_in_hint(name: str = "Mine") -> str:
    return f"name your own class as `file.py:{name}` or `package.module.{name}`"


def _class_of(module: ModuleType, attribute: str) -> Any:  # noqa: ANN401 -- of any kind
    place = getattr(module, "__file__", None) or f"{module.__name__}, a folder without __init__.py,"
    if not hasattr(module, attribute):
        by_name = {n: v for n, v in vars(module).items() if inspect.isclass(v)}
        classes = [name for name, cls in by_name.items() if cls.__module__ == module.__name__]
        raise ClassError(f"{place} has no class {attribute!r}{did_you_mean(attribute, classes)}")
    return _checked(getattr(module, attribute), attribute, place)


def _checked(value: object, name: str, place: str) -> Any:  # noqa: ANN401 -- of any kind
    if not inspect.isclass(value):
        kind = type(value).__name__
        raise ClassError(f"{name!r} of {place} is not a class; its type is {kind}")
    return value


def file_module_name(path: Path) -> str:
    """Returns the module name under which a plug-in's file is imported in this process."""
    # With a hash, since two folders may each have a file of this name.
    return f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"


def load_file(path: Path) -> ModuleType:
    """Loads a module from its file, once per process; it can import modules of its folder."""
    path = Path(REMAPPED_PATHS.get(str(path), path))
    name = file_module_name(path)
    # Importing a file twice would create two different classes of the same name.
    if name in sys.modules:
        return sys.modules[name]
    if not os.path.exists(path):  # noqa: PTH110 -- a `Path` raises if its name is too long
        files = [file.name for file in path.parent.glob("*.py")]
        raise ClassError(f"there is no file {path}{likely(path.name, files)}")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or path.is_dir():
        raise ClassError(f"{path} is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module there
    _let_import_from(path.parent)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a user's file may raise anything
        # Otherwise the next lookup would find half a module.
        del sys.modules[name]
        raise ClassError(f"importing {path} failed: {describe_error(error)}") from None
    return module


def _import(name: str, folder: Path) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise ClassError(f"{name!r} is not a valid module name; write words with dots between them")
    _let_import_from(folder)
    try:
        return import_module(name)
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise ClassError(_reason(error, name, folder)) from None


def _reason(error: BaseException, name: str, folder: Path) -> str:
    absent = error.name if isinstance(error, ModuleNotFoundError) else None
    loaded = sys.modules.get(name.partition(".")[0])
    places = [*getattr(loaded, "__path__", ())] if absent and loaded else [str(folder)]
    if absent is None or not f"{name}.".startswith(f"{absent}."):
        return f"importing {name} failed: {describe_error(error)}"
    near = [path.stem for place in places for path in Path(place).glob("[!._]*")]
    hint = likely(absent.rpartition(".")[2], near)
    return f"there is no module {absent!r} in {places[0]} or among the installed packages{hint}"


def _let_import_from(folder: Path) -> None:
    """Appends the folder to `sys.path`, at the end so that it cannot hide an installed package."""
    # If a file is edited twice in one second, Python could run the bytecode of the older version.
    sys.dont_write_bytecode = True
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
        importlib.invalidate_caches()
