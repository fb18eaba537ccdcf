"""Data sets on the hub: which files a split has, and a copy of each."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from leporello.core.errors import UserError
from leporello.models.locate import cache_directory
from leporello.tasks.official.benchmark import Published
from leporello.tasks.official.download import explained, fetch_file

SCHEME = "hf://datasets/"
_CARD = "README.md"


@lru_cache(maxsize=64)
def hub_files(url: str, split: str, suffixes: tuple[str, ...]) -> tuple[Path, ...]:
    """Returns copies of the files of a split, fetched if they are others than before.

    They are those that the data set's card names for the split of a configuration; without such a
    card, those with the split's name in theirs. Copies lie in LEPORELLO_CACHE/hub.

    Args:
        url: `hf://datasets/OWNER/NAME`, with a configuration or the path of a file behind it.
        split: Name of the split; `train` if empty.
        suffixes: Suffixes of files that are rows.

    Raises:
        UserError: The hub cannot be reached, or has no such data set, or no such files in it.
    """
    owner, name, *rest = [*filter(None, url.removeprefix(SCHEME).split("/")), ""][:-1] or ["", ""]
    repository, config = f"{owner}/{name}", "/".join(rest)
    hashes = _listed(repository)
    rows = sorted(file for file in hashes if file.endswith(suffixes))
    wanted = split or "train"
    if config in hashes:
        found = [config]
    else:
        card = _card(repository, hashes)
        found = _by_card(card, config, wanted, rows) or _by_name(rows, config, wanted)
    if not found:
        of = f"split {wanted!r}" + (f" of {config!r}" if config else "")
        shown = ", ".join(rows[:8]) + (", …" if len(rows) > 8 else "") or "none"  # noqa: PLR2004
        raise UserError(f"{url}: has no files of rows for {of}; files that could be: {shown}")
    return tuple(_fetched(repository, file, hashes) for file in found)


def _listed(repository: str) -> dict[str, str]:
    """Returns the hashes of the files of a data set, by name."""
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
    with explained(Published(repository, "its files", ""), cache_directory() / "hub"):
        tree = api.list_repo_tree(repository, recursive=True, repo_type="dataset")
        return {file.path: file.blob_id for file in tree if isinstance(file, RepoFile)}


def _fetched(repository: str, file: str, hashes: Mapping[str, str]) -> Path:
    folder = cache_directory() / "hub" / repository.replace("/", "--") / hashes[file][:16]
    path = folder / Path(file).name
    if path.exists():
        os.utime(folder)  # when it was used last, for `cache gc`
    return fetch_file(repository, Published(repository, file, path.name), path).path


def _card(repository: str, hashes: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
    """Returns what a data set's card says of its configurations."""
    from huggingface_hub import metadata_load

    card = metadata_load(_fetched(repository, _CARD, hashes)) if _CARD in hashes else {}
    configs: Sequence[Mapping[str, Any]] = (card or {}).get("configs") or ()
    return configs


def _by_card(
    configs: Sequence[Mapping[str, Any]], config: str, split: str, files: Sequence[str]
) -> list[str]:
    named = [one for one in configs if one.get("config_name") == (config or "default")]
    if not named and not config:
        named = [one for one in configs if one.get("default")] or [*configs][:1]
    found: list[str] = []
    for pattern in (p for one in named for p in _patterns(one.get("data_files"), split)):
        found += [file for file in fnmatch.filter(files, pattern) if file not in found]
    return found


def _patterns(data_files: Any, split: str) -> Iterator[str]:  # noqa: ANN401 -- YAML
    if isinstance(data_files, str) and split == "train":  # which all is without a name
        yield data_files
    for entry in data_files if isinstance(data_files, list) else ():
        if isinstance(entry, str) and split == "train":
            yield entry
        elif isinstance(entry, dict) and entry.get("split") == split:
            paths = entry.get("path") or ()
            yield from [paths] if isinstance(paths, str) else paths


def _by_name(files: Sequence[str], config: str, split: str) -> list[str]:
    """Returns files that have the split's name in theirs, and lie under the configuration's."""
    named = re.compile(rf"(^|.*[/_.-]){re.escape(split)}([/_.-].*)")
    under = [file for file in files if not config or config in file.split("/")[:-1]]
    return [file for file in under if named.fullmatch(file)]
