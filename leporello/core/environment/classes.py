"""A name -> a class: a built-in one, one of an installed package, dotted, or `file.py:Class`.

Python's import system is the registry. A name in the YAML that imports code is code. Packages
offer classes by entry points: the group `leporello.retrievers` holds retrievers, and so on.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from leporello.core.environment.own_lines import told_with_lines
from leporello.core.errors import UserError, did_you_mean, likely
from leporello.core.protocols import Kind

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# Where plug-ins' files that came from another machine lie here, by their paths there.
REMAPPED_PATHS: dict[str, str] = {}
_LONGEST = 1_000  # letters of a name; no file system has longer paths to a file


class ClassError(UserError):
    """A class that cannot be had, with the reason for the user."""


class LazyClasses(Mapping[str, Any]):
    """Classes by name, each imported when it is asked for."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        """Takes by name `module:Class`."""
        self._modules = modules

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 -- of any kind
        """Returns a class."""
        module, _, cls = self._modules[name].partition(":")
        return getattr(import_module(module), cls)

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


def built_ins(kind: Kind) -> Mapping[str, Any]:
    """Returns the classes of a kind that Leporello brings, by the names that configs give them."""
    module = import_module(kind.package)
    if kind.table:
        table: Mapping[str, Any] = getattr(module, kind.table)
        return table
    return LazyClasses({name: f"{kind.package}:{name}" for name in module.__all__})


@cache
def plug_ins() -> Mapping[str, Mapping[str, tuple[EntryPoint, ...]]]:
    """Returns what installed packages offer, by group and name; nothing is imported."""
    from importlib.metadata import distributions

    found: dict[str, dict[str, tuple[EntryPoint, ...]]] = {}
    seen: set[str] = set()
    for package in distributions():
        # Its name is asked for only here: for that, all of its metadata is parsed.
        if "[leporello." not in (package.read_text("entry_points.txt") or ""):
            continue
        if package.name in seen:  # Python imports from the place that it finds first
            continue
        seen.add(package.name)
        for point in package.entry_points:
            names = found.setdefault(point.group, {})
            names[point.name] = (*names.get(point.name, ()), point)
    return found


def origin(point: EntryPoint) -> str:
    """Returns the package and version that an entry point comes from."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


def find_class(name: str, kind: Kind, folder: Path, *, ours: bool = False) -> Any:  # noqa: ANN401 -- of this kind
    """Returns the class that a `class:` value names.

    Args:
        name: `TfIdf`, `my_package.module.Longest`, or `./my_retriever.py:Longest`.
        kind: The kind in whose classes plain names are looked up.
        folder: The folder that a relative file counts from; dotted names are found there too.
        ours: Whether a plain name means a built-in class, though a package may offer one too.

    Raises:
        ClassError: There is no such class, or importing it failed.
    """
    if not name or not name.isprintable() or len(name) > _LONGEST:
        shown = name if len(name) <= _LONGEST else f"{name[:40]}…"
        raise ClassError(f"{shown!r} is no name of a class; {_own()}")
    if ":" in name:
        file, _, attribute = name.rpartition(":")
        return _class_of(load_file(path_of(file, folder)), attribute)
    if "." in name:
        module_name, _, attribute = name.rpartition(".")
        return _class_of(_import(module_name, folder), attribute)
    return built_ins(kind)[name] if ours and name in built_ins(kind) else _named(name, kind)


def path_of(file: str, folder: Path) -> Path:
    """Returns where a plug-in's file lies.

    Raises:
        ClassError: No file can lie there.
    """
    try:
        return (folder / Path(file).expanduser()).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # `~nobody`
        raise ClassError(f"{file!r} is no path: {error}") from None


def _named(name: str, kind: Kind) -> Any:  # noqa: ANN401 -- of this kind
    """Returns the class of a plain name; two that offer one name are a fault that names both."""
    ours, offered = built_ins(kind), plug_ins().get(kind.group, {})
    points = sorted(offered.get(name, ()), key=origin)
    if len(points) + (name in ours) > 1:
        who = [*(["Leporello itself"] if name in ours else []), *map(origin, points)]
        ways = " or ".join(point.value.replace(":", ".") for point in points)
        raise ClassError(f"{' and '.join(who)} both have a {kind.key} {name!r}; say {ways}")
    if name in ours:
        return ours[name]
    if not points:
        known = did_you_mean(name, [*ours, *offered])
        absent = f"there is no {kind.key}" if kind.table else f"{kind.title} has no class"
        raise ClassError(f"{absent} {name!r}{known}; {_own(name)}")
    try:
        return _checked(points[0].load(), name, origin(points[0]))
    except ClassError:
        raise
    except (Exception, SystemExit) as error:  # whatever a package raises is for the user to see
        raise ClassError(
            f"importing {name!r} of {origin(points[0])} failed: {told_with_lines(error)}"
        ) from None


