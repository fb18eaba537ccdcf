"""Finds a task's files: a file, a folder, a pattern, or a data set on disk or on the hub."""

import fnmatch
import glob
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from leporello.core.errors import UserError
from leporello.core.files import cache_directory, read_json
from leporello.storage import RemotePath, to_path
from leporello.tasks.jsonl.unpacked import SUFFIXES as PACKED
from leporello.tasks.official.benchmark import Published
from leporello.tasks.official.download import explained, fetch_file

_DICT, _STATE = "dataset_dict.json", "state.json"  # files of the library `datasets`
SCHEME = "hf://datasets/"


def find_files(path: Path, split: str, suffixes: Collection[str]) -> tuple[Path, ...]:
    """Returns the files of a split, in the order of their rows; without any, raises UserError.

    The path is a file, a folder, a pattern such as `rows-*.jsonl.gz`, a folder that `datasets`
    saved, or `hf://datasets/OWNER/NAME`. In a folder, files with these suffixes are read,
    compressed or not.
    """
    has_place = "{split}" in str(path)
    if has_place and not split:
        raise UserError(f"the path {path} needs a split; give `split` or --split")
    place = to_path(str(path).replace("{split}", split))
    all_suffixes = (*suffixes, *(suffix + packed for suffix in suffixes for packed in PACKED))
    if str(place).startswith(SCHEME):
        return hub_files(str(place), split, all_suffixes)
    if not isinstance(place, RemotePath) and (place / _DICT).is_file():
        place, has_place = _split_of(place, split), True
    if split and not has_place:
        raise UserError(f"split {split!r} is given, but the path {path} does not contain {{split}}")
    if isinstance(place, RemotePath) or place.is_file():
        return (place,)
    if place.is_dir():
        return _of_folder(place, all_suffixes)
    return _of_pattern(place) if glob.has_magic(str(place)) else (place,)


def _of_folder(folder: Path, suffixes: tuple[str, ...]) -> tuple[Path, ...]:
    if (folder / _STATE).is_file():
        names = (file["filename"] for file in read_json(folder / _STATE)["_data_files"])
        return tuple(folder / name for name in names)
    # The order of a folder differs between machines, and would change the numbers of examples.
    matching = sorted(file for file in folder.iterdir() if file.name.endswith(suffixes))
    if files := tuple(file for file in matching if not file.name.startswith(".")):
        return files
    kinds = ", ".join(f"*{suffix}" for suffix in suffixes if not suffix.endswith(PACKED))
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
def hub_files(url: str, split: str, suffixes: tuple[str, ...]) -> tuple[Path, ...]:
    """Returns copies of the files of a split, in LEPORELLO_CACHE/hub; fetches only changed ones.

    `hf://datasets/OWNER/NAME` may be followed by a configuration or the path of a file. The data
    set's card lists the files of each split, by default `train`. Without a card, a file belongs to
    a split if its name contains the split's name. Raises UserError if the hub has no such files.
    """
    owner, name, *path = [*filter(None, url.removeprefix(SCHEME).split("/")), ""][:-1] or ["", ""]
    repository, config = f"{owner}/{name}", "/".join(path)
    hashes, card = _repository(repository)
    rows = sorted(file for file in hashes if file.endswith(suffixes))
    split_name = split or "train"
    if config in hashes:
        matching = [config]
    else:
        matching = _by_card(card, config, split_name, rows) or _by_name(rows, config, split_name)
    if not matching:
        of = f"split {split_name!r}" + (f" of {config!r}" if config else "")
        shown = ", ".join(rows[:8]) + (", …" if len(rows) > 8 else "") or "none"  # noqa: PLR2004
        raise UserError(f"{url}: has no files of rows for {of}; other files of rows: {shown}")
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
    if isinstance(data_files, str) and split == "train":  # the default name of a single split
        yield data_files
    for entry in data_files if isinstance(data_files, list) else ():
        if isinstance(entry, str) and split == "train":
            yield entry
        elif isinstance(entry, dict) and entry.get("split") == split:
            paths = entry.get("path") or ()
            yield from [paths] if isinstance(paths, str) else paths


def _by_name(files: Sequence[str], config: str, split: str) -> list[str]:
    """Returns files whose names contain the split, in a folder named after the configuration."""
    pattern = re.compile(rf"(^|.*[/_.-]){re.escape(split)}([/_.-].*)")
    under = [file for file in files if not config or config in file.split("/")[:-1]]
    return [file for file in under if pattern.fullmatch(file)]
