"""Keys of derived data in memory, and the codecs that pack the data for a cache."""

from __future__ import annotations

import dataclasses
import inspect
import json
import weakref
from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from leporello.core.annotations import SECRET_MARK, annotations_of, marked
from leporello.core.hashing import JSON

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Result of a retriever's `index`: named arrays and plain values, which a file can hold.
Index: TypeAlias = "dict[str, NDArray[Any] | JSON]"
Offsets: TypeAlias = "NDArray[np.int64]"  # starts and ends of characters, shape (rows, 2)
CacheKey: TypeAlias = "Mapping[str, JSON]"
# Returns everything that a stage's results depend on, without the parameters that are named; see
# `leporello.cache.dependencies.fingerprint`.
Fingerprint: TypeAlias = "Callable[[object, Collection[str]], CacheKey | None]"
Made = TypeVar("Made")

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
SCALARS = (bool, int, float, str, type(None))


class Tokenizer(Hashable, Protocol):
    """Tokenizer: hashable, since it is the key of a document's tokens in memory."""

    def offsets(self, text: str) -> Offsets:
        """Returns the tokens' (start, end) characters, shape (tokens, 2), ascending."""


class CacheProtocol(Protocol):
    """Cache of derived data between runs, such as `leporello.cache.store.Cache`."""

    def get(self, kind: str, key: CacheKey) -> Index | None:
        """Returns the value of this key, with read-only arrays; None if it is not cached."""

    def put(self, kind: str, key: CacheKey, value: Index) -> bool:
        """Stores the value of this key; returns False if it cannot be stored."""

    def fingerprint(self, stage: object, without: Collection[str] = ()) -> CacheKey | None:
        """Returns what a stage's results depend on, without some parameters; None if unknown."""


@dataclasses.dataclass(frozen=True, slots=True)
class Codec(Generic[Made]):
    """Conversion of one kind of derived data to and from its form in a cache."""

    kind: str
    pack: Callable[[Made], Index]
    unpack: Callable[[Index], Made]


class UnknownParametersError(Exception):
    """The parameters of a stage cannot be determined."""


# Facts about each object, by its `id` because equal objects can differ, as 1 and 1.0 do; with a
# reference that keeps the id valid.
_FACTS: dict[int, tuple[object, dict[Hashable, Any]]] = {}


def facts_of(target: object) -> dict[Hashable, Any]:
    """Returns a dictionary for facts about an object, which lasts as long as the object."""
    number = id(target)
    if number not in _FACTS:
        reference: object = target  # keeps the object alive if its slots forbid weak references
        with suppress(TypeError):
            reference = weakref.ref(target, lambda _: _FACTS.pop(number, None))
        _FACTS[number] = (reference, {})
    return _FACTS[number][1]


def memo_key(stage: object, without: Collection[str] = ()) -> Hashable:
    """Returns a key that is equal for stages that compute the same, within this process only.

    Cheap, since models and source files are not read.
    """
    facts, fact = facts_of(stage), ("memo_key", frozenset(without))
    if fact not in facts:
        try:
            parameters = parameters_of(stage).items()
        except UnknownParametersError:
            facts[fact] = object()
        else:
            keys = tuple((name, _value_key(v)) for name, v in parameters if name not in without)
            facts[fact] = (type(stage), keys)
    key: Hashable = facts[fact]
    return key


def _value_key(value: object) -> Hashable:
    if type(value) in SCALARS or isinstance(value, PurePath):
        # With the type, since `1 == True == 1.0`, and stages may treat them differently.
        return (type(value), repr(value))
    if isinstance(value, (tuple, list)):
        return (type(value), tuple(map(_value_key, value)))
    if isinstance(value, dict):
        return (dict, tuple((_value_key(key), _value_key(item)) for key, item in value.items()))
    return memo_key(value)


def parameters_of(stage: object) -> dict[str, Any]:
    """Returns a frozen dataclass's parameters without secrets, or raises UnknownParametersError."""
    cls: Any = type(stage)
    names = _parameter_names(cls)
    if names is None:
        raise UnknownParametersError
    return {name: getattr(stage, name) for name in names}


@cache
def _parameter_names(cls: type) -> tuple[str, ...] | None:
    # A class that is not frozen may change its parameters later, so they cannot be a key.
    if not dataclasses.is_dataclass(cls) or not cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]  # dataclasses set it
        return None
    names = [field.name for field in dataclasses.fields(cls) if field.init]
    if sorted(names) != sorted(inspect.signature(cls).parameters):
        return None
    try:
        annotations = annotations_of(cls)
    except Exception:  # an annotation can raise anything when it is evaluated
        return None
    return tuple(name for name in names if not marked(annotations.get(name), SECRET_MARK))


def _packed_offsets(offsets: Offsets) -> Index:
    """Returns offsets as 32-bit integers, all starts before all ends, the order of later use."""
    import numpy as np

    # They halve the files, and suffice for texts of 4 billion characters.
    return {"offsets": np.ascontiguousarray(offsets.T, dtype=np.uint32)}


def _offsets(entry: Index) -> Offsets:
    import numpy as np

    packed: Any = entry["offsets"]
    offsets: Offsets = read_only(packed.astype(np.int64).T)
    return offsets


def read_only(index: Any) -> Any:  # noqa: ANN401 -- `index` may return any object
    """Returns an index with read-only arrays, like the arrays of a cached index."""
    import numpy as np

    if type(index) is np.ndarray and index.flags.writeable:
        index = index.view()
        index.flags.writeable = False
    elif type(index) is dict:
        return {
            name: item if type(item) is dict else read_only(item) for name, item in index.items()
        }
    elif type(index) in (list, tuple) and any(type(item) is np.ndarray for item in index):
        return type(index)(map(read_only, index))
    return index


TOKENS = Codec("tokens", _packed_offsets, _offsets)


def canonical(value: Mapping[str, JSON]) -> str:
    """Returns JSON as text that is the same for equal values."""
    return _CANONICAL.encode(value)
