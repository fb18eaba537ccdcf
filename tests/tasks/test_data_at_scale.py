"""Tests of rows in several files, tables, archives and data sets, and of size limits."""

import bz2
import codecs
import gzip
import hashlib
import itertools
import json
import lzma
import resource
import zipfile
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import zstandard
from pyarrow import feather, parquet
from row_files import json_lines
from storage_servers import Web, serving

from leporello.core.errors import ConfigError, UserError
from leporello.core.records import Example
from leporello.storage import to_path
from leporello.tasks import JsonLines, Table
from leporello.tasks.json_lines import _cached_layout
from leporello.tasks.official.archives import Archive

PACK: Mapping[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": partial(gzip.compress, compresslevel=1),
    ".bz2": bz2.compress,
    ".zst": zstandard.ZstdCompressor().compress,
    ".xz": partial(lzma.compress, preset=0),
}
ROWS = [
    {"id": str(i), "document": f"text {i // 3} é", "question": f"q {i}?", "references": ["a", "b"]}
    for i in range(10)
]
NAMES = {"id": "key", "document": "context.text", "question": "query", "references": "answers.text"}
RENAMED = [
    {"key": i, "context": {"text": [f"text {i // 3} é"]}, "query": f"q {i}?",
     "answers": [{"text": "a"}, {"text": "b"}], "more": None}
    for i in range(10)
]  # fmt: skip


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LEPORELLO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def summary(examples: Iterable[Example]) -> list[tuple[Any, ...]]:
    return sorted((int(e.id), e.document.text, e.question, e.references, e.fault) for e in examples)


EXPECTED = [(i, f"text {i // 3} é", f"q {i}?", ("a", "b"), "") for i in range(10)]


def check(task: JsonLines) -> None:
    """Checks that a task has all rows, also if documents are read in reverse order."""
    assert summary(task.examples()) == EXPECTED
    layout = [*task.layout()]
    assert summary(e for d in reversed(layout) for e in task.examples_of([d], 0)) == EXPECTED
    assert len(task) == sum(document.examples for document in layout) == 10
    assert task.fingerprint() == task.fingerprint()


@pytest.mark.parametrize("suffix", PACK)
def test_several_files_are_read_as_one(tmp_path: Path, suffix: str) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    for n, part in enumerate((ROWS[:4], ROWS[4:5], ROWS[5:])):
        (folder / f"train-{n}.jsonl{suffix}").write_bytes(PACK[suffix](json_lines(part).rstrip()))
    (folder / "README.md").touch()
    for path in (folder, folder / "train-*", folder / "{split}-*.jsonl*"):
        split = "train" if "{split}" in path.name else ""
        task = JsonLines(path, split=split)
        check(task)
        assert summary(task.examples()) == EXPECTED
    assert [e.id for e in task.examples()] == [row["id"] for row in ROWS]


def test_compressed_files_are_unpacked_once(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "rows.jsonl.xz"
    path.write_bytes(lzma.compress(json_lines(ROWS)))
    task = JsonLines(path)
    layout = [*task.layout()]
    [copy] = (file for file in cache.glob("unpacked/*/*/*") if file.is_file())
    before = copy.stat().st_mtime_ns
    assert summary(e for d in layout for e in task.examples_of([d], 0)) == EXPECTED
    assert copy.stat().st_mtime_ns == before
    copy.unlink()
    assert summary(task.examples()) == EXPECTED


def test_faults_name_the_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(json_lines(ROWS[:3])))
    (tmp_path / "b.jsonl").write_bytes(b"\n" + json_lines([ROWS[0], {"id": "x"}]))
    with pytest.raises(ConfigError) as raised:
        JsonLines(tmp_path).check()
    assert [str(fault) for fault in raised.value.faults] == [
        f"{tmp_path}/b.jsonl:2: id '0' is a duplicate of line a.jsonl.gz:1",
        f"{tmp_path}/b.jsonl:3: needs `document`, `document_path` or `document_id`",
    ]


@pytest.mark.integration
@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst", ".xz"])
def test_only_a_row_above_the_size_limit_fails(tmp_path: Path, suffix: str) -> None:
    bomb = b'{"id": "huge", "document": "' + b" " * 50_000_000 + b'"}\n'
    path = tmp_path / f"rows.jsonl{suffix}"
    path.write_bytes(PACK[suffix](json_lines(ROWS[:3]) + bomb + json_lines(ROWS[3:])))
    del bomb
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    task = JsonLines(path, max_row_bytes=10**6)
    examples = [*task.examples()]
    [huge] = [example for example in examples if example.fault]
    assert summary(example for example in examples if example != huge) == EXPECTED
    assert (huge.id, huge.document.text) == ("row 4", "")
    assert huge.fault.startswith(
        f"rows.jsonl{suffix}:4: the row is larger than max_row_bytes, 1,000,000"
    )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 25_000  # KiB


