"""Unpacks compressed files once, to a cache, so that reading can start at any row."""

from __future__ import annotations

import bz2
import gzip
import io
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
from leporello.core.files import Stamp, opened, sha256, stamp
from leporello.models.locate import cache_directory

SUFFIXES = (".gz", ".bz2", ".zst", ".xz")

_BLOCK = 1 << 20
_FRAGMENT = 1 << 10  # bytes of a frame that are expanded at once; the result is up to 32 MiB
# xz needs 65 MiB at its highest preset, but the header of a file can demand 4 GiB.
_MEMORY = 1 << 28  # most bytes of memory for unpacking xz


def unpacked(path: Path) -> Path:
    """Returns the path of a local file, unpacked if it is compressed.

    Copies are stored as LEPORELLO_CACHE/unpacked/HASH/HASH/NAME.

    Raises:
        UserError: The file cannot be read, is damaged or expands too much, or the disk is full.
    """
    with opened(path) as file:
        magic = file.read(6)
    if not any(magic.startswith(mark) for mark in _OPENERS):
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
    """Yields the content of a compressed file."""
    import zstandard

    with opened(path) as file:
        magic = file.read(6)
        file.seek(0)
        try:
            stream = next(open_ for mark, open_ in _OPENERS.items() if magic.startswith(mark))(file)
            while block := stream.read(_BLOCK):
                yield block
        except (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
            raise UserError(
                f"{path}: the compressed data is truncated or damaged: {error}; fetch it again"
            ) from None


class _Frames(io.RawIOBase):
    """Content of consecutive frames, decompressed in bounded memory."""

    def __init__(self, file: IO[bytes], decompressor: Callable[[], Any]) -> None:
        self._file, self._decompressor = file, decompressor
        self._frame: Any = None
        self._packed, self._content = b"", memoryview(b"")

    def readable(self) -> bool:
        """Returns True: the stream is readable."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 -- as in RawIOBase
        """Fills a buffer, and returns the number of bytes."""
        while not self._content:
            data = self._packed or self._file.read(_FRAGMENT)
            if not data:
                if self._frame:
                    raise EOFError("ends within a frame")
                return 0
            self._packed = b""
            if not self._frame and not (data := data.lstrip(b"\0")):  # padding between frames
                continue
            self._frame = self._frame or self._decompressor()
            self._content = memoryview(self._frame.decompress(data))
            if self._frame.eof:
                self._packed, self._frame = self._frame.unused_data, None
        count = min(len(buffer), len(self._content))
        buffer[:count], self._content = self._content[:count], self._content[count:]
        return count


def _zst(file: IO[bytes]) -> _Frames:
    import zstandard

    return _Frames(file, zstandard.ZstdDecompressor().decompressobj)


def _xz(file: IO[bytes]) -> _Frames:
    return _Frames(file, partial(lzma.LZMADecompressor, memlimit=_MEMORY))


_OPENERS: Mapping[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": _xz,
    b"\x28\xb5\x2f\xfd": _zst,
}
