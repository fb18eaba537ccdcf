"""Tests of downloads: checksums, resuming and error messages."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from official_rows import scrolls_row
from storage_servers import Web, serving
from stories import zipped

from leporello.core.errors import UserError
from leporello.core.protocols import Task
from leporello.tasks import JsonLines, Muld, Scrolls, ZeroScrolls
from leporello.tasks.official.download import Fetched, fetch


def put(hub: Web, repository: str, name: str, content: bytes) -> None:
    hub.files[f"/datasets/{repository}/resolve/main/{name}"] = content


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 100_000)
    with serving(Web()) as web:
        monkeypatch.setenv("HF_ENDPOINT", web.url)
        yield web


def fetched_of(task: Task, data: Path) -> Fetched:
    [fetched] = fetch({"t": task}, data)
    return fetched


def test_a_fetched_file_is_read_as_a_task(hub: Web, tmp_path: Path) -> None:
    row = scrolls_row("a", "Who?\n\nA fox.", "a fox")
    content = zipped({"qasper/validation.jsonl": json.dumps(row)})
    put(hub, "tau/scrolls", "qasper.zip", content)
    task = Scrolls("qasper", data=tmp_path)
    fetched = fetched_of(task, tmp_path)
    path, sha256 = tmp_path / "scrolls" / "qasper.zip", hashlib.sha256(content).hexdigest()
    assert fetched == Fetched("t", path, len(content), sha256, downloaded=True)
    assert [example.references for example in task.examples()] == [("a fox",)]
    assert [path.name for path in (tmp_path / "scrolls").iterdir()] == ["qasper.zip"]


def test_benchmarks_are_downloaded_to_their_own_folders(hub: Web, tmp_path: Path) -> None:
    put(hub, "tau/scrolls", "quality.zip", b"one")
    put(hub, "tau/zero_scrolls", "quality.zip", b"two")
    put(hub, "ghomasHudson/muld", "data/vlsp_test.json.bz2", b"three")
    two = (Scrolls("quality"), Scrolls("quality_hard", split="test"))
    more: tuple[Task, ...] = (*two, ZeroScrolls("quality"), Muld("vlsp"))
    fetched = fetch(dict(zip("abcd", more, strict=True)), tmp_path)
    places = {str(f.path.relative_to(tmp_path)): f.path.read_bytes() for f in fetched}
    assert places == {
        "scrolls/quality.zip": b"one",
        "zero_scrolls/quality.zip": b"two",
        "muld/vlsp_test.json.bz2": b"three",
    }


def test_an_existing_file_is_not_downloaded(hub: Web, tmp_path: Path) -> None:
    path = tmp_path / "scrolls" / "qasper.zip"
    path.parent.mkdir()
    path.write_bytes(b"mine")
    fetched = fetched_of(Scrolls("qasper"), tmp_path)
    assert (fetched.downloaded, fetched.size) == (False, 4)
    assert path.read_bytes() == b"mine"
    assert hub.requests == []


def test_an_interrupted_download_is_resumed(hub: Web, tmp_path: Path) -> None:
    content, url = bytes(range(256)) * 4000, "/datasets/tau/scrolls/resolve/main/qasper.zip"
    put(hub, "tau/scrolls", "qasper.zip", content)
    hub.cut, hub.failing = 300_000, 503
    with pytest.raises(UserError, match="503"):
        fetched_of(Scrolls("qasper"), tmp_path)
    path = tmp_path / "scrolls" / "qasper.zip"
    assert not path.exists()
    assert hub.downloads(url) == [None, "bytes=300000-"]
    hub.cut = hub.failing = 0
    hub.requests.clear()
    fetched = fetched_of(Scrolls("qasper"), tmp_path)
    assert hub.downloads(url) == ["bytes=300000-"]
    assert path.read_bytes() == content
    assert fetched.sha256 == hashlib.sha256(content).hexdigest()
    assert [entry.name for entry in path.parent.iterdir()] == ["qasper.zip"]


def test_a_partial_download_of_an_older_version_is_removed(hub: Web, tmp_path: Path) -> None:
    put(hub, "tau/scrolls", "qasper.zip", b"old " * 100_000)
    hub.cut, hub.failing = 300_000, 503
    with pytest.raises(UserError):
        fetched_of(Scrolls("qasper"), tmp_path)
    hub.cut = hub.failing = 0
    put(hub, "tau/scrolls", "qasper.zip", b"new " * 100_000)
    fetched = fetched_of(Scrolls("qasper"), tmp_path)
    assert fetched.path.read_bytes() == b"new " * 100_000
    assert [entry.name for entry in fetched.path.parent.iterdir()] == ["qasper.zip"]


def test_a_wrong_checksum_leaves_nothing(hub: Web, tmp_path: Path) -> None:
    put(hub, "tau/scrolls", "qasper.zip", b"content")
    hub.etag = "0" * 64
    with pytest.raises(UserError, match=r"instead of 0{64}"):
        fetched_of(Scrolls("qasper"), tmp_path)
    names = [path.name for path in (tmp_path / "scrolls").iterdir()]
    assert not [name for name in names if name.endswith((".zip", ".part"))]


def test_what_the_hub_does_not_have_is_an_error(hub: Web, tmp_path: Path) -> None:
    mine: dict[str, Task] = {"t": Scrolls("qasper"), "mine": JsonLines(tmp_path / "a.jsonl")}
    with pytest.raises(UserError, match="'mine' \\(JsonLines\\) has no file on the hub to fetch"):
        [*fetch(mine, tmp_path)]
    with pytest.raises(UserError, match=r"muld/vlsp has no split 'train'; allowed: test"):
        fetched_of(Muld("vlsp", "train"), tmp_path)
    assert not any(tmp_path.iterdir())
    assert hub.requests == []
    with pytest.raises(UserError, match=r"has no qasper\.zip of the data set tau/scrolls"):
        fetched_of(Scrolls("qasper"), tmp_path)
    assert hub.requests


def test_offline_the_error_gives_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    advice = rf"save it as {tmp_path}/muld/vlsp_test\.json\.bz2"
    with pytest.raises(
        UserError, match=f"(?s)hub at http://127.0.0.1:9 cannot be reached.*{advice}"
    ):
        fetched_of(Muld("vlsp"), tmp_path)
