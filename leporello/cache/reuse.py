"""Plug-in classes that declare no `depends_on` and whose results are reused: one line for each.

Workers only collect the names. The process that a user started prints them, each name once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence

from leporello.cache.source_code import is_own, public_name
from leporello.core.annotations import has_declared, is_repeatable
from leporello.core.records import JSON

UNDECLARED = "undeclared"  # key of a recipe: names of such classes

_log = logging.getLogger("leporello")
_collected: dict[str, None] = {}
_printed: set[str] = set()


def undeclared(classes: Iterable[type]) -> list[str]:
    """Returns the names of the plug-in classes among these that declare nothing."""
    return [
        public_name(cls) or cls.__qualname__
        for cls in classes
        if not (is_own(cls.__module__) or has_declared(cls)) and is_repeatable(cls)
    ]


def collect_reuse(names: Iterable[str]) -> None:
    """Collects names of classes whose results are reused."""
    _collected.update(dict.fromkeys(names))


def collect_recipe(recipe: JSON) -> None:
    """Collects the names in the recipe of an entry that the cache has returned."""
    collect_reuse(_names(recipe))


def collected() -> tuple[str, ...]:
    """Returns the names that were collected in this process."""
    return tuple(_collected)


def warn_of_reuse() -> None:
    """Warns of each collected class once per process."""
    for name in _collected.keys() - _printed:
        _printed.add(name)
        _log.warning(
            "%s does not declare depends_on: its results are reused, even if a file or variable"
            ' that it reads has changed; list these, depends_on = ("words.txt", "env:LANGUAGE"),'
            " or declare that there are none, depends_on = ()",
            name,
        )


def _names(recipe: JSON) -> Iterator[str]:
    if isinstance(recipe, Mapping):
        for key, value in recipe.items():
            if key == UNDECLARED and isinstance(value, Sequence):
                yield from map(str, value)
            else:
                yield from _names(value)
    elif isinstance(recipe, list):
        for value in recipe:
            yield from _names(value)
