"""The names of 0.1: importing one gives the very module or class that has the new name.

So nothing exists twice, and what is pickled or fingerprinted names the new place alone.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

# What docs/plug-ins.md and docs/training.md of 0.1 name, and what plug-ins take besides.
MODULES: Mapping[str, str] = {
    "leporello.coverage": "leporello.core.coverage",
    "leporello.errors": "leporello.core.errors",
    "leporello.items": "leporello.core.items",
    "leporello.loading": "leporello.loaders",
    "leporello.log_odds": "leporello.text.log_odds",
    "leporello.notes": "leporello.core.notes",
    "leporello.records": "leporello.core.records",
    "leporello.stages": "leporello.core.protocols",
    "leporello.tokens": "leporello.text.tokens",
}
_STAGES = ("chunkers", "combiners", "readers", "retrievers")  # packages of their own in 0.1
_PACKAGE = Path(__file__).parents[2]


class _OldNames(MetaPathFinder, Loader):
    """Finds and loads modules under their old names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        return ModuleSpec(fullname, self) if new_name(fullname) else None

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        new = new_name(old)
        assert new is not None
        if old.startswith("leporello.") or "." not in old:
            _warn(old, new, 2)
        sys.modules[old] = import_module(new)  # the import statement takes what stands there


def new_name(name: str) -> str | None:
    """Returns a module's new name; None if it is no old name of Leporello's."""
    top, _, below = name.partition(".")
    if top not in _STAGES:
        return MODULES.get(name)
    if not below:  # a folder of this name that Python finds is somebody else's, or a checkout's
        return None if PathFinder.find_spec(top) else f"leporello.{top}"
    return f"leporello.{name}" if _is_ours(top) else None


def _is_ours(package: str) -> bool:
    """Says whether an imported package is Leporello's, under its old name or from a checkout."""
    file = getattr(sys.modules.get(package), "__file__", None) or ""
    return Path(file).resolve() == (_PACKAGE / package / "__init__.py").resolve()


def _warn(old: str, new: str, level: int) -> None:
    text = f"{old} is {new} now (docs/upgrading.md)"
    warnings.warn(text, FutureWarning, stacklevel=level + 1)


def answer_to_old_names() -> None:
    """Lets modules be imported under the names that 0.1 had for them."""
    if not any(isinstance(finder, _OldNames) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OldNames())


def renamed(module: str, names: Mapping[str, str]) -> Callable[[str], object]:
    """Returns a module's `__getattr__`, which answers to old names with the new.

    Args:
        module: Its name.
        names: New names by old ones.
    """

    def answer(name: str) -> object:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        _warn(f"{module}.{name}", f"{module}.{names[name]}", 2)
        return getattr(sys.modules[module], names[name])

    return answer
