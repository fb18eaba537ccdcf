"""Shards from end to end: the same bytes wherever, whenever and in whatever order they are done."""

from __future__ import annotations

import json
import logging
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command_line import read_lines
from lamps import FILES, PIPELINES, project, same_bytes, store
from typer.testing import CliRunner

from leporello.api import Run, UserError, run
from leporello.cli import application
from leporello.engine.limits import Limits
from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import JobFiles
from leporello.jobs.shards import Shard, cut

LIMITS = Limits(shard_examples=30)  # four shards of 100 examples, or so


def go(config: Path, out: Path, *pipelines: str, **options: Any) -> Run:
    """Runs pipelines in this process, unless it is said otherwise."""
    given: dict[str, Any] = {"workers": 0, "limits": LIMITS, "cached": False, **options}
    return run(pipelines or ["mine"], config=[config], out=out, **given)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A hundred questions on forty documents; some fail."""
    return project(tmp_path, examples=100)


@pytest.fixture
def whole(config: Path) -> Path:
    """A run of `mine`, done in this process."""
    out = config.parent / "whole"
    assert go(config, out).failures
    return out


@pytest.mark.parametrize("options", [{"workers": 1, "selectors": 1}, {"workers": 2}], ids=str)
def test_the_same_bytes_wherever_shards_are_done(
    config: Path, tmp_path: Path, options: dict[str, int]
) -> None:
    """In this process, in one beside it with a process that selects for it, or in two."""
    whole, out = tmp_path / "whole", tmp_path / "out"
    go(config, whole, *PIPELINES)
    go(config, out, *PIPELINES, **options)
    same_bytes(out, whole, *PIPELINES)


def test_the_same_bytes_in_whatever_order_shards_are_done(
    config: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever comes first, results stand in the task's order."""

    def backwards(*given: Any) -> Iterator[Shard]:
        yield from reversed([*cut(*given)])

    monkeypatch.setattr("leporello.runs.batch.cut", backwards)
    out = config.parent / "out"
    go(config, out)
    numbers = [row["shard"] for row in read_lines(out / "workers.jsonl")]
    assert numbers == sorted(numbers, reverse=True)
    assert len(numbers) > 3
    same_bytes(out, whole)


def test_a_point_more_changes_no_byte_of_the_others(config: Path, tmp_path: Path) -> None:
    """Reads of one pipeline alone share a window, and its answers tell who was in it."""
    for name, points in {"two": "1,2", "three": "1,2,3"}.items():
        go(config, tmp_path / name, overrides=[f"retriever.k={points}"])
    for file in FILES:
        for k in (1, 2):
            one, other = (
                tmp_path / name / f"mine@retriever.k={k}" / "lamps" / file
                for name in ("two", "three")
            )
            assert one.read_bytes() == other.read_bytes()


# -- limits --------------------------------------------------------------------------------------


