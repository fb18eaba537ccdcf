"""Memory of what was derived from a document: its keys, and the form that it has in a cache.

A memo key is equal for stages that compute the same, within one process. It is cheap.
"""

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

# What a retriever's `index` returns: named arrays and plain values, which files can hold.
Index: TypeAlias = "dict[str, NDArray[Any] | JSON]"
CacheKey: TypeAlias = "Mapping[str, JSON]"
# Returns what a stage depends on besides some parameters, as `leporello.cache.fingerprint` does.
Fingerprint: TypeAlias = "Callable[[object, Collection[str]], CacheKey | None]"
Made = TypeVar("Made")

_LARGEST = 2**32 - 1  # what a cache keeps of offsets; a text of more characters stays in memory
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
SCALARS = (bool, int, float, str, type(None))


class Tokenizer(Hashable, Protocol):
    """What counts tokens: hashable, so that a document's tokens are kept under it."""

    def offsets(self, text: str) -> NDArray[np.int64]:
        """Returns the tokens' (start, end) characters, shape (tokens, 2), ascending."""
        ...


class CacheProtocol(Protocol):
    """Where what was derived from documents is kept between runs: `leporello.cache.store.Cache`."""

    def get(self, kind: str, key: CacheKey) -> Index | None:
        """Returns what was made by this recipe, its arrays read-only; None if it is not kept."""
        ...

    def put(self, kind: str, key: CacheKey, value: Index) -> bool:
        """Keeps what was made by this recipe; False if it cannot be kept."""
        ...

    def fingerprint(self, stage: object, without: Collection[str] = ()) -> CacheKey | None:
        """Returns what a stage's results depend on besides some parameters; None if unknown."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Codec(Generic[Made]):
    """How one kind of thing is put into a cache, and taken from it.

    Attributes:
        kind: Its name there.
        pack: Function that returns the value as arrays and plain values, or None if they cannot
            hold it.
        unpack: Function that returns the value of what `pack` returned.
    """

    kind: str
    pack: Callable[[Made], Index | None]
    unpack: Callable[[Index], Made]


class UnknownParametersError(Exception):
    """What a stage was made with cannot be told."""


# What is known of each object, by its `id`: equal ones can differ, as 1 and 1.0 do. Beside it, what
# holds the object.
_KNOWN: dict[int, tuple[object, dict[Hashable, Any]]] = {}


def known_of(thing: object) -> dict[Hashable, Any]:
    """Returns what is known of an object as long as it lives, to be added to."""
    number = id(thing)
    if number not in _KNOWN:
        held: object = thing  # where its slots have no place for a reference, it is kept alive
        with suppress(TypeError):
            held = weakref.ref(thing, lambda _: _KNOWN.pop(number, None))
        _KNOWN[number] = (held, {})
    return _KNOWN[number][1]


def memo_key(stage: object, without: Collection[str] = ()) -> Hashable:
    """Returns what is equal for stages that compute the same, within this process only.

    Without models or sources it is cheap, and there is one for every object: what has no known
    parameters is like nothing but itself.
    """
    known, key = known_of(stage), ("memo_key", frozenset(without))
    if key not in known:
        try:
            given = parameters_of(stage).items()
        except UnknownParametersError:
            known[key] = object()
        else:
            kept = tuple((name, _alike(value)) for name, value in given if name not in without)
            known[key] = (type(stage), kept)
    found: Hashable = known[key]
    return found


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
    if sorted(names) != sorted(inspect.signature(cls).parameters):
        return None
    try:
        annotations = annotations_of(cls)
    except Exception:  # whatever an annotation raises that its class never had to evaluate
        return None
    return tuple(name for name in names if not marked(annotations.get(name), SECRET_MARK))


def tokens_key(text: str, tokenizer: Tokenizer, fingerprint: Fingerprint) -> CacheKey | None:
    """Returns what the tokens of a text with this SHA-256 are made from; None if unknown."""
    identity = fingerprint(tokenizer, ())
    return None if identity is None else {"tokenizer": {**identity}, "text": text}


def _packed_offsets(offsets: NDArray[np.int64]) -> Index | None:
    """Returns offsets in half the bytes, all starts before all ends, as they are used."""
    import numpy as np

    if offsets.size and (offsets.min() < 0 or offsets.max() > _LARGEST):
        return None
    return {"offsets": np.ascontiguousarray(offsets.T, dtype=np.uint32)}


def _offsets(kept: Index) -> NDArray[np.int64]:
    import numpy as np

    packed: Any = kept["offsets"]
    offsets: NDArray[np.int64] = read_only(packed.astype(np.int64).T)
    return offsets


def read_only(made: Any) -> Any:  # noqa: ANN401 -- whatever `index` returned
    """Returns an index with arrays that cannot be written to, as those from a cache cannot."""
    import numpy as np

    if type(made) is np.ndarray:
        made = made.view()
        made.flags.writeable = False
    elif type(made) is dict:
        return {
            name: value if type(value) is dict else read_only(value) for name, value in made.items()
        }
    elif type(made) in (list, tuple) and any(type(value) is np.ndarray for value in made):
        return type(made)(map(read_only, made))
    return made


TOKENS = Codec("tokens", _packed_offsets, _offsets)


def canonical(value: Mapping[str, JSON]) -> str:
    """Returns JSON as text, the same for equal values."""
    return _CANONICAL.encode(value)
