"""Data at URLs: the same outputs as from the disk, one download, and clear errors."""

import errno
import json
import logging
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command_line import HERE, leporello
from endpoint_server import Request, running
from fsspec.registry import _registry, known_implementations
from storage_servers import Shelf, Web, register, serving

from leporello.cache.dependencies import files_of
from leporello.cache.store import Cache
from leporello.core.errors import UserError
from leporello.loaders.files import load
from leporello.models.locate import model_fingerprint
from leporello.runs.ask import ask
from leporello.runs.run import run
from leporello.storage import RemotePath, on_disk, to_path
from leporello.storage.location import Location
from leporello.tasks import JsonLines, Pan21, Scrolls

ROWS = [
    {"id": "a", "document": "The fox ran. The lamp hangs here.", "question": "Where is the lamp?"},
    {"id": "b", "document_path": "docs/one.txt", "question": "Who ran?"},
]
ONE = b"A fox ran over the hill. Nobody saw it."
CONFIG = """
pipelines:
  mine:
    chunker: {{class: FixedTokens, size: 20}}
    retriever: {{class: BM25, k: 3}}
    reader: {{class: BestSentence}}
tasks:
  rows: {{class: JsonLines, path: "{path}"}}
"""

pytestmark = pytest.mark.usefixtures("own_cache")


def download(url: str) -> Path:
    return Location(url).copy()


@pytest.fixture
def web() -> Iterator[Web]:
    rows = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
    with serving(Web({"/data/rows.jsonl": rows, "/data/docs/one.txt": ONE})) as server:
        yield server


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHELF", str(tmp_path / "shelf"))
    (tmp_path / "shelf" / "bucket").mkdir(parents=True)
    register()
    return tmp_path / "shelf"


def _config(folder: Path, path: str) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / "mine.yaml"
    file.write_text(CONFIG.format(path=path), encoding="utf-8")
    return file


def _predictions(folder: Path, config: Path) -> bytes:
    directory = run(["mine"], ["rows"], config=[config], out=folder, workers=0).directory
    return (directory / "mine" / "rows" / "predictions.jsonl").read_bytes()