def test_what_follows_a_limit_does_only_the_shard_at_its_border_again(
    config: Path, whole: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And says so; a smaller limit afterwards has nothing to do."""
    out = config.parent / "out"
    assert go(config, out, limit=50).results[0].examples == 50
    before = store(out).read_bytes()
    with caplog.at_level(logging.INFO, "leporello"):
        go(config, out)
    assert "lamps: shard 1 starts again from its first example" in caplog.text
    assert "--limit ended after " in caplog.text
    assert caplog.text.count("starts again") == 1
    assert store(out).read_bytes() == before
    again = [row["shard"] for row in read_lines(out / "workers.jsonl")]
    assert again == [0, 1, *range(1, max(again) + 1)]
    same_bytes(out, whole)


# -- stores ------------------------------------------------------------------------------------


def _forget_results(out: Path) -> None:
    shutil.rmtree(out / "mine")


def test_lost_results_are_written_again_from_stores_alone(config: Path, whole: Path) -> None:
    """Whether all of them are gone, or one file; nothing is read again."""
    kept = {name: (whole / "mine" / "lamps" / name).read_bytes() for name in FILES}
    begun = len(read_lines(whole / "workers.jsonl"))
    for lost in (None, *FILES):
        if lost is None:
            _forget_results(whole)
        else:
            (whole / "mine" / "lamps" / lost).unlink()
        go(config, whole)
        for name, content in kept.items():
            assert (whole / "mine" / "lamps" / name).read_bytes() == content
    reads = [row["reads"] for row in read_lines(whole / "workers.jsonl")[begun:]]
    assert not any(reads)


def _cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 3])


def _changed(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE done SET data = substr(data, 1, length(data) - 1) || x'00'")


DAMAGE: Mapping[str, Callable[[Path], object]] = {
    "cut": _cut,
    "empty": lambda path: path.write_bytes(b""),
    "lost": Path.unlink,
    "no store": lambda path: path.write_text("{}\n" * 999),
    "changed": _changed,
    "another shard's": lambda path: shutil.copy(path.with_name("00000.sqlite"), path),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("merged", [True, False])
def test_a_damaged_store_is_done_again(
    config: Path, whole: Path, damage: str, merged: bool
) -> None:
    """To the same bytes; under finished results nothing reads it, until what failed is retried."""
    out = config.parent / "out"
    shutil.copytree(whole, out)
    if not merged:
        _forget_results(out)
    before = len(read_lines(out / "workers.jsonl"))
    DAMAGE[damage](store(out, 1))
    go(config, out, workers=int(damage == "changed"))
    if not merged:
        same_bytes(out, whole)
    for name in FILES[:1]:
        one, other = (run / "mine" / "lamps" / name for run in (out, whole))
        assert one.read_bytes() == other.read_bytes()
    again = [row["shard"] for row in read_lines(out / "workers.jsonl")[before:]]
    assert 1 in again


@pytest.mark.parametrize("name", FILES)
def test_a_changed_result_is_told_and_made_again(config: Path, whole: Path, name: str) -> None:
    """Whoever compares reads what the run wrote, or is told what to do, which works."""
    path = whole / "mine" / "lamps" / name
    kept = path.read_bytes()
    if b"1" not in kept:
        pytest.skip("an empty file")
    path.write_bytes(kept.replace(b"1", b"2", 1))
    if name != "metrics.json":  # which is written anew
        with pytest.raises(UserError, match=f"{name}: is gone, or changed since"):
            [*JobFiles(RunDirectory(whole), "mine", "lamps").examples()]
        path.unlink()
    go(config, whole)
    assert path.read_bytes() == kept


# -- runs of earlier versions --------------------------------------------------------------------


@pytest.fixture
def old(whole: Path) -> Path:
    """A directory as 0.1 left it: one journal, and other limits."""
    shutil.rmtree(whole / "journal")
    (whole / "journal" / "mine").mkdir(parents=True)
    (whole / "journal" / "mine" / "lamps.jsonl").write_text('{"step": 0}\n')
    manifest = json.loads((whole / "manifest.json").read_text())
    manifest |= {"leporello": "0.1.0", "limits": {"flights": 64, "inputs": 32}}
    (whole / "manifest.json").write_text(json.dumps(manifest))
    return whole


VERBS: Iterable[str] = (
    "run mine --config CONFIG --out RUN", "plan mine --config CONFIG --out RUN", "watch RUN",
    "compare RUN", "report RUN --out PAGE", "explain RUN q1",
    "export RUN --format parquet --out PAGE", "analyze RUN", "track RUN --to mlflow",
    "cache why RUN q1",
)  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_a_run_of_0_1_is_refused_with_what_to_do(old: Path, config: Path, verb: str) -> None:
    """By every verb that looks at runs; nothing in it is changed."""
    places = {"CONFIG": config, "RUN": old, "PAGE": config.parent / "page"}
    before = {path: path.read_bytes() for path in old.rglob("*.json*")}
    words = [str(places.get(word, word)) for word in verb.split()]
    done = CliRunner().invoke(application(), words)
    assert isinstance(done.exception, UserError), (done.output, done.exception)
    assert "is a run of Leporello 0.1, which this version does not read" in str(done.exception)
    assert "give another --out to run it again" in str(done.exception)
    assert before == {path: path.read_bytes() for path in old.rglob("*.json*")}


def test_a_run_of_0_2_is_neither_resumed_nor_explained(old: Path, config: Path) -> None:
    """Its finished results are still compared and reported."""
    manifest = json.loads((old / "manifest.json").read_text())
    manifest |= {"leporello": "0.2.0", "limits": {"max_active": 64, "shard_examples": 128}}
    del manifest["stores"]
    (old / "manifest.json").write_text(json.dumps(manifest))
    places = {"CONFIG": config, "RUN": old, "PAGE": config.parent / "page"}
    for verb in VERBS:
        done = CliRunner().invoke(application(), [str(places.get(w, w)) for w in verb.split()])
        if verb.split()[0] in ("run", "plan", "watch", "explain", "cache"):
            assert "is a run of Leporello 0.2, whose journals this version" in str(done.exception)
        else:
            assert not isinstance(done.exception, UserError) or "needs the package" in str(
                done.exception
            )
