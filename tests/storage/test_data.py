"""Data at URLs: the same outputs as from the disk, fetched once, and every fault told in words."""

from __future__ import annotations

import errno
import json
import logging
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from command_line import HERE, leporello
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


def download(url: str) -> Path:
    """Returns this machine's copy."""
    return Location(url).copy()


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEPORELLO_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def web() -> Iterator[Web]:
    """A server with rows, and a document beside them."""
    rows = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
    with serving(Web({"/data/rows.jsonl": rows, "/data/docs/one.txt": ONE})) as found:
        yield found


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An object store, empty."""
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
    done = run(["mine"], ["rows"], config=[config], out=folder, workers=0)
    return (done.directory / "mine" / "rows" / "predictions.jsonl").read_bytes()


def test_rows_at_a_url_come_to_the_same_as_rows_on_the_disk(tmp_path: Path, web: Web) -> None:
    """Predictions are the same bytes; the run's config has the URL, and no copy's place."""
    for name, content in web.files.items():
        file = tmp_path / "here" / name.removeprefix("/data/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    here = _predictions(tmp_path / "run1", _config(tmp_path / "here", "rows.jsonl"))
    config = _config(tmp_path / "there", f"{web.url}/data/rows.jsonl")
    assert _predictions(tmp_path / "run2", config) == here
    written = (tmp_path / "run2" / "run.yaml").read_text(encoding="utf-8")
    manifest = (tmp_path / "run2" / "manifest.json").read_text(encoding="utf-8")
    assert f"path: {web.url}/data/rows.jsonl" in written
    assert str(tmp_path / "cache") not in written + manifest


@pytest.mark.parametrize("password", ["", "sk-1"])
def test_a_redirect_to_another_host_is_followed_without_a_key_alone(
    web: Web, monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    """Nor does the other host hear of it; the address there is told."""
    monkeypatch.setenv("PASSWORD", password)
    web.password = password
    with serving(Web(web.files)) as other:
        web.elsewhere = other.url.replace("127.0.0.1", "localhost")
        user = "me:$PASSWORD@" if password else ""
        url = web.url.replace("http://", f"http://{user}") + "/data/docs/one.txt"
        if password:
            with pytest.raises(UserError, match=r"redirects to http://localhost, and a key goes"):
                download(url)
            assert other.asked == []
        else:
            assert download(url).read_bytes() == ONE


def test_a_server_that_trickles_is_given_up(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it sends a byte."""
    monkeypatch.setattr("leporello.storage.http._TIMEOUT", 0.5)
    web.trickle = 0.05
    with pytest.raises(UserError, match=r"no whole answer within 0.5 s"):
        download(f"{web.url}/data/docs/one.txt")


def test_a_file_is_downloaded_once(tmp_path: Path, web: Web) -> None:
    """A second run, and a second look in the same run, only ask whether it has changed."""
    config = _config(tmp_path / "there", f"{web.url}/data/rows.jsonl")
    _predictions(tmp_path / "run1", config)
    _predictions(tmp_path / "run2", config)
    assert web.downloads("/data/rows.jsonl") == [None]
    assert web.downloads("/data/docs/one.txt") == [None]


def test_a_file_that_changed_is_fetched_anew(web: Web) -> None:
    """The copy of before stays as it was, for whoever is reading it."""
    before = download(f"{web.url}/data/docs/one.txt")
    web.files["/data/docs/one.txt"] = ONE[::-1]
    after = download(f"{web.url}/data/docs/one.txt")
    assert (before.read_bytes(), after.read_bytes()) == (ONE, ONE[::-1])


def test_a_run_on_data_that_changed_is_another_run(tmp_path: Path, web: Web) -> None:
    """As with files on the disk, the directory of the old one is refused."""
    config = _config(tmp_path / "there", f"{web.url}/data/rows.jsonl")
    _predictions(tmp_path / "run", config)
    web.files["/data/docs/one.txt"] += b" It rained."
    with pytest.raises(UserError, match=r"was created with other settings:\n.*data: "):
        _predictions(tmp_path / "run", config)


def test_a_server_that_is_gone_is_told_with_the_place_of_the_copies(web: Web) -> None:
    """None is taken in silence."""
    copy = download(f"{web.url}/data/docs/one.txt")
    web.status = 503
    with pytest.raises(UserError, match="503") as caught:
        to_path(f"{web.url}/data/docs/one.txt").read_bytes()
    assert f"copies of before lie in {copy.parent.parent}" in str(caught.value)
    assert load(copy).text == ONE.decode()


@pytest.mark.parametrize(("status", "told"), [(404, "there is no such file"), (403, "is refused")])
def test_what_a_server_refuses_is_told_by_its_reason(web: Web, status: int, told: str) -> None:
    """In words, with the URL."""
    web.status = status
    with pytest.raises(UserError, match=f"{web.url}/data/x.txt: .*{told}"):
        load(to_path(f"{web.url}/data/x.txt"))


