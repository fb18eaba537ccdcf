"""Where a task's rows lie: a file, a folder's or a pattern's files, a data set on disk or hub."""

from __future__ import annotations

import glob
from collections.abc import Collection
from pathlib import Path

from leporello.core.errors import UserError
from leporello.core.files import read_json
from leporello.storage import RemotePath, to_path
from leporello.tasks.jsonl.hub import SCHEME, hub_files
from leporello.tasks.jsonl.unpacked import SUFFIXES as PACKED

_DICT, _STATE = "dataset_dict.json", "state.json"  # what `datasets` writes into folders


def find_files(path: Path, split: str, suffixes: Collection[str]) -> tuple[Path, ...]:
    """Returns the files of a split, in the order of their rows.

    Args:
        path: A file, a folder, a pattern such as `rows-*.jsonl.gz`, a folder that `datasets` saved,
            or `hf://datasets/OWNER/NAME`; `{split}` in it stands for the split.
        split: Name of the split; may be empty.
        suffixes: Suffixes of the files that count in a folder; compressed ones count too.

    Raises:
        UserError: There are no such files; or a split without a place in the path, or the other way
            round.
    """
    has_place = "{split}" in str(path)
    if has_place and not split:
        raise UserError(f"the path {path} needs a split; give `split` or --split")
    place = to_path(str(path).replace("{split}", split))
    wanted = (*suffixes, *(suffix + packed for suffix in suffixes for packed in PACKED))
    if str(place).startswith(SCHEME):
        return hub_files(str(place), split, wanted)
    if not isinstance(place, RemotePath) and (place / _DICT).is_file():
        place, has_place = _split_of(place, split), True
    if split and not has_place:
        raise UserError(f"split {split!r} is given, but the path {path} has no {{split}} in it")
    if isinstance(place, RemotePath) or place.is_file():
        return (place,)
    if place.is_dir():
        return _of_folder(place, wanted)
    return _of_pattern(place) if glob.has_magic(str(place)) else (place,)


def _of_folder(folder: Path, suffixes: tuple[str, ...]) -> tuple[Path, ...]:
    if (folder / _STATE).is_file():
        names = (file["filename"] for file in read_json(folder / _STATE)["_data_files"])
        return tuple(folder / name for name in names)
    found = sorted(file for file in folder.iterdir() if file.name.endswith(suffixes))
    if files := tuple(file for file in found if not file.name.startswith(".")):
        return files
    kinds = ", ".join(f"*{suffix}" for suffix in suffixes if not suffix.endswith(PACKED))
    raise UserError(f"{folder}: is a folder without {kinds}, compressed or not; name one file")


def _of_pattern(pattern: Path) -> tuple[Path, ...]:
    found = map(Path, glob.iglob(str(pattern), recursive=True))  # noqa: PTH207 -- of absolute ones too
    if files := tuple(sorted(file for file in found if not file.is_dir())):
        return files
    raise UserError(f"{pattern}: no file has such a name")


def _split_of(folder: Path, split: str) -> Path:
    splits = read_json(folder / _DICT)["splits"]
    if split not in splits:
        have = f"; it has {', '.join(map(repr, splits))}, one of which `split` or --split names"
        raise UserError(f"{folder}: has no split {split!r}{have}")
    return folder / split
