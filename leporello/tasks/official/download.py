"""The benchmarks' files from the hub, into the data directory."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leporello.core.errors import UserError
from leporello.core.files import sha256
from leporello.core.protocols import Task
from leporello.tasks.official.archives import data_directory
from leporello.tasks.official.benchmark import Published

if TYPE_CHECKING:
    from huggingface_hub import HfFileMetadata

_TIMEOUT = 20.0  # seconds in which the hub must say what it has
_SHA256 = re.compile(r"[0-9a-f]{64}")  # what the hub tells large files by


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file that is there now.

    Attributes:
        task: Name of the task for which it was fetched.
        path: Path of the file.
        size: Size in bytes.
        sha256: SHA-256 of its bytes.
        downloaded: Whether it was downloaded; False if it was there already.
    """

    task: str
    path: Path
    size: int
    sha256: str
    downloaded: bool


def fetch(tasks: Mapping[str, Task], data: Path | None = None) -> Iterator[Fetched]:
    """Downloads the files of benchmarks' tasks, each when the next one is asked for.

    A file that is there is left alone, and the hub not asked. A download that was cut off goes on
    where it was; a file stands in its place only when it is whole and its checksum is right. The
    hub is that of `HF_ENDPOINT`.

    Args:
        tasks: Tasks by name, as a config builds them.
        data: The data directory; None stands for each task's own.

    Yields:
        Each file once, though several tasks may read it.

    Raises:
        UserError: A task whose files are not on the hub, a hub that cannot be reached or has no
            such file, a download that breaks off, no room for it, or a wrong checksum.
    """
    files = {name: _published(name, task) for name, task in tasks.items()}
    paths: set[Path] = set()
    for name, published in files.items():
        folder = data_directory(data or getattr(tasks[name], "data", None))
        path = folder / published.place
        if path not in paths:
            paths.add(path)
            yield fetch_file(name, published, path)


def _published(name: str, task: Task) -> Published:
    published = getattr(task, "published", None)
    if not isinstance(published, Published):
        kind = type(task).__name__
        raise UserError(f"task {name!r} ({kind}) reads no file that is on the hub")
    return published


def fetch_file(name: str, published: Published, path: Path) -> Fetched:
    """Returns a file of the hub, downloaded to this path if it is not there; see `fetch`."""
    try:
        downloaded = not path.exists()
        if downloaded:
            path.parent.mkdir(parents=True, exist_ok=True)
            with explained(published, path):
                _download(published, path)
        return Fetched(name, path, path.stat().st_size, sha256(path), downloaded)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None


def _download(published: Published, path: Path) -> None:
    """Puts a file in its place, by way of one beside it, with which the next call goes on."""
    from filelock import FileLock, Timeout
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    endpoint = os.environ.get("HF_ENDPOINT")
    url = hf_hub_url(published.repository, published.file, repo_type="dataset", endpoint=endpoint)
    lock = path.with_name(f".{path.name}.lock")
    try:
        with FileLock(lock, timeout=0):
            remote = get_hf_file_metadata(url, timeout=_TIMEOUT, endpoint=endpoint)
            partial = path.with_name(f".{path.name}.{(remote.etag or '')[:16]}.part")
            _complete(url, remote, partial)
            _check(remote, partial)
            partial.replace(path)
    except Timeout:
        raise UserError(f"{path}: another process is fetching it") from None
    for old in (lock, *path.parent.glob(f".{path.name}.*.part")):  # of an older file on the hub
        old.unlink(missing_ok=True)


def _complete(url: str, remote: HfFileMetadata, partial: Path) -> None:
    """Appends to a file what it lacks of one on the hub."""
    # hf_hub_download begins anew in every process; 8 GB should not.
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # not listed

    size = remote.size or 0
    with partial.open("ab") as file:
        if file.tell() > size:
            file.truncate(0)
        if (lacking := size - file.tell()) > (free := shutil.disk_usage(partial.parent).free):
            raise UserError(
                f"{partial.parent}: {lacking / 1e6:,.0f} MB are to be written, and there are"
                f" {free / 1e6:,.0f} MB; make room, or name another place with --data"
            )
        http_get(
            url,
            file,
            resume_size=file.tell(),
            headers=build_hf_headers(),
            expected_size=remote.size,
        )


def _check(remote: HfFileMetadata, partial: Path) -> None:
    if not remote.etag or not _SHA256.fullmatch(remote.etag):
        return
    if (digest := sha256(partial)) != remote.etag:
        partial.unlink()
        raise UserError(
            f"{partial.parent}: what was downloaded has the SHA-256 {digest}, and should have"
            f" {remote.etag}; it was removed: fetch it again"
        )


@contextlib.contextmanager
def explained(published: Published, path: Path) -> Iterator[None]:
    """Turns what the hub's library raises into words for the user."""
    from httpx2 import HTTPError  # what the hub's library speaks HTTP with
    from huggingface_hub.errors import (
        EntryNotFoundError,
        HfHubHTTPError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    file = f"{published.file} of the data set {published.repository}"
    by_hand = f"get {file} from elsewhere and put it at {path}"
    try:
        yield
    except (EntryNotFoundError, RepositoryNotFoundError):
        raise UserError(f"the hub{_endpoint()} has no {file}; {by_hand}") from None
    except HfHubHTTPError as error:
        why = str(error).strip().partition("\n")[0]
        raise UserError(f"the hub{_endpoint()} does not give {file}: {why}; run it again") from None
    except OfflineModeIsEnabled:
        raise UserError(f"HF_HUB_OFFLINE is set: unset it, or {by_hand}") from None
    except (HTTPError, ConnectionError, TimeoutError) as error:
        why = str(error) or type(error).__name__
        raise UserError(
            f"the hub{_endpoint()} cannot be reached: {why}. Once there is a connection, the same"
            f" command goes on where it was; HF_ENDPOINT names another hub; or {by_hand}"
        ) from None


def _endpoint() -> str:
    endpoint = os.environ.get("HF_ENDPOINT")
    return f" at {endpoint}" if endpoint else ""
