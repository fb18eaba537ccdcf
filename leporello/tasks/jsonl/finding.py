"""Finds a task's files, and unpacks compressed ones once, so that reading can start at any row."""

import bz2
import fnmatch
import glob
import lzma
import os
import re
import secrets
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any

from leporello.core.environment.input_limits import EXPANDED_BYTES, EXPANDED_TIMES
from leporello.core.errors import UserError, few
from leporello.core.files import cache_directory, opened, read_json, sha256
from leporello.storage import RemotePath, to_path
from leporello.tasks.official.benchmark import Published
from leporello.tasks.official.download import explained, fetch_file

_KINDS = (".jsonl", ".ndjson", ".parquet", ".arrow", ".feather")
_SUFFIXES = tuple(kind + packed for kind in _KINDS for packed in ("", ".gz", ".bz2", ".zst", ".xz"))
_DICT, _STATE = "dataset_dict.json", "state.json"  # files of the library `datasets`
SCHEME = "hf://datasets/"


def find_files(path: Path, split: str) -> tuple[Path, ...]:
    """Returns the files of a split, in the order of their rows; without any, raises UserError.

    The path is a file, a folder, a pattern such as `rows-*.jsonl.gz`, a folder that `datasets`
    saved, or `hf://datasets/OWNER/NAME`. In a folder, files with suffixes of rows are read.
    """
    has_place = "{split}" in str(path)
    if has_place and not split:
        raise UserError(f"the path {path} needs a split; give `split` or --split")
    place = to_path(str(path).replace("{split}", split))
    if str(place).startswith(SCHEME):
        return hub_files(str(place), split)
    if not isinstance(place, RemotePath) and (place / _DICT).is_file():
        place, has_place = _split_of(place, split), True
    if split and not has_place:
        raise UserError(f"split {split!r} is given, but the path {path} does not contain {{split}}")
    if isinstance(place, RemotePath) or place.is_file():
        return (place,)
    if place.is_dir():
        return _of_folder(place)
    return _of_pattern(place) if glob.has_magic(str(place)) else (place,)


def _of_folder(folder: Path) -> tuple[Path, ...]:
    if (folder / _STATE).is_file():
        names = (file["filename"] for file in read_json(folder / _STATE)["_data_files"])
        return tuple(folder / name for name in names)
    # The order of a folder differs between machines, and would change the numbers of examples.
    matching = sorted(file for file in folder.iterdir() if file.name.endswith(_SUFFIXES))
    if files := tuple(file for file in matching if not file.name.startswith(".")):
        return files
    kinds = ", ".join(f"*{suffix}" for suffix in _KINDS)
    raise UserError(f"{folder}: the folder has no {kinds}, compressed or not; name one file")


def _of_pattern(pattern: Path) -> tuple[Path, ...]:
    matching = map(Path, glob.iglob(str(pattern), recursive=True))  # noqa: PTH207 -- absolute patterns too
    if files := tuple(sorted(file for file in matching if not file.is_dir())):
        return files
    raise UserError(f"{pattern}: no file matches")


def _split_of(folder: Path, split: str) -> Path:
    splits = read_json(folder / _DICT)["splits"]
    if split not in splits:
        allowed = f"; give one of {', '.join(map(repr, splits))} as `split` or --split"
        raise UserError(f"{folder}: has no split {split!r}{allowed}")
    return folder / split


@lru_cache(maxsize=64)
def hub_files(url: str, split: str) -> tuple[Path, ...]:
    """Returns copies of the files of a split, in LEPORELLO_CACHE/hub; fetches only changed ones.

    `hf://datasets/OWNER/NAME` may be followed by a configuration or the path of a file. The data
    set's card lists the files of each split, by default `train`. Without a card, a file belongs to
    a split if its name contains the split's name. Raises UserError if the hub has no such files.
    """
    owner, name, *path = [*filter(None, url.removeprefix(SCHEME).split("/")), ""][:-1] or ["", ""]
    repository, config = f"{owner}/{name}", "/".join(path)
    hashes, card = _repository(repository)
    rows = sorted(file for file in hashes if file.endswith(_SUFFIXES))
    split_name = split or "train"
    if config in hashes:
        matching = [config]
    else:
        matching = _by_card(card, config, split_name, rows) or _by_name(rows, config, split_name)
    if not matching:
        of = f"split {split_name!r}" + (f" of {config!r}" if config else "")
        others = few(rows) or "none"
        raise UserError(f"{url}: has no files of rows for {of}; other files of rows: {others}")
    return tuple(_fetched(repository, file, hashes) for file in matching)


def _repository(repository: str) -> tuple[Mapping[str, str], Sequence[Mapping[str, Any]]]:
    """Returns the hash of each file of a data set, and the configurations of its card."""
    # The card lists the files of a split, as `datasets` reads it. That library would bring pandas
    # and dill to the base install (decision 38).
    from huggingface_hub import HfApi

    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
    with explained(Published(repository, "its files", ""), cache_directory() / "hub"):
        facts = api.dataset_info(repository, files_metadata=True)
    hashes = {file.rfilename: str(file.blob_id) for file in facts.siblings or ()}
    return hashes, (facts.card_data and facts.card_data.get("configs")) or ()


def _fetched(repository: str, file: str, hashes: Mapping[str, str]) -> Path:
    # By hash: a changed file has another folder, and a run that reads the old one continues.
    folder = cache_directory() / "hub" / repository.replace("/", "--") / hashes[file][:16]
    path = folder / Path(file).name
    if path.exists():
        os.utime(folder)  # `cache gc` reads the time of the last use
    return fetch_file(repository, Published(repository, file, path.name), path).path


def _by_card(
    configs: Sequence[Mapping[str, Any]], config: str, split: str, files: Sequence[str]
) -> list[str]:
    chosen = [entry for entry in configs if entry.get("config_name") == (config or "default")]
    if not chosen and not config:
        chosen = [entry for entry in configs if entry.get("default")] or [*configs][:1]
    matching: list[str] = []
    for pattern in (p for entry in chosen for p in _patterns(entry.get("data_files"), split)):
        matching += [file for file in fnmatch.filter(files, pattern) if file not in matching]
    return matching


def _patterns(data_files: Any, split: str) -> Iterator[str]:  # noqa: ANN401 -- YAML
    for entry in [data_files] if isinstance(data_files, str) else data_files or ():
        fields = {"split": "train", "path": entry} if isinstance(entry, str) else entry
        if fields.get("split") == split:
            paths = fields.get("path") or ()
            yield from [paths] if isinstance(paths, str) else paths


def _by_name(files: Sequence[str], config: str, split: str) -> list[str]:
    """Returns files whose names contain the split, in a folder named after the configuration."""
    pattern = re.compile(rf"(^|.*[/_.-]){re.escape(split)}([/_.-].*)")
    under = [file for file in files if not config or config in file.split("/")[:-1]]
    return [file for file in under if pattern.fullmatch(file)]


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
    digest = sha256(path)
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
        decompressor = next(new for mark, new in _READERS.items() if magic.startswith(mark))
        try:
            yield from _frames(file, decompressor)
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


def _zst() -> Any:  # noqa: ANN401 -- zstandard has no types
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj()


_READERS: Mapping[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": partial(zlib.decompressobj, 16 + zlib.MAX_WBITS),  # with gzip's header
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\0": partial(lzma.LZMADecompressor, memlimit=_MEMORY),
    b"\x28\xb5\x2f\xfd": _zst,
}
