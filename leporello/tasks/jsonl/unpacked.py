"""Compressed files, each unpacked once: rows in the middle of one are then found at once."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from leporello.core.environment.input_limits import EXPANDED_BYTES, EXPANDED_TIMES
from leporello.core.errors import UserError
from leporello.core.files import opened
from leporello.models.locate import cache_directory
from leporello.tasks.jsonl.lines import pieces

SUFFIXES = (".gz", ".bz2", ".zst", ".xz")

_BLOCK = 1 << 20
_CHECKED = 1 << 26  # bytes written between two looks at the disk
_RESERVE = 1 << 30  # bytes of the disk that are left free
_FRAME = 18  # bytes of a zstd frame's head at most
_MEMORY = 1 << 28  # bytes that unpacking xz may take
_GONE = "what is compressed is cut off or damaged"


def unpacked(path: Path, limit: int) -> Path:
    """Returns a file of this machine that holds what a file does, if it is compressed, unpacked.

    Copies lie in LEPORELLO_CACHE/unpacked/SHA-256/LIMIT/NAME. Of a line that is longer than may be
    read, they have no more than tells that it is.

    Args:
        path: Path of the file.
        limit: Bytes of a line at most.

    Raises:
        UserError: The file cannot be read, is damaged, or expands beyond all measure; or there is
            no room for the copy.
    """
    with opened(path) as file:
        magic = file.read(6)
        if not any(magic.startswith(mark) for mark in _OPENERS):
            return Path(os.fspath(path))
        status = os.fstat(file.fileno())
        copy = _copy(path, (status.st_ino, status.st_size, status.st_mtime_ns), limit)
    if not copy.exists():  # removed since
        _copy.cache_clear()
        return unpacked(path, limit)
    return copy


@lru_cache(maxsize=4096)
def _copy(path: Path, stamp: tuple[int, int, int], limit: int) -> Path:  # noqa: ARG001 -- of what is remembered
    with opened(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    copy = cache_directory() / "unpacked" / digest[:32] / str(limit) / Path(path.name).stem
    if not copy.exists():
        part = copy.with_name(f".{secrets.token_hex(4)}.part")
        try:
            copy.parent.mkdir(parents=True, exist_ok=True)
            _unpack(path, part, limit)
            part.replace(copy)
        except OSError as error:
            raise UserError(f"{path}: cannot be unpacked to {copy.parent}: {error}") from None
        finally:
            part.unlink(missing_ok=True)
    else:
        os.utime(copy.parent)  # when it was used last, for `cache gc`
    return copy


def _unpack(path: Path, to: Path, limit: int) -> None:
    written, checked = 0, 0
    with to.open("wb") as target:
        for block in _blocks(path, limit):
            written += target.write(block)
            if written >= checked:
                checked = written + _CHECKED
                if shutil.disk_usage(to.parent).free < _RESERVE:
                    raise UserError(
                        f"{path}: there is no room to unpack it in {to.parent}: less than"
                        f" {_RESERVE >> 30} GiB would be left free; make room, or name another"
                        " place with LEPORELLO_CACHE"
                    )


def _blocks(path: Path, limit: int) -> Iterator[bytes]:
    """Yields what a compressed file holds, its lines cut where they are too long."""
    with opened(path) as file:
        magic = file.read(6)
        file.seek(0)
        open_ = next(open_ for mark, open_ in _OPENERS.items() if magic.startswith(mark))
        try:
            with io.BufferedReader(_Bounded(open_(file), path), _BLOCK) as stream:
                if path.name.removesuffix(path.suffix).endswith((".tar", ".parquet", ".arrow")):
                    while block := stream.read(_BLOCK):
                        yield block
                for content, size in pieces(stream, limit):
                    yield content if size == len(content) else content + b"\n"
        except _damage() as error:
            raise UserError(f"{path}: {_GONE}: {error}; fetch it again") from None


class _Bounded(io.RawIOBase):
    """What a compressed file holds, if it is no bomb; counted before anything is made of it."""

    def __init__(self, stream: Any, path: Path) -> None:  # noqa: ANN401 -- of several libraries
        self._stream, self._path = stream, path
        self._packed = path.stat().st_size
        self._left = self._most = max(EXPANDED_BYTES, EXPANDED_TIMES * self._packed)

    def readable(self) -> bool:
        """Says that it is read from."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 -- as RawIOBase has it
        """Fills a buffer as far as it goes.

        Raises:
            UserError: There is more than any text would be.
        """
        count: int = self._stream.readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise UserError(
                f"{self._path}: {self._packed:,} bytes expand to more than {self._most >> 20:,}"
                " MiB, as no text does; unpack it yourself if it is to be read"
            )
        return count


def _zst(file: IO[bytes]) -> Any:  # noqa: ANN401 -- a reader of zstandard's
    import zstandard

    _check_frames(file)
    file.seek(0)
    return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)


def _check_frames(file: IO[bytes]) -> None:
    """Raises EOFError where the last frame is cut off, which zstandard's reader passes over."""
    import zstandard

    while head := file.read(_FRAME):
        if head[1:4] == b"\x2a\x4d\x18":  # one that readers skip
            file.seek(8 + int.from_bytes(head[4:8], "little") - len(head), os.SEEK_CUR)
            continue
        file.seek(zstandard.frame_header_size(head) - len(head), os.SEEK_CUR)
        block = 0
        while not block & 1:  # the last
            if len(read := file.read(3)) < 3:  # noqa: PLR2004 -- of a block's head
                raise EOFError("ends within a frame")
            block = int.from_bytes(read, "little")
            file.seek(1 if block >> 1 & 3 == 1 else block >> 3, os.SEEK_CUR)
        file.seek(4 * zstandard.get_frame_parameters(head).has_checksum, os.SEEK_CUR)
    if file.tell() > file.seek(0, os.SEEK_END):
        raise EOFError("ends within a frame")


def _damage() -> tuple[type[Exception], ...]:
    import zstandard

    return (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError, ValueError)


class _XzStream(io.RawIOBase):
    """What a file in xz holds, in bounded memory, which `lzma.open` leaves to the file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._stream = file, lzma.LZMADecompressor(memlimit=_MEMORY)

    def readable(self) -> bool:
        """Says that it is read from."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 -- as RawIOBase has it
        """Fills a buffer as far as it goes."""
        found = b""
        while not found:
            data = self._file.read(_BLOCK) if self._stream.needs_input else b""
            if self._stream.eof:  # another stream may follow, behind zeros
                data = self._stream.unused_data.lstrip(b"\0") or self._file.read(_BLOCK)
                if not data:
                    return 0
                self._stream = lzma.LZMADecompressor(memlimit=_MEMORY)
            elif self._stream.needs_input and not data:
                raise EOFError("ends within a stream")
            found = self._stream.decompress(data, len(buffer))
        buffer[: len(found)] = found
        return len(found)


_OPENERS: Mapping[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": _XzStream,
    b"\x28\xb5\x2f\xfd": _zst,
}