def test_rows_on_a_document_whose_row_is_too_large_fail(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "document_id": "D", "document": "x" * 2000},
        {"id": "b", "document_id": "D"},
        {"id": "c", "document": "y"},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_bytes(json_lines(rows))
    large, textless, good = JsonLines(path, max_row_bytes=1000).examples()
    assert "the row is larger than max_row_bytes" in large.fault
    assert textless.fault == "rows.jsonl:2: document 'D': no row with its text could be read"
    assert (good.id, good.fault) == ("c", "")


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst", ".xz"])
def test_damaged_files_are_reported(tmp_path: Path, suffix: str, cache: Path) -> None:
    path = tmp_path / f"rows.jsonl{suffix}"
    path.write_bytes(PACK[suffix](json_lines(ROWS * 50))[:-30])
    with pytest.raises(UserError, match=r"is truncated or damaged.*fetch it again"):
        JsonLines(path).check()
    assert not [*cache.glob("unpacked/*/*/*")]


def test_files_that_expand_too_much_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leporello.tasks.jsonl.finding.EXPANDED_BYTES", 100_000)
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(b"{}\n" * 1_000_000))
    with pytest.raises(UserError, match=r"bytes expand to more than .* too many for text"):
        JsonLines(path).check()


@pytest.mark.integration
def test_a_bomb_of_one_line_is_refused_before_it_is_in_memory(tmp_path: Path, cache: Path) -> None:
    path, official = tmp_path / "rows.jsonl.gz", tmp_path / "qasper.zip"
    path.write_bytes(gzip.compress(b"a" * 10**6) * 400)  # members of a gzip file follow each other
    with (
        zipfile.ZipFile(official, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("qasper/validation.jsonl", "w") as member,
    ):
        for block in itertools.repeat(b"a" * 10**6, 40):  # the limit is 32 MiB
            member.write(block)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UserError, match=r"expand to more than \d+ MiB, too many for text"):
        JsonLines(path).check()
    with pytest.raises(UserError, match="line 1 has more than 32 MiB; is this"):
        [*Archive(official, ("qasper/validation.jsonl",)).rows()]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB
    assert not [file for file in cache.rglob("*") if file.is_file()]


@pytest.mark.parametrize(
    ("encoding", "name"),
    [("utf-16", "UTF-16LE"), ("utf-16-be", "UTF-16BE"), ("utf-32", "UTF-32LE")],
)
def test_wide_encodings_are_reported(tmp_path: Path, encoding: str, name: str) -> None:
    """With a mark at the beginning, or without it."""
    path = tmp_path / "rows.jsonl"
    path.write_bytes(json_lines(ROWS).decode().encode(encoding))
    fault = f"is in {name}, but JSON Lines must be UTF-8; convert it: iconv"
    with pytest.raises(UserError, match=fault):
        JsonLines(path).check()


def test_a_csv_file_is_refused_by_one_message(tmp_path: Path) -> None:
    """JSON Lines of that suffix are read."""
    path = tmp_path / "rows.csv"
    path.write_text("id,question\nq1,Why?\nq2,Who?\n")
    with pytest.raises(UserError, match=r"rows\.csv: is a table as text") as refused:
        JsonLines(path).check()
    assert str(refused.value).count("rows.csv") == 1
    for mark in (b"", codecs.BOM_UTF8):
        path.write_bytes(mark + json_lines(ROWS))
        check(JsonLines(path))


def test_columns_rename_fields(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(json_lines(RENAMED))
    check(JsonLines(path, columns=NAMES))
    nameless = JsonLines(path, columns={"document": "query"})
    assert [e.id for e in nameless.examples()] == [str(n) for n in range(1, 11)]
    fault = r"rows\.jsonl:1: has no column 'answers\.txt'; did you mean"
    with pytest.raises(ConfigError, match=fault):
        JsonLines(path, columns={**NAMES, "references": "answers.txt"}).check()
    with pytest.raises(ValueError, match="unknown field 'qestion'; did you mean 'question'"):
        JsonLines(path, columns={"qestion": "query"})


def as_parquet(path: Path, rows: list[Any]) -> None:
    parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=3)


def as_feather(path: Path, rows: list[Any]) -> None:
    feather.write_feather(pyarrow.Table.from_pylist(rows), path, chunksize=3)


def as_stream(path: Path, rows: list[Any]) -> None:
    table = pyarrow.Table.from_pylist(rows)
    with pyarrow.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)


# Writers of tables in batches of three rows.
TABLES = {".parquet": as_parquet, ".feather": as_feather, ".arrow": as_stream}


def test_a_parquet_bomb_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leporello.tasks.jsonl.formats.EXPANDED_BYTES", 100_000)
    table = pyarrow.Table.from_pylist([{"id": "a", "document": "a" * 10**7}])
    parquet.write_table(table, tmp_path / "a.parquet", compression="zstd")
    with pytest.raises(UserError, match=r"a.parquet: .* of a row group expand to 10,000,"):
        Table(tmp_path / "a.parquet").check()


