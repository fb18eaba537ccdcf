"""`class:` in the YAML -> a Python class: a plain name, a dotted name, or `file.py:Class`.

Python's import system is the registry. A name in the YAML that imports code is code.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from pathlib import Path
from types import ModuleType

from leporello.cache.source_code import file_module_name, neighbours
from leporello.config.parameters import parameters
from leporello.core.calls.contracts import PARAMETERS, index_methods
from leporello.core.errors import did_you_mean
from leporello.core.protocols import KINDS, LOADER, TASK, Kind

__all__ = ["ClassError", "check_methods", "find_class", "is_built_in", "load_file"]

# Attributes of stages that 0.1 knew by other names: unheeded, they would change what a run does.
_RENAMED = {"at_once": "window_size", "tuner": "trainer"}
# For those that must take one of two: what to tell.
_EITHER = {
    "retrieve": "(questions, chunks) or (examples, chunks)",
    "search": "(index, questions) or (index, examples), and may take 'chunks'",
}


class ClassError(Exception):
    """A class that cannot be had, with the reason for the user."""


def is_built_in(package: str, name: str) -> bool:
    """Says whether the package exports a class of this name."""
    return name in getattr(importlib.import_module(package), "__all__", ())


def find_class(name: str, package: str, folder: Path) -> type:
    """Returns the class that a `class:` value names.

    Args:
        name: `TfIdf`, `my_package.module.Longest`, or `./my_retriever.py:Longest`.
        package: The package in which plain names are looked up.
        folder: The folder that a relative file counts from; dotted names are found there too.

    Raises:
        ClassError: There is no such class, or importing it failed.
    """
    if ":" in name:
        file, _, attribute = name.rpartition(":")
        module = load_file((folder / Path(file).expanduser()).resolve())
    elif "." in name:
        module_name, _, attribute = name.rpartition(".")
        module = _import(module_name, folder)
    else:
        module, attribute = importlib.import_module(package), name
        if not is_built_in(package, name):
            raise ClassError(_unknown(name, module, package))
    cls = getattr(module, attribute, None)
    if not inspect.isclass(cls):
        raise ClassError(_absent(attribute, module))
    return cls


def _unknown(name: str, module: ModuleType, package: str) -> str:
    hint = did_you_mean(name, module.__all__)
    return (
        f"{package.removeprefix('leporello.')} has no class {name!r}{hint}"
        f"; a class of your own is named as `file.py:{name}` or `package.module.{name}`"
        f" (looked in {module.__file__})"
    )


def _absent(attribute: str, module: ModuleType) -> str:
    classes = [
        name
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__
    ]
    return f"{module.__file__} has no class {attribute!r}{did_you_mean(attribute, classes)}"


def load_file(path: Path) -> ModuleType:
    """Loads a module from its file, once a process; its neighbours can be imported by it.

    Raises:
        ClassError: There is no such file, or importing it failed.
    """
    name = file_module_name(path)
    # A second module of one file would have a second class, unequal to the first.
    if name in sys.modules:
        return sys.modules[name]
    if not path.is_file():
        raise ClassError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ClassError(f"{path} is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    _let_import_from(path.parent)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever a user's file raises is for the user to see
        del sys.modules[name]
        raise ClassError(f"importing {path} failed: {_reason(error, str(path))}") from None
    _check_neighbours(path)
    return module


def _check_neighbours(path: Path) -> None:
    """Refuses a file whose neighbour is hidden by a module of the same name from elsewhere."""
    for name, beside in neighbours(path):
        loaded = getattr(sys.modules.get(name), "__file__", None)
        if loaded and Path(loaded).resolve() != beside.resolve():
            raise ClassError(
                f"{path} imports {name}, and that is {loaded} here, not {beside}: Python keeps one"
                " module of a name; rename one of them"
            )


def _import(name: str, folder: Path) -> ModuleType:
    _let_import_from(folder)
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # as above
        raise ClassError(f"importing {name} failed: {_reason(error, name)}") from None


def _let_import_from(folder: Path) -> None:
    """Appends, never prepends: a user's file may not shadow an installed package."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
        importlib.invalidate_caches()


def _reason(error: BaseException, imported: str) -> str:
    """Names the error and, where it lies in the user's own file, the line."""
    if isinstance(error, SyntaxError):
        return f"SyntaxError in line {error.lineno}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == imported]
    line = f" (line {lines[-1]})" if lines else ""
    return f"{type(error).__name__}: {error}{line}"


def check_methods(cls: type, kind: Kind) -> str | None:
    """Returns what is wrong with a class as a stage of this kind, or None."""
    for old, new in _RENAMED.items():
        if hasattr(cls, old):
            return f"{cls.__name__} has {old!r}, which is called {new!r} since Leporello 0.2"
    for method in kind.methods:
        function = getattr(cls, method, None)
        if not callable(function):
            return f"{cls.__name__} is no {kind.key}: it has no method {method!r}{_is_a(cls)}"
        if problem := _check_parameters(cls, method):
            return problem
    return _check_index(cls) if kind is KINDS["retriever"] else None


def _is_a(cls: type) -> str:
    for kind in (*KINDS.values(), LOADER, TASK):
        if all(callable(getattr(cls, method, None)) for method in kind.methods):
            return f"; it looks like a {kind.key}"
    return ""


def _check_parameters(cls: type, method: str) -> str | None:
    required, optional = map(set, PARAMETERS.get(method, ((), ())))
    signature = inspect.signature(getattr(cls, method))
    static = isinstance(inspect.getattr_static(cls, method), (staticmethod, classmethod))
    names = list(signature.parameters)[0 if static else 1 :]  # without self
    wrong = [name for name in names if name not in required | optional]
    asks = method not in _EITHER or {"questions", "examples"} & set(names)
    if not wrong and required <= set(names) and asks:
        return None
    allowed = _EITHER.get(
        method,
        f"({', '.join(sorted(required))})"
        + "".join(f", and may take {name!r}" for name in sorted(optional)),
    )
    return f"{cls.__name__}.{method} takes ({', '.join(names)}); it must take {allowed}"


def _check_index(cls: type) -> str | None:
    """Returns what is wrong with a retriever's `index`, `search` and `search_only`, or None."""
    found = index_methods(cls)
    if len(found) == 1:
        other = "search" if found == ("index",) else "index"
        return (
            f"{cls.__name__} has a method {found[0]!r} and no {other!r}; a retriever whose index"
            " is kept has both, any other has neither (name that method otherwise)"
        )
    problems = (_check_parameters(cls, method) for method in found)
    return next(filter(None, problems), None) or _check_search_only(cls)


def _check_search_only(cls: type) -> str | None:
    names = getattr(cls, "search_only", ())
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        return (
            f"{cls.__name__}.search_only is {names!r}; it must be a tuple of the names of"
            ' parameters that do not change the index, such as ("k",)'
        )
    known = parameters(cls) if names else {}
    for name in names:
        if name not in known:
            told = did_you_mean(name, known)
            return f"{cls.__name__}.search_only names {name!r}, which is no parameter{told}"
    return None