def _own(name: str = "Mine") -> str:
    return f"a class of your own is named as `file.py:{name}` or `package.module.{name}`"


def _class_of(module: ModuleType, attribute: str) -> Any:  # noqa: ANN401 -- of any kind
    where = getattr(module, "__file__", None) or f"{module.__name__}, a folder without __init__.py,"
    if not hasattr(module, attribute):
        classes = [n for n, v in vars(module).items() if _is_of(v, module)]
        raise ClassError(f"{where} has no class {attribute!r}{did_you_mean(attribute, classes)}")
    return _checked(getattr(module, attribute), attribute, where)


def _is_of(value: object, module: ModuleType) -> bool:
    return inspect.isclass(value) and value.__module__ == module.__name__


def _checked(value: object, name: str, where: str) -> Any:  # noqa: ANN401 -- of any kind
    if not inspect.isclass(value):
        raise ClassError(f"{name!r} of {where} is no class but of type {type(value).__name__}")
    return value


def file_module_name(path: Path) -> str:
    """Returns the name of the module that a plug-in's file is loaded as in this process."""
    return f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"


def load_file(path: Path) -> ModuleType:
    """Loads a module from its file, once a process; its neighbours can be imported by it.

    Raises:
        ClassError: There is no such file, or importing it failed.
    """
    path = Path(REMAPPED_PATHS.get(str(path), path))
    name = file_module_name(path)
    # A second module of one file would have a second class, unequal to the first.
    if name in sys.modules:
        return sys.modules[name]
    if not _is_there(path):
        files = [file.name for file in path.parent.glob("*.py")]
        raise ClassError(f"there is no file {path}{likely(path.name, files)}")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or path.is_dir():
        raise ClassError(f"{path} is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    _let_import_from(path.parent)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever a user's file raises is for the user to see
        del sys.modules[name]
        raise ClassError(f"importing {path} failed: {told_with_lines(error)}") from None
    _check_neighbours(path)
    return module


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long
        return False


def _check_neighbours(path: Path) -> None:
    """Refuses a file whose neighbour is hidden by a module of the same name from elsewhere."""
    for name in sorted(set(_imports(path))):
        beside = path.with_name(f"{name}.py")
        loaded = getattr(sys.modules.get(name), "__file__", None)
        if loaded and beside.is_file() and Path(loaded).resolve() != beside.resolve():
            raise ClassError(
                f"{path} imports {name}, and that is {loaded} here, not {beside}: Python keeps one"
                " module of a name; rename one of them"
            )


def _imports(path: Path) -> Iterator[str]:
    """Yields the top names of the modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]


def _import(name: str, folder: Path) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise ClassError(f"{name!r} is no name of a module: words between single dots")
    _let_import_from(folder)
    try:
        return import_module(name)
    except (Exception, SystemExit) as error:  # as above
        raise ClassError(_reason(error, name, folder)) from None


def _reason(error: BaseException, name: str, folder: Path) -> str:
    """Tells a module that is not there from one that is and fails."""
    absent = error.name if isinstance(error, ModuleNotFoundError) else None
    top = name.partition(".")[0]
    found = sys.modules.get(top)
    places = [*getattr(found, "__path__", ())] if absent and found else [str(folder)]
    if absent is None or not f"{name}.".startswith(f"{absent}."):
        return f"importing {name} failed: {told_with_lines(error)}"
    beside = folder / top
    if found and beside.is_dir() and str(beside) not in places:
        return (
            f"{name} is not found: {top!r} is the package in {places[0]} here, not your folder"
            f" {beside}; rename the folder, or name the file: ./{name.replace('.', '/')}.py:CLASS"
        )
    near = [path.stem for place in places for path in Path(place).glob("[!._]*")]
    hint = likely(absent.rpartition(".")[2], near)
    return f"there is no module {absent!r} in {places[0]}, nor installed{hint}"


def _let_import_from(folder: Path) -> None:
    """Appends, never prepends: a user's file may not shadow an installed package."""
    # Bytecode of a file that is edited twice in one second can be taken for the newer text's.
    sys.dont_write_bytecode = True
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
        importlib.invalidate_caches()