@pytest.mark.parametrize("suffix", TABLES)
def test_tables_are_read_as_rows(tmp_path: Path, suffix: str) -> None:
    write = TABLES[suffix]
    write(tmp_path / f"a{suffix}", ROWS)
    check(Table(tmp_path / f"a{suffix}"))
    folder = tmp_path / "shards"
    folder.mkdir()
    for n, part in enumerate((RENAMED[:4], RENAMED[4:])):
        write(folder / f"train-{n}{suffix}", part)
    check(Table(folder, columns=NAMES))
    with pytest.raises(UserError, match=f"train-0{suffix}: has no column 'querry'; did you mean"):
        Table(folder, columns={**NAMES, "question": "querry"}).check()
    write(folder / f"train-2{suffix}", [{**RENAMED[0], "key": key} for key in (7, None)])
    with pytest.raises(ConfigError) as raised:
        Table(folder, columns={"document": "key"}).check()
    assert f"train-2{suffix}:2: needs `document`" in str(raised.value)
    (tmp_path / f"b{suffix}").write_bytes((tmp_path / f"a{suffix}").read_bytes()[:-40])
    with pytest.raises(UserError, match="is damaged, or is not a table"):
        Table(tmp_path / f"b{suffix}").check()


@pytest.mark.parametrize("suffix", TABLES)
def test_a_tables_rows_have_a_size_limit(tmp_path: Path, suffix: str) -> None:
    rows: list[Any] = [*ROWS[:4], {**ROWS[4], "document": "x" * 3_000_000}, *ROWS[5:]]
    TABLES[suffix](tmp_path / f"rows{suffix}", rows)
    examples = [*Table(tmp_path / f"rows{suffix}", max_row_bytes=10**6).examples()]
    [huge] = [example for example in examples if example.fault]
    assert huge.fault.startswith(f"rows{suffix}:5: the row is larger")
    assert summary(e for e in examples if e != huge) == [*EXPECTED[:4], *EXPECTED[5:]]


def test_folders_of_datasets_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    (folder / "train").mkdir(parents=True)
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": ["train"]}), encoding="utf-8")
    names = ["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"]
    state = {"_data_files": [{"filename": name} for name in names]}
    (folder / "train/state.json").write_text(json.dumps(state), encoding="utf-8")
    for name, part in zip(names, (RENAMED[:4], RENAMED[4:]), strict=True):
        as_stream(folder / "train" / name, part)
    check(Table(folder, split="train", columns=NAMES))
    check(Table(folder / "train", columns=NAMES))
    with pytest.raises(UserError, match="has no split ''; give one of 'train' as"):
        Table(folder).check()


def test_data_sets_of_the_hub_are_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n, part in enumerate((RENAMED[:4], RENAMED[4:])):
        as_parquet(tmp_path / f"{n}.parquet", part)
    files = {
        "data/train-0.jsonl.gz": gzip.compress(json_lines(RENAMED[:4])),
        "data/train-1.jsonl": json_lines(RENAMED[4:]),
        "odd/0.parquet": (tmp_path / "0.parquet").read_bytes(),
        "odd/1.parquet": (tmp_path / "1.parquet").read_bytes(),
        "more/dev.jsonl": json_lines(RENAMED),
    }
    train = {"split": "train", "path": "data/train-*"}
    parts = [train, {"split": "test", "path": ["odd/*.parquet"]}]
    configs = [{"config_name": "default", "data_files": parts}]
    with serving(Web()) as web:
        monkeypatch.setenv("HF_ENDPOINT", web.url)
        listed = [
            {"rfilename": p, "size": len(c), "blobId": hashlib.sha1(c).hexdigest()}  # noqa: S324 -- as in git
            for p, c in files.items()
        ]
        facts = {"id": "me/set", "siblings": listed, "cardData": {"configs": configs}}
        web.files["/api/datasets/me/set"] = json.dumps(facts).encode()
        web.files |= {f"/datasets/me/set/resolve/main/{p}": c for p, c in files.items()}
        url = to_path("hf://datasets/me/set")
        check(Table(url, columns=NAMES))
        check(Table(url, split="test", columns=NAMES))
        check(Table(url / "more", split="dev", columns=NAMES))
        check(Table(url / "more/dev.jsonl", columns=NAMES))
        assert len(web.downloads("/datasets/me/set/resolve/main/odd/0.parquet")) == 1
        with pytest.raises(UserError, match="has no files of rows for split 'nix'; other files"):
            Table(url, split="nix").check()
        with pytest.raises(UserError, match="refuses its files of the data set me/other"):
            Table(to_path("hf://datasets/me/other")).check()
    _cached_layout.cache_clear()
