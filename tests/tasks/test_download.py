"""Tests of downloads: checksums, resuming and error messages."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from storage_servers import Web, serving

from leporello.core.errors import UserError
from leporello.core.protocols import Task
from leporello.tasks import JsonLines, Muld, Scrolls, ZeroScrolls
from leporello.tasks.official.download import Fetched, fetch


def put(hub: Web, repository: str, name: str, content: bytes) -> None:
    hub.files[f"/datasets/{repository}/resolve/main/{name}"] = content


def ranges(hub: Web) -> list[str | None]:
    """Returns the ranges of all downloads."""
    return [requested for method, _, requested in hub.requests if method == "GET"]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """Starts a hub on this machine."""
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 100_000)
    with serving(Web()) as web:
        monkeypatch.setenv("HF_ENDPOINT", web.url)
        yield web


def zipped(rows: str = "") -> bytes:
    row = {"id": "a", "pid": "a_0", "input": "Who?\n\nA fox.", "output": "a fox"}
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("qasper/validation.jsonl", rows or json.dumps(row))
    return target.getvalue()


def all_of(tasks: dict[str, Task], data: Path) -> list[Fetched]:
    """Returns the files that `fetch` yields."""
    return list(fetch(tasks, data))


def test_a_fetched_file_is_read_as_a_task(hub: Web, tmp_path: Path) -> None:
    content = zipped()
    put(hub, "tau/scrolls", "qasper.zip", content)
    task = Scrolls("qasper", data=tmp_path)
    [fetched] = all_of({"scrolls/qasper": task}, tmp_path)
    path, sha256 = tmp_path / "scrolls" / "qasper.zip", hashlib.sha256(content).hexdigest()
    assert fetched == Fetched("scrolls/qasper", path, len(content), sha256, downloaded=True)
    assert [example.references for example in task.examples()] == [("a fox",)]
    assert [path.name for path in (tmp_path / "scrolls").iterdir()] == ["qasper.zip"]


def test_benchmarks_are_downloaded_to_their_own_folders(hub: Web, tmp_path: Path) -> None:
    put(hub, "tau/scrolls", "quality.zip", b"one")
    put(hub, "tau/zero_scrolls", "quality.zip", b"two")
    put(hub, "ghomasHudson/muld", "data/vlsp_test.json.bz2", b"three")
    tasks: dict[str, Task] = {
        "a": Scrolls("quality"),
        "b": Scrolls("quality_hard", split="test"),
        "c": ZeroScrolls("quality"),
        "d": Muld("vlsp"),
    }
    places = {
        str(f.path.relative_to(tmp_path)): f.path.read_bytes() for f in all_of(tasks, tmp_path)
    }
    assert places == {
        "scrolls/quality.zip": b"one",
        "zero_scrolls/quality.zip": b"two",
        "muld/vlsp_test.json.bz2": b"three",
    }


def test_an_existing_file_is_not_downloaded(hub: Web, tmp_path: Path) -> None:
    path = tmp_path / "scrolls" / "qasper.zip"
    path.parent.mkdir()
    path.write_bytes(b"mine")
    [fetched] = all_of({"t": Scrolls("qasper")}, tmp_path)
    assert (fetched.downloaded, fetched.size) == (False, 4)
    assert path.read_bytes() == b"mine"
    assert hub.requests == []


def test_an_interrupted_download_is_resumed(hub: Web, tmp_path: Path) -> None:
    content = bytes(range(256)) * 4000
    put(hub, "tau/scrolls", "qasper.zip", content)
    hub.cut, hub.failing = 300_000, 503
    with pytest.raises(UserError, match="503"):
        all_of({"t": Scrolls("qasper")}, tmp_path)
    path = tmp_path / "scrolls" / "qasper.zip"
    assert not path.exists()
    assert ranges(hub) == [None, "bytes=300000-"]
    hub.cut = hub.failing = 0
    hub.requests.clear()
    [fetched] = all_of({"t": Scrolls("qasper")}, tmp_path)
    assert ranges(hub) == ["bytes=300000-"]
    assert path.read_bytes() == content
    assert fetched.sha256 == hashlib.sha256(content).hexdigest()
    assert [entry.name for entry in path.parent.iterdir()] == ["qasper.zip"]


def test_a_partial_download_of_an_older_version_is_removed(hub: Web, tmp_path: Path) -> None:
    put(hub, "tau/scrolls", "qasper.zip", b"old " * 100_000)
    hub.cut, hub.failing = 300_000, 503
    with pytest.raises(UserError):
        all_of({"t": Scrolls("qasper")}, tmp_path)
    hub.cut = hub.failing = 0
    put(hub, "tau/scrolls", "qasper.zip", b"new " * 100_000)
    [fetched] = all_of({"t": Scrolls("qasper")}, tmp_path)
    assert fetched.path.read_bytes() == b"new " * 100_000
    assert [entry.name for entry in fetched.path.parent.iterdir()] == ["qasper.zip"]


def test_a_wrong_checksum_leaves_nothing(hub: Web, tmp_path: Path) -> None:
    put(hub, "tau/scrolls", "qasper.zip", b"content")
    hub.etag = "0" * 64
    with pytest.raises(UserError, match=r"instead of 0{64}"):
        all_of({"t": Scrolls("qasper")}, tmp_path)
    assert not list((tmp_path / "scrolls").glob("*.zip"))
    assert not list((tmp_path / "scrolls").glob(".*.part"))


def test_without_a_connection_the_error_gives_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UserError) as caught:
        all_of({"t": Muld("vlsp")}, tmp_path)
    message = str(caught.value)
    assert "the hub at http://127.0.0.1:9 cannot be reached" in message
    assert f"save it as {tmp_path / 'muld' / 'vlsp_test.json.bz2'}" in message


def test_a_file_that_is_not_on_the_hub_is_an_error(hub: Web, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no qasper\.zip of the data set tau/scrolls"):
        all_of({"t": Scrolls("qasper")}, tmp_path)
    assert hub.requests


def test_a_users_task_has_nothing_to_fetch(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'mine' \\(JsonLines\\) has no file on the hub to fetch"):
        all_of({"t": Scrolls("qasper"), "mine": JsonLines(tmp_path / "a.jsonl")}, tmp_path)
    assert not any(tmp_path.iterdir())


def test_a_split_that_is_not_published_is_not_requested(hub: Web, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"muld/vlsp has no split 'train'; allowed: test"):
        all_of({"t": Muld("vlsp", "train")}, tmp_path)
    assert hub.requests == []


def test_a_full_disk_is_reported_before_the_download(
    hub: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(hub, "tau/scrolls", "qasper.zip", b"x" * 3_000_000)
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1_000_000}))
    with pytest.raises(UserError, match="3 MB are needed, but only 1 MB are free"):
        all_of({"t": Scrolls("qasper")}, tmp_path)
    assert ranges(hub) == []
