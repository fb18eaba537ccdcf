"""Unpacks compressed files once, to a cache, so that reading can start at any row."""

import bz2
import gzip
import lzma
import os
import secrets
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any

from leporello.core.environment.input_limits import EXPANDED_BYTES, EXPANDED_TIMES
from leporello.core.errors import UserError
from leporello.core.files import Stamp, cache_directory, opened, sha256, stamp

SUFFIXES = (".gz", ".bz2", ".zst", ".xz")

_BLOCK = 1 << 20
_FRAGMENT = 1 << 10  # bytes of a frame that are expanded at once; the result is up to 32 MiB
# xz needs 65 MiB at its highest preset, but the header of a file can demand 4 GiB.
_MEMORY = 1 << 28  # most bytes of memory for unpacking xz


def unpacked(path: Path) -> Path:
    """Returns the path of a local file, unpacked to LEPORELLO_CACHE/unpacked if it is compressed.

    Raises UserError if the file is damaged or expands too much, or the disk is full.
    """
    with opened(path) as file:
        magic = file.read(6)
    if not magic.startswith(tuple(_READERS)):
        return Path(os.fspath(path))
    # gzip and xz cannot seek, so each shard would read from the beginning, which is quadratic. An
    # index into them (rapidgzip, indexed_bzip2) needs a library per format (decision 38).
    digest = _digest(path, stamp(path))
    folder = cache_directory() / "unpacked" / digest[:16] / digest[16:32]
    copy = folder / Path(path.name).stem
    if copy.exists():
        os.utime(folder)  # `cache gc` reads the time of the last use
        return copy
    # Several workers may unpack the same file: each writes its own part and renames it atomically.
    part = folder.with_name(f".{secrets.token_hex(4)}.part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _unpack(path, part)
        return part.replace(copy)
    except OSError as error:
        raise UserError(
            f"{path}: cannot be unpacked to {folder}: {error}; free disk space, or set"
            " LEPORELLO_CACHE to another folder"
        ) from None
    finally:
        part.unlink(missing_ok=True)


@lru_cache(maxsize=4096)
def _digest(path: Path, stamp: Stamp) -> str:  # noqa: ARG001 -- a file with another stamp is read again
    return sha256(path)


def _unpack(path: Path, to: Path) -> None:
    size, written = path.stat().st_size, 0
    most = max(EXPANDED_BYTES, EXPANDED_TIMES * size)
    with to.open("wb") as target:
        for block in _blocks(path):
            written += target.write(block)
            if written > most:
                raise UserError(
                    f"{path}: {size:,} bytes expand to more than {most >> 20:,} MiB, too many for"
                    " text; unpack the file yourself to read it anyway"
                )


def _blocks(path: Path) -> Iterator[bytes]:
    import zstandard

    with opened(path) as file:
        magic = file.read(6)
        file.seek(0)
        try:
            yield from next(read for mark, read in _READERS.items() if magic.startswith(mark))(file)
        except (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
            raise UserError(
                f"{path}: the compressed data is truncated or damaged: {error}; fetch it again"
            ) from None


def _frames(file: IO[bytes], decompressor: Callable[[], Any]) -> Iterator[bytes]:
    """Yields the content of consecutive frames, decompressed in bounded memory."""
    frame, packed = None, b""
    while data := packed or file.read(_FRAGMENT):
        packed = b""
        if frame is None and not (data := data.lstrip(b"\0")):  # padding between frames
            continue
        frame = frame or decompressor()
        yield frame.decompress(data)
        if frame.eof:
            packed, frame = frame.unused_data, None
    if frame:
        raise EOFError("ends within a frame")


def _zst(file: IO[bytes]) -> Iterator[bytes]:
    import zstandard

    return _frames(file, zstandard.ZstdDecompressor().decompressobj)


def _streamed(open_: Callable[..., Any], file: IO[bytes]) -> Iterator[bytes]:
    return iter(partial(open_(file).read, _BLOCK), b"")


_READERS: Mapping[bytes, Callable[[IO[bytes]], Iterator[bytes]]] = {
    b"\x1f\x8b": partial(_streamed, gzip.open),
    b"BZh": partial(_streamed, bz2.open),
    b"\xfd7zXZ\0": lambda file: _frames(file, partial(lzma.LZMADecompressor, memlimit=_MEMORY)),
    b"\x28\xb5\x2f\xfd": _zst,
}
