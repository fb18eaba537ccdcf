"""Downloads the benchmarks' files from the hub to the data directory."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leporello.core.errors import UserError
from leporello.core.files import locked, sha256
from leporello.core.protocols import Task
from leporello.tasks.official.archives import data_directory
from leporello.tasks.official.benchmark import Published

if TYPE_CHECKING:
    from huggingface_hub import HfFileMetadata

_TIMEOUT = 20.0  # seconds to wait for the hub's metadata
_SHA256 = re.compile(r"[0-9a-f]{64}")  # the hub's ETag of large files


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file in the data directory."""

    task: str  # name of the task for which it was fetched
    path: Path
    size: int
    sha256: str  # SHA-256 of its bytes
    downloaded: bool  # whether it was downloaded; False if it existed already


def fetch(tasks: Mapping[str, Task], data: Path | None = None) -> Iterator[Fetched]:
    """Downloads the files of benchmarks' tasks, and yields each file once.

    Existing files are skipped without a request to the hub. An interrupted download is resumed; a
    file has its final name only if it is complete and its checksum is right. `HF_ENDPOINT` sets the
    hub. Without `data`, each task has its own data directory. Raises UserError for any failure.
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
        raise UserError(f"task {name!r} ({kind}) has no file on the hub to fetch")
    return published


def fetch_file(name: str, published: Published, path: Path) -> Fetched:
    """Returns a file of the hub, downloaded to this path if it does not exist; see `fetch`."""
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
    """Downloads to a partial file next to the final one; the next call resumes."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    endpoint = os.environ.get("HF_ENDPOINT")
    url = hf_hub_url(published.repository, published.file, repo_type="dataset", endpoint=endpoint)
    lock = path.with_name(f".{path.name}.lock")
    with locked(lock, f"{path}: another process is fetching it"):
        remote = get_hf_file_metadata(url, timeout=_TIMEOUT, endpoint=endpoint)
        # By version, so the rest of a new file is never appended to an old one.
        partial = path.with_name(f".{path.name}.{(remote.etag or '')[:16]}.part")
        _complete(url, remote, partial)
        is_hash = _SHA256.fullmatch(remote.etag or "")
        if is_hash and (digest := sha256(partial)) != remote.etag:
            partial.unlink()
            raise UserError(
                f"{path.parent}: the downloaded file has the SHA-256 {digest} instead of"
                f" {remote.etag} and was removed: fetch it again"
            )
        partial.replace(path)
    for old in (lock, *path.parent.glob(f".{path.name}.*.part")):  # for an older version on the hub
        old.unlink(missing_ok=True)


def _complete(url: str, remote: HfFileMetadata, partial: Path) -> None:
    """Appends the missing part of a file on the hub to a partial file."""
    # hf_hub_download would start again in every process, which is slow for 8 GB.
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # not listed

    size = remote.size or 0
    with partial.open("ab") as file:
        # Longer than the file: another program wrote it, and nothing of it can be trusted.
        if file.tell() > size:
            file.truncate(0)
        http_get(
            url,
            file,
            resume_size=file.tell(),
            headers=build_hf_headers(),
            expected_size=remote.size,
        )


@contextlib.contextmanager
def explained(published: Published, path: Path) -> Iterator[None]:
    """Turns exceptions of the hub's library into messages for the user."""
    from httpx2 import HTTPError  # the HTTP client of the hub's library
    from huggingface_hub.errors import (
        EntryNotFoundError,
        HfHubHTTPError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    file = f"{published.file} of the data set {published.repository}"
    by_hand = f"get {file} in another way and save it as {path}"
    try:
        yield
    except (EntryNotFoundError, RepositoryNotFoundError):
        raise UserError(f"the hub{_endpoint()} has no {file}; {by_hand}") from None
    except HfHubHTTPError as error:
        reason = str(error).strip().partition("\n")[0]
        raise UserError(f"the hub{_endpoint()} refuses {file}: {reason}; run it again") from None
    except OfflineModeIsEnabled:
        raise UserError(f"HF_HUB_OFFLINE is set: unset it, or {by_hand}") from None
    except (HTTPError, ConnectionError, TimeoutError) as error:
        reason = str(error) or type(error).__name__
        raise UserError(
            f"the hub{_endpoint()} cannot be reached: {reason}. Run the command again to resume,"
            f" or set HF_ENDPOINT to another hub; or {by_hand}"
        ) from None


def _endpoint() -> str:
    endpoint = os.environ.get("HF_ENDPOINT")
    return f" at {endpoint}" if endpoint else ""