def test_rows_at_a_url_give_the_predictions_of_local_rows(tmp_path: Path, web: Web) -> None:
    for name, content in web.files.items():
        file = tmp_path / "here" / name.removeprefix("/data/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    local = _predictions(tmp_path / "run1", _config(tmp_path / "here", "rows.jsonl"))
    config = _config(tmp_path / "there", f"{web.url}/data/rows.jsonl")
    assert _predictions(tmp_path / "run2", config) == local
    run_config = (tmp_path / "run2" / "run.yaml").read_text(encoding="utf-8")
    manifest = (tmp_path / "run2" / "manifest.json").read_text(encoding="utf-8")
    assert f"path: {web.url}/data/rows.jsonl" in run_config
    assert str(tmp_path / "cache") not in run_config + manifest


@pytest.mark.parametrize("password", ["", "sk-1"])
def test_a_redirect_to_another_host_is_followed_only_without_a_key(
    web: Web, monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    """With a key, the other host receives no request, and the error names its address."""
    monkeypatch.setenv("PASSWORD", password)
    web.password = password
    with serving(Web(web.files)) as target:
        web.elsewhere = target.url.replace("127.0.0.1", "localhost")
        user = "me:$PASSWORD@" if password else ""
        url = web.url.replace("http://", f"http://{user}") + "/data/docs/one.txt"
        if password:
            with pytest.raises(UserError, match=r"redirects to http://localhost, but keys are not"):
                download(url)
            assert target.requests == []
        else:
            assert download(url).read_bytes() == ONE


def test_a_slow_server_causes_a_time_out(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Single bytes in between do not extend the limit, and no second request follows."""
    monkeypatch.setattr("leporello.storage.http._TIMEOUT", 0.5)
    web.trickle = 0.05
    with pytest.raises(UserError, match=r"no complete answer within 0.5 s"):
        download(f"{web.url}/data/docs/one.txt")
    assert [method for method, _, _ in web.requests] == ["HEAD"]


def test_a_download_without_a_size_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers of files send sizes; a reply without one may never end."""
    monkeypatch.setattr("leporello.storage.http._UNSIZED", 2**21)
    message = r"it sends more than 2,097,152 bytes"
    with running(Request.send_endlessly) as server, pytest.raises(UserError, match=message):
        download(f"{server.base_url}/one.txt")


def test_a_circle_of_links_is_reported(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(UserError, match="circle/run: is a link that leads to itself"):
        to_path(tmp_path / "circle" / "run")


def test_a_file_is_downloaded_once(tmp_path: Path, web: Web) -> None:
    """Later accesses, in the same run or the next, only check whether it has changed."""
    config = _config(tmp_path / "there", f"{web.url}/data/rows.jsonl")
    _predictions(tmp_path / "run1", config)
    _predictions(tmp_path / "run2", config)
    assert web.downloads("/data/rows.jsonl") == [None]
    assert web.downloads("/data/docs/one.txt") == [None]


def test_a_changed_file_is_downloaded_again(web: Web) -> None:
    """The earlier copy remains, since other processes may be reading it."""
    before = download(f"{web.url}/data/docs/one.txt")
    web.files["/data/docs/one.txt"] = ONE[::-1]
    after = download(f"{web.url}/data/docs/one.txt")
    assert (before.read_bytes(), after.read_bytes()) == (ONE, ONE[::-1])


def test_the_error_of_an_unavailable_server_names_earlier_copies(web: Web) -> None:
    """No copy is used silently."""
    copy = download(f"{web.url}/data/docs/one.txt")
    web.status = 503
    with pytest.raises(UserError, match="503") as caught:
        to_path(f"{web.url}/data/docs/one.txt").read_bytes()
    assert f"earlier copies are in {copy.parent.parent}" in str(caught.value)
    assert load(copy).text == ONE.decode()


@pytest.mark.parametrize(
    ("status", "message"), [(404, "there is no such file"), (403, "is refused")]
)
def test_a_requests_error_has_the_url_and_the_reason(web: Web, status: int, message: str) -> None:
    web.status = status
    with pytest.raises(UserError, match=f"{web.url}/data/x.txt: .*{message}"):
        load(to_path(f"{web.url}/data/x.txt"))


def test_an_interrupted_download_leaves_no_copy(web: Web) -> None:
    web.cut = 10
    url = f"{web.url}/data/docs/one.txt"
    with pytest.raises(UserError, match=f"{url}: the server .* is not valid .*10 bytes"):
        download(url)
    web.cut = 0
    assert download(url).read_bytes() == ONE


def test_a_file_that_changes_is_rejected(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy could be half of one version and half of another."""
    get = Location.get

    def get_and_change(location: Location, files: Mapping[str, Path]) -> None:
        get(location, files)
        web.files["/data/docs/one.txt"] += b"."

    monkeypatch.setattr(Location, "get", get_and_change)
    with pytest.raises(UserError, match="has changed while it was fetched"):
        download(f"{web.url}/data/docs/one.txt")


def test_simultaneous_accesses_download_a_file_once(web: Web) -> None:
    web.files["/large"] = bytes(30_000_000)
    with ThreadPoolExecutor(3) as pool:
        copies = [*pool.map(download, [f"{web.url}/large"] * 3)]
    assert len(set(copies)) == 1
    assert web.downloads("/large") == [None]


def test_a_row_may_name_its_document_by_a_url(tmp_path: Path, web: Web) -> None:
    url = f"{web.url}/data/docs/one.txt"
    row = json.dumps({"id": "a", "document_path": url}) + "\n"
    (tmp_path / "rows.jsonl").write_text(row, encoding="utf-8")
    web.files["/elsewhere/rows.jsonl"] = row.encode()
    for path in (tmp_path / "rows.jsonl", to_path(f"{web.url}/elsewhere/rows.jsonl")):
        [example] = JsonLines(path).examples()
        assert (example.document.id, example.document.text) == (url, ONE.decode())


@pytest.mark.parametrize("path", ["/etc/passwd", "~/x.txt", "file:///etc/passwd"])
def test_rows_at_a_url_cannot_name_local_files(web: Web, path: str) -> None:
    """Data of others must not make this machine read its own files."""
    row = {"id": "a", "document_path": path}
    web.files["/data/rows.jsonl"] = json.dumps(row).encode() + b"\n"
    [example] = JsonLines(to_path(f"{web.url}/data/rows.jsonl")).examples()
    assert "is a path on this machine" in example.fault or "is a file on this" in example.fault


def test_official_data_may_be_at_a_url(tmp_path: Path, web: Web) -> None:
    row = {"id": "1", "pid": "1_0", "input": "Who?\n\nA fox.", "output": "A fox."}
    web.files["/all/scrolls/qasper/test.jsonl"] = json.dumps(row).encode() + b"\n"
    [example] = Scrolls("qasper", "test", to_path(f"{web.url}/all")).examples()
    assert example.document.text == "A fox."
    config = _config(tmp_path / "c", "x")
    command = ("run", "mine", "--config", config, "--task", "scrolls/qasper", "--split", "train")
    process = leporello(*command, "--data", f"{web.url}/all", status=2)
    assert f"{web.url}/all/scrolls/qasper/train.jsonl" in process.stderr


def test_a_folder_of_an_object_store_is_a_folder(shelf: Path) -> None:
    for name, content in {"problem-1.txt": "One.\nTwo.", "truth-problem-1.json": "{}"}.items():
        (shelf / "bucket" / name).write_text(content, encoding="utf-8")
    task = Pan21(to_path("shelf://bucket"))
    assert [example.id for example in task.examples()] == ["problem-1"]
    assert task.fingerprint()


@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (TimeoutError("Read timeout on endpoint"), "cannot be reached .*Read timeout"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device: free space"),
    ],
)
def test_a_slow_store_and_a_full_disk_are_reported(
    fault: OSError, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shelf, "fault", fault)
    with pytest.raises(UserError, match=f"shelf://bucket/x: .*{message}"):
        download("shelf://bucket/x")


def test_a_secret_in_a_url_is_rejected_and_not_repeated(tmp_path: Path) -> None:
    """This applies to configs, the command line, and paths."""
    for url in (
        "https://me:hush@127.0.0.1/x",
        "https://hush@127.0.0.1/x",
        "sftp://me:hush@127.0.0.1/x",
        "https://127.0.0.1/x?X-Amz-Signature=hush",
    ):
        with pytest.raises(UserError, match=r"'https://.*\$QUERY'|://user:\$SECRET@") as caught:
            to_path(url)
        assert "hush" not in str(caught.value)
    config = _config(tmp_path / "c", "https://me:hush@127.0.0.1/x")
    process = leporello("run", *HERE, "mine", "--config", config, "--task", "rows", status=2)
    assert "environment variable" in process.stderr
    assert "hush" not in process.stderr


def test_a_secret_in_the_environment_opens_the_file_and_is_written_nowhere(
    tmp_path: Path, web: Web, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    web.password = "hush/hush"  # noqa: S105 -- not a real password
    monkeypatch.setenv("SECRET", web.password)
    host = web.url.removeprefix("http://")
    config = _config(tmp_path / "c", f"http://me:$SECRET@{host}/data/rows.jsonl")
    with caplog.at_level(logging.INFO, "leporello"):
        _predictions(tmp_path / "run", config)
    web.files.clear()
    with pytest.raises(UserError, match=r"me:\$SECRET@.*404") as caught:
        _predictions(tmp_path / "run", config)
    output = f"{caught.value} {caplog.text}"
    files = [file for file in (tmp_path / "run").rglob("*") if file.is_file()]
    assert "$SECRET" in (tmp_path / "run" / "run.yaml").read_text(encoding="utf-8")
    assert all(b"hush" not in file.read_bytes() for file in files)
    assert "hush" not in output
    monkeypatch.delenv("SECRET")
    with pytest.raises(UserError, match="SECRET is not set"):
        _predictions(tmp_path / "run", config)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s4://bucket/x", "Protocol not known: s4"),
        ("lost://bucket/x", "Install lostfs"),
        ("zip://x::s3://bucket/x.zip", "chains of URLs"),
        ("s3:///x", "its host, or a part between slashes, is empty"),
        ("s3://bucket//x", "its host, or a part between slashes, is empty"),
    ],
)
def test_invalid_urls_are_reported(url: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = {"class": "lostfs_not_there.Lost", "err": "Install lostfs to access it"}
    monkeypatch.setitem(known_implementations, "lost", missing)
    with pytest.raises(UserError, match=message):
        to_path(url).read_bytes()


def test_a_missing_package_of_an_extra_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = {"class": "s3fs_not_there.S3", "err": "Install s3fs"}
    monkeypatch.setitem(known_implementations, "s3", missing)
    monkeypatch.delitem(_registry, "s3", raising=False)
    with pytest.raises(UserError, match=r"pip install 'leporello\[s3\]'"):
        to_path("s3://bucket/x").read_bytes()


def test_a_path_that_was_made_from_a_url_becomes_the_url_again() -> None:
    """`Path` removes slashes; a file's URL becomes a local path."""
    assert str(to_path(Path("s3://bucket/a/b.txt"))) == "s3://bucket/a/b.txt"
    assert str(to_path("S3://bucket/a/")) == "s3://bucket/a"
    assert to_path("file:///tmp/x") == Path("/tmp/x")  # noqa: S108 -- nothing is written there
    assert not isinstance(to_path("./s3/x"), RemotePath)
    assert str(to_path("https://h/a.pdf?at=1/2")) == "https://h/a.pdf?at=1%2F2"
    assert to_path("https://h/a.pdf?at=1").suffix == ".pdf"
    assert str(to_path("s3://bucket/a/b") / "../../../c") == "s3://bucket/c"
    assert str(to_path("s3://bucket/a/b").parent / "c") == "s3://bucket/a/c"


def test_only_runs_are_written_to_urls() -> None:
    """Neither the methods of a path nor commands that write one file can do so."""
    with pytest.raises(UserError, match="cannot be written to"):
        to_path("s3://bucket/x").open("w")
    with pytest.raises(UserError, match="cannot be written to a URL"):
        on_disk("s3://bucket/x")


def test_a_stages_file_at_a_url_is_identified_by_its_content(web: Web) -> None:
    url = f"{web.url}/data/docs/one.txt"
    assert files_of([to_path(url)]) == {url: model_fingerprint(str(download(url)))}


def test_copies_are_listed_and_removed_with_the_cache(tmp_path: Path, web: Web) -> None:
    download(f"{web.url}/data/docs/one.txt")
    cache = Cache(tmp_path / "cache")
    assert [(entry.kind, entry.size >= len(ONE)) for entry in cache.entries()] == [("files", True)]
    assert len(cache.remove(cache.surplus(0))) == 1
    assert download(f"{web.url}/data/docs/one.txt").read_bytes() == ONE


def test_ask_takes_a_url(web: Web, tmp_path: Path) -> None:
    web.files["/x.html"] = b"<h1>Hill</h1><p>A fox ran over the hill.</p>"
    config = _config(tmp_path / "c", "x")
    url = f"{web.url}/x.html?version=2"
    answer = ask(Path(url), "Who ran?", pipeline="mine", config=[config])  # `Path` removes a slash
    assert answer.text == "A fox ran over the hill."
    assert (answer.document.id, answer.document.title) == ("x.html", "x")