def test_a_download_that_breaks_off_leaves_no_copy(web: Web) -> None:
    """The error says so; the same command fetches it anew."""
    web.cut = 10
    url = f"{web.url}/data/docs/one.txt"
    with pytest.raises(UserError, match=f"{url}: the server .* as it should .*10 bytes"):
        download(url)
    web.cut = 0
    assert download(url).read_bytes() == ONE


def test_a_file_that_changes_while_it_is_fetched_is_refused(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of one version and half of another are no file."""
    get = Location.get

    def meanwhile(location: Location, files: Mapping[str, Path]) -> None:
        get(location, files)
        web.files["/data/docs/one.txt"] += b"."

    monkeypatch.setattr(Location, "get", meanwhile)
    with pytest.raises(UserError, match="has changed while it was fetched"):
        download(f"{web.url}/data/docs/one.txt")


def test_two_that_fetch_at_once_download_once(web: Web) -> None:
    """The second waits, and finds it there."""
    web.files["/large"] = bytes(30_000_000)
    found: list[Path] = []
    threads = [
        threading.Thread(target=lambda: found.append(download(f"{web.url}/large"))) for _ in "123"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert web.downloads("/large") == [None]


def test_a_row_may_name_its_document_by_a_url(tmp_path: Path, web: Web) -> None:
    """Whether the rows are on the disk or at a URL; the document's id is then the URL."""
    url = f"{web.url}/data/docs/one.txt"
    row = json.dumps({"id": "a", "document_path": url}) + "\n"
    (tmp_path / "rows.jsonl").write_text(row, encoding="utf-8")
    web.files["/elsewhere/rows.jsonl"] = row.encode()
    for path in (tmp_path / "rows.jsonl", to_path(f"{web.url}/elsewhere/rows.jsonl")):
        [example] = JsonLines(path).examples()
        assert (example.document.id, example.document.text) == (url, ONE.decode())


@pytest.mark.parametrize("named", ["/etc/passwd", "~/x.txt", "file:///etc/passwd"])
def test_rows_at_a_url_name_no_file_of_this_machine(web: Web, named: str) -> None:
    """What others wrote cannot make this machine read its own files."""
    row = {"id": "a", "document_path": named}
    web.files["/data/rows.jsonl"] = json.dumps(row).encode() + b"\n"
    [example] = JsonLines(to_path(f"{web.url}/data/rows.jsonl")).examples()
    assert "is a path on this machine" in example.fault or "is a file on this" in example.fault


def test_official_data_may_lie_at_a_url(tmp_path: Path, web: Web) -> None:
    """`--data URL`; a split that is not there is told with its URL."""
    row = {"id": "1", "pid": "1_0", "input": "Who?\n\nA fox.", "output": "A fox."}
    web.files["/all/scrolls/qasper/test.jsonl"] = json.dumps(row).encode() + b"\n"
    [example] = Scrolls("qasper", "test", to_path(f"{web.url}/all")).examples()
    assert example.document.text == "A fox."
    config = _config(tmp_path / "c", "x")
    asked = ("run", "mine", "--config", config, "--task", "scrolls/qasper", "--split", "train")
    done = leporello(*asked, "--data", f"{web.url}/all", status=2)
    assert f"{web.url}/all/scrolls/qasper/train.jsonl" in done.stderr


def test_a_folder_of_an_object_store_is_a_folder(shelf: Path) -> None:
    """PAN's folders are listed, and their files fetched."""
    for name, content in {"problem-1.txt": "One.\nTwo.", "truth-problem-1.json": "{}"}.items():
        (shelf / "bucket" / name).write_text(content, encoding="utf-8")
    task = Pan21(to_path("shelf://bucket"))
    assert [example.id for example in task.examples()] == ["problem-1"]
    assert task.fingerprint()


@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (TimeoutError("Read timeout on endpoint"), "cannot be reached, .*Read timeout"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device: make room"),
    ],
)
def test_a_store_that_is_too_slow_and_a_disk_that_is_full_are_told(
    fault: OSError, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In words, with the URL."""
    monkeypatch.setattr(Shelf, "fault", fault)
    with pytest.raises(UserError, match=f"shelf://bucket/x: .*{told}"):
        download("shelf://bucket/x")


def test_a_secret_in_a_url_is_refused_and_not_repeated(tmp_path: Path) -> None:
    """In a config, on the command line, and as a path."""
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
    done = leporello("run", *HERE, "mine", "--config", config, "--task", "rows", status=2)
    assert "environment variable" in done.stderr
    assert "hush" not in done.stderr


def test_a_secret_in_the_environment_opens_the_file_and_is_written_nowhere(
    tmp_path: Path, web: Web, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Files of the run, log lines and errors have the variable's name."""
    web.password = "hush/hush"  # noqa: S105 -- of this test
    monkeypatch.setenv("SECRET", web.password)
    host = web.url.removeprefix("http://")
    config = _config(tmp_path / "c", f"http://me:$SECRET@{host}/data/rows.jsonl")
    with caplog.at_level(logging.INFO, "leporello"):
        _predictions(tmp_path / "run", config)
    web.files.clear()
    with pytest.raises(UserError, match=r"me:\$SECRET@.*404") as caught:
        _predictions(tmp_path / "run", config)
    told = f"{caught.value} {caplog.text}"
    files = [file for file in (tmp_path / "run").rglob("*") if file.is_file()]
    assert "$SECRET" in (tmp_path / "run" / "run.yaml").read_text(encoding="utf-8")
    assert all(b"hush" not in file.read_bytes() for file in files)
    assert "hush" not in told
    monkeypatch.delenv("SECRET")
    with pytest.raises(UserError, match="SECRET is not set"):
        _predictions(tmp_path / "run", config)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("s4://bucket/x", "Protocol not known: s4"),
        ("lost://bucket/x", "Install lostfs"),
        ("zip://x::s3://bucket/x.zip", "chains of URLs"),
        ("s3:///x", "its host, or a part between slashes, is empty"),
        ("s3://bucket//x", "its host, or a part between slashes, is empty"),
    ],
)
def test_what_cannot_be_a_url_is_told(url: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is asked."""
    missing = {"class": "lostfs_not_there.Lost", "err": "Install lostfs to access it"}
    monkeypatch.setitem(known_implementations, "lost", missing)
    with pytest.raises(UserError, match=told):
        to_path(url).read_bytes()


def test_a_missing_package_of_an_extra_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """`pip install` with what to write behind it."""
    missing = {"class": "s3fs_not_there.S3", "err": "Install s3fs"}
    monkeypatch.setitem(known_implementations, "s3", missing)
    monkeypatch.delitem(_registry, "s3", raising=False)
    with pytest.raises(UserError, match=r"pip install 'leporello\[s3\]'"):
        to_path("s3://bucket/x").read_bytes()


def test_a_path_that_was_made_of_a_url_is_the_url_again() -> None:
    """`Path` takes slashes away; a file's URL is its path."""
    assert str(to_path(Path("s3://bucket/a/b.txt"))) == "s3://bucket/a/b.txt"
    assert str(to_path("S3://bucket/a/")) == "s3://bucket/a"
    assert to_path("file:///tmp/x") == Path("/tmp/x")  # noqa: S108 -- nothing is written there
    assert not isinstance(to_path("./s3/x"), RemotePath)
    assert str(to_path("https://h/a.pdf?at=1/2")) == "https://h/a.pdf?at=1%2F2"
    assert to_path("https://h/a.pdf?at=1").suffix == ".pdf"
    assert str(to_path("s3://bucket/a/b") / "../../../c") == "s3://bucket/c"
    assert str(to_path("s3://bucket/a/b").parent / "c") == "s3://bucket/a/c"


def test_nothing_but_runs_is_written_to_urls() -> None:
    """Neither by a path's own methods, nor by verbs that write one file."""
    with pytest.raises(UserError, match="cannot be written to"):
        to_path("s3://bucket/x").open("w")
    with pytest.raises(UserError, match="this machine's disk only"):
        on_disk("s3://bucket/x")


def test_a_stages_file_at_a_url_is_known_by_its_content(web: Web) -> None:
    """What a stage depends on is what the file holds, under the URL."""
    url = f"{web.url}/data/docs/one.txt"
    assert files_of([to_path(url)]) == {url: model_fingerprint(str(download(url)))}


def test_copies_are_listed_and_removed_with_the_cache(tmp_path: Path, web: Web) -> None:
    """They count as what is kept, and are fetched again."""
    download(f"{web.url}/data/docs/one.txt")
    cache = Cache(tmp_path / "cache")
    assert [(entry.kind, entry.size >= len(ONE)) for entry in cache.entries()] == [("files", True)]
    assert len(cache.collect(0)) == 1
    assert download(f"{web.url}/data/docs/one.txt").read_bytes() == ONE


def test_ask_takes_a_url(web: Web, tmp_path: Path) -> None:
    """With a query behind the name; the suffix before it says what it is."""
    web.files["/x.html"] = b"<h1>Hill</h1><p>A fox ran over the hill.</p>"
    config = _config(tmp_path / "c", "x")
    url = f"{web.url}/x.html?version=2"
    found = ask(Path(url), "Who ran?", pipeline="mine", config=[config])  # as Python would
    assert found.text == "A fox ran over the hill."
    assert (found.document.id, found.document.title) == ("x.html", "x")
