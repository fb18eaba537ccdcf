"""What is equal for stages that compute the same: within one process, and cheap."""

from __future__ import annotations

import dataclasses
import inspect
import weakref
from collections.abc import Callable, Collection, Hashable
from functools import cache
from pathlib import PurePath
from typing import Any

from leporello.core.annotations import annotations_of, marked
from leporello.core.protocols import SECRET_MARK

SCALARS = (bool, int, float, str, type(None))


class UnknownParametersError(Exception):
    """What a stage was made with cannot be told."""


class _ByInstance:
    """What is known of objects, as long as they live.

    By their `id`, since equal ones can differ: 1 and 1.0 are equal, and no parameter takes both.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Callable[[], object], dict[Hashable, Any]]] = {}

    def of(self, thing: object) -> dict[Hashable, Any]:
        """Returns what is known of this object, to be added to."""
        number = id(thing)
        if number not in self._known:
            try:
                held: Callable[[], object] = weakref.ref(
                    thing, lambda _: self._known.pop(number, None)
                )
            except TypeError:  # it has slots and no place for such references: it is kept alive
                held = lambda: thing  # noqa: E731 -- beside the reference that it stands for
            self._known[number] = (held, {})
        return self._known[number][1]


_KNOWN = _ByInstance()


def known_of(thing: object) -> dict[Hashable, Any]:
    """Returns what is known of an object as long as it lives, to be added to."""
    return _KNOWN.of(thing)


def memo_key(stage: object, without: Collection[str] = ()) -> Hashable:
    """Returns what is equal for stages that compute the same, within this process only.

    Without models or sources it is cheap, and there is one for every object: what has no known
    parameters is like nothing but itself.
    """
    cls: Any = type(stage)
    if _parameter_names(cls) is None:
        return _Same(stage)
    known, key = _KNOWN.of(stage), ("memo_key", frozenset(without))
    if key not in known:
        given = parameters_of(stage).items()
        kept = tuple((name, _alike(value)) for name, value in given if name not in without)
        known[key] = (cls, kept)
    found: Hashable = known[key]
    return found


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Same:
    """Equal to what holds the very same object."""

    thing: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.thing is self.thing

    def __hash__(self) -> int:
        return id(self.thing)


def _alike(value: object) -> Hashable:
    if type(value) in SCALARS or isinstance(value, PurePath):
        return (type(value), repr(value))
    if isinstance(value, (tuple, list)):
        return (type(value), tuple(map(_alike, value)))
    if isinstance(value, dict):
        return (dict, tuple((_alike(key), _alike(each)) for key, each in value.items()))
    return memo_key(value)


def parameters_of(stage: object) -> dict[str, Any]:
    """Returns the parameters that an instance was made with, secrets left out.

    Raises:
        UnknownParametersError: It is no frozen dataclass whose fields are these.
    """
    cls: Any = type(stage)
    names = _parameter_names(cls)
    if names is None:
        raise UnknownParametersError
    return {name: getattr(stage, name) for name in names}


@cache
def _parameter_names(cls: type) -> tuple[str, ...] | None:
    if not dataclasses.is_dataclass(cls) or not cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]  # dataclasses set it
        return None
    names = [field.name for field in dataclasses.fields(cls) if field.init]
    annotations = _annotations(cls)
    if sorted(names) != sorted(inspect.signature(cls).parameters) or annotations is None:
        return None
    return tuple(name for name in names if not marked(annotations.get(name), SECRET_MARK))


def _annotations(cls: type) -> dict[str, Any] | None:
    """Returns the parameters' annotations; None where one of them names what is not there."""
    try:
        return annotations_of(cls)
    except Exception:  # whatever an annotation raises that its class never had to evaluate
        return None
