"""One entry of the cache as a file: named arrays and JSON, by safetensors, with a checksum.

Nothing in such a file is ever run. Arrays that are read are views of the file's bytes.
"""

from __future__ import annotations

import json
import mmap
import os
import secrets
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from leporello.core.records import JSON, Index

if TYPE_CHECKING:
    from numpy.typing import NDArray

PARTIAL = ".partial"  # how names of what is half written end

# From here on a file is mapped into memory, not read. A map costs as much as reading so many
# bytes, and each holds one of the process's file descriptors.
_MAPPED = 2**18
_CRC = b'"crc32":"'  # stands nowhere else in a header: inside of JSON text its quotes are escaped
_NO_CRC = b"00000000"
_SCALARS = {bool, int, float, str, type(None)}
_BITS = (8, 16, 32, 64)
_TYPES = {
    "BOOL": "bool",
    **{f"F{bits}": f"float{bits}" for bits in _BITS[1:]},
    **{f"I{bits}": f"int{bits}" for bits in _BITS},
    **{f"U{bits}": f"uint{bits}" for bits in _BITS},
}

Buffer: TypeAlias = "bytes | mmap.mmap"


class DamagedEntryError(Exception):
    """A file is not what it was when it was written; the text says in what."""


def read(path: Path, key: str) -> tuple[Index, float]:
    """Returns what a file holds, and when it was last used.

    Large files are mapped into memory; no array can be written to.

    Raises:
        DamagedEntryError: It is torn, a byte of it has changed, or it holds something else.
        OSError: As opening and reading it does.
    """
    content, last_use = _contents(path)
    try:
        return _value(content, key), last_use
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedEntryError("it is cut off, or no file of ours") from error


def read_key(path: Path) -> dict[str, JSON] | None:
    """Returns the recipe that a file names; None where it cannot be read."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = file.read(min(length, path.stat().st_size))
        key = json.loads(json.loads(header)["__metadata__"]["recipe"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return key if isinstance(key, dict) else None


def _contents(path: Path) -> tuple[Buffer, float]:
    """Returns a file's bytes, mapped if they are many, and when it was last used."""
    with path.open("rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        if status.st_size >= _MAPPED:
            try:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), status.st_mtime
            except OSError as error:  # too many files open: read it
                raise_interruption(error)
        return file.read(), status.st_mtime


def _value(content: Buffer, key: str) -> Index:
    """Returns the arrays, as views of a file's bytes, and the plain values.

    Raises:
        DamagedEntryError: Its checksum or its recipe is another.
        ValueError, KeyError, TypeError, AttributeError: It is torn, or no such file at all.
    """
    view = memoryview(content)
    start = 8 + int.from_bytes(view[:8], "little")
    header = bytes(view[8:start])
    at = 8 + header.index(_CRC) + len(_CRC)
    stored = bytes(view[at : at + len(_NO_CRC)])
    if stored != _checksum(view[:at], view[at + len(_NO_CRC) :]):
        raise DamagedEntryError("its checksum is wrong")
    fields = json.loads(header)
    metadata = fields.pop("__metadata__")
    if metadata["recipe"] != key:
        raise DamagedEntryError("it was made from something else than its name says")
    value: Index = json.loads(metadata["values"])
    value.update((name, _array(content, start, field)) for name, field in fields.items())
    return value


def _array(content: Buffer, start: int, field: Mapping[str, Any]) -> NDArray[Any]:
    import numpy as np

    dtype, (begin, end) = np.dtype(_TYPES[field["dtype"]]), field["data_offsets"]
    shape = tuple(field["shape"])
    return np.ndarray(shape, dtype, memoryview(content)[start + begin : start + end])


def _checksum(before: memoryview, after: memoryview) -> bytes:
    """Returns the CRC-32 of a file, but for itself, as it stands between these two parts."""
    return b"%08x" % zlib.crc32(after, zlib.crc32(_NO_CRC, zlib.crc32(before)))


def pack(key: str, value: object) -> bytearray | None:
    """Returns a file's bytes; None for a value that would not come back as it is."""
    import numpy as np
    from safetensors import SafetensorError
    from safetensors.numpy import save

    if type(value) is not dict or not _is_json(dict.fromkeys(value)) or "__metadata__" in value:
        return None
    arrays = {n: np.asarray(v, order="C") for n, v in value.items() if type(v) is np.ndarray}
    plain = {name: item for name, item in value.items() if name not in arrays}
    try:
        if not all(map(_is_numeric, arrays.values())) or not _is_json(plain):
            return None
        metadata = {"recipe": key, "values": json.dumps(plain), "crc32": _NO_CRC.decode()}
        content = bytearray(save(arrays, metadata))
    except (RecursionError, UnicodeEncodeError, SafetensorError):  # nested too deep, or too large
        return None
    at = content.index(_CRC) + len(_CRC)
    content[at : at + len(_NO_CRC)] = b"%08x" % zlib.crc32(content)
    return content


def _is_numeric(array: NDArray[Any]) -> bool:
    return array.dtype.isnative and array.dtype.name in _TYPES.values()


def _is_json(value: object) -> bool:
    """Says whether a value is made of Python's own types alone, as JSON gives them back."""
    if type(value) is dict:
        return set(map(type, value)) <= {str} and _is_json([*value.values()])
    if type(value) is list:
        return set(map(type, value)) <= _SCALARS or all(map(_is_json, value))
    return type(value) in _SCALARS


def write(path: Path, content: bytearray) -> None:
    """Writes a file that is there wholly or not at all, whoever else writes it meanwhile."""
    partial = path.with_suffix(f".{os.getpid()}-{secrets.token_hex(4)}{PARTIAL}")
    try:
        try:
            file = partial.open("xb")
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = partial.open("xb")
        with file:
            file.write(content)
        partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


def raise_interruption(error: OSError) -> None:
    """Raises what a time limit raised, which is an OSError that no operation reported."""
    if error.errno is None:
        raise error
