"""Entries of the cache: named arrays and JSON as safetensors, with a checksum.

Reading an entry never executes code from it. Arrays are views of the file's bytes.
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

from leporello.core.records import Index

if TYPE_CHECKING:
    from numpy.typing import NDArray

PARTIAL = ".partial"  # suffix of unfinished files

# Files of this size or more are mapped into memory; for smaller ones a map would cost as much.
_MAPPED = 2**18
_CRC = b'"crc32":"'  # unique in a header, since JSON strings escape their quotes
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
    """A cache file that changed since it was written; the message names the damage."""


def read(path: Path, key: str) -> tuple[Index, float]:
    """Returns the value in a file, with read-only arrays, and the time of its last use.

    Raises:
        DamagedEntryError: The file is truncated or changed, or its recipe differs from `key`.
        OSError: The file cannot be opened or read.
    """
    content, last_use = _contents(path)
    try:
        return _value(content, key), last_use
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedEntryError("it is truncated, or not a cache file") from error


def _contents(path: Path) -> tuple[Buffer, float]:
    """Returns the bytes of a file, mapped if it is large, and the time of its last use."""
    if path.exists() and not path.is_file():  # opening a pipe would block
        raise DamagedEntryError("it is not a file")
    with path.open("rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        if status.st_size >= _MAPPED:
            try:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), status.st_mtime
            except OSError as error:  # too many open files: read it instead
                raise_interruption(error)
        return file.read(), status.st_mtime


def _value(content: Buffer, key: str) -> Index:
    """Returns the arrays, as views of a file's bytes, and the plain values."""
    view = memoryview(content)
    start = 8 + int.from_bytes(view[:8], "little")
    header = bytes(view[8:start])
    position = 8 + header.index(_CRC) + len(_CRC)
    stored = bytes(view[position : position + len(_NO_CRC)])
    if stored != _checksum(view[:position], view[position + len(_NO_CRC) :]):
        raise DamagedEntryError("its checksum is wrong")
    fields = json.loads(header)
    metadata = fields.pop("__metadata__")
    # The name is only a hash; the complete recipe excludes any collision or renamed file.
    if metadata["recipe"] != key:
        raise DamagedEntryError("its content does not match its key")
    value: Index = json.loads(metadata["values"])
    value.update((name, _array(content, start, field)) for name, field in fields.items())
    return value


def _array(content: Buffer, start: int, field: Mapping[str, Any]) -> NDArray[Any]:
    import numpy as np

    dtype, (begin, end) = np.dtype(_TYPES[field["dtype"]]), field["data_offsets"]
    shape = tuple(field["shape"])
    return np.ndarray(shape, dtype, memoryview(content)[start + begin : start + end])


def _checksum(before: memoryview, after: memoryview) -> bytes:
    """Returns the CRC-32 of a file, with zeros in place of the checksum between the two parts."""
    return b"%08x" % zlib.crc32(after, zlib.crc32(_NO_CRC, zlib.crc32(before)))


def pack(key: str, value: object) -> bytearray | None:
    """Returns the bytes of a file; None for a value that reading would not restore exactly."""
    import numpy as np
    from safetensors import SafetensorError
    from safetensors.numpy import save

    # Exact types: a subclass or tuple would come back as another type, in the second run only.
    if type(value) is not dict or not _is_json(dict.fromkeys(value)) or "__metadata__" in value:
        return None
    arrays = {n: np.asarray(v, order="C") for n, v in value.items() if type(v) is np.ndarray}
    plain = {name: item for name, item in value.items() if name not in arrays}
    # Arrays of objects or texts would need pickle, which can run code (decision 9).
    is_numeric = all(a.dtype.isnative and a.dtype.name in _TYPES.values() for a in arrays.values())
    try:
        if not is_numeric or not _is_json(plain):
            return None
        metadata = {"recipe": key, "values": json.dumps(plain), "crc32": _NO_CRC.decode()}
        content = bytearray(save(arrays, metadata))
    except (RecursionError, UnicodeEncodeError, SafetensorError):  # nested too deep, or too large
        return None
    position = content.index(_CRC) + len(_CRC)
    content[position : position + len(_NO_CRC)] = b"%08x" % zlib.crc32(content)
    return content


def _is_json(value: object) -> bool:
    """Returns whether a value consists only of Python types that JSON restores exactly."""
    if type(value) is dict:
        return set(map(type, value)) <= {str} and _is_json([*value.values()])
    if type(value) is list:
        return set(map(type, value)) <= _SCALARS or all(map(_is_json, value))
    return type(value) in _SCALARS


def write(path: Path, content: bytearray) -> None:
    """Writes a file atomically, safe against other processes that write it at the same time."""
    # Process and random: two threads of one process may write the same entry.
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
    """Raises the error again if it came from a time limit: such an OSError has no errno."""
    if error.errno is None:
        raise error
