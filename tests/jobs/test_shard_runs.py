"""Runs of shards: the same bytes in any process, in any order and after any interruption."""

import json
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
from leporello.engine.results.finished import ExampleStatistics
from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import JobFiles
from leporello.jobs.results import Summary
from leporello.jobs.shards import Shard, cut

LIMITS = Limits(shard_examples=30)  # about four shards of 100 examples


def run_lamps(config: Path, out: Path, *pipelines: str, **options: Any) -> Run:
    options = {"workers": 0, "limits": LIMITS, "cached": False, **options}
    return run(pipelines or ["mine"], config=[config], out=out, **options)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Config with a hundred questions on forty documents; some fail."""
    return project(tmp_path_factory.mktemp("lamps"), examples=100)


@pytest.fixture(scope="module")
def expected(config: Path) -> Path:
    """Directory of an unbroken run."""
    assert run_lamps(config, config.parent / "expected").failures
    return config.parent / "expected"


@pytest.fixture
def unbroken(expected: Path, tmp_path: Path) -> Path:
    """Copy of the unbroken run, which a test may break."""
    return shutil.copytree(expected, tmp_path / "unbroken")


def test_the_same_bytes_in_any_process(config: Path, tmp_path: Path) -> None:
    run_lamps(config, tmp_path / "unbroken", *PIPELINES, limit=64)
    for name, options in {"one": {"workers": 1, "selectors": 1}, "two": {"workers": 2}}.items():
        run_lamps(config, tmp_path / name, *PIPELINES, limit=64, **options)
        same_bytes(tmp_path / name, tmp_path / "unbroken", *PIPELINES)


def test_the_same_bytes_in_any_order_of_shards(
    config: Path, expected: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def backwards(*args: Any) -> Iterator[Shard]:
        yield from reversed([*cut(*args)])

    monkeypatch.setattr("leporello.runs.job_group.cut", backwards)
    run_lamps(config, tmp_path)
    numbers = [row["shard"] for row in read_lines(tmp_path / "workers.jsonl")]
    assert numbers == sorted(numbers, reverse=True)
    assert len(numbers) > 3
    same_bytes(tmp_path, expected)


def test_another_point_does_not_change_the_bytes_of_a_sweep(config: Path, tmp_path: Path) -> None:
    """Reads of several pipelines are never in one batch, which would change answers here."""
    for name, points in {"two": "1,2", "three": "1,2,3"}.items():
        run_lamps(config, tmp_path / name, overrides=[f"retriever.k={points}"])
    for file in FILES:
        for k in (1, 2):
            of_two, of_three = (
                tmp_path / name / f"mine@retriever.k={k}" / "lamps" / file
                for name in ("two", "three")
            )
            assert of_two.read_bytes() == of_three.read_bytes()


def test_a_run_after_a_limit_repeats_only_the_last_shard(
    config: Path, expected: Path, tmp_path: Path
) -> None:
    assert run_lamps(config, tmp_path, limit=50).results[0].examples == 50
    before = store(tmp_path).read_bytes()
    run_lamps(config, tmp_path)
    assert store(tmp_path).read_bytes() == before
    shards = [row["shard"] for row in read_lines(tmp_path / "workers.jsonl")]
    assert shards == [0, 1, *range(1, max(shards) + 1)]
    same_bytes(tmp_path, expected)


def test_a_limit_on_a_finished_run_keeps_all_examples(
    config: Path, expected: Path, unbroken: Path
) -> None:
    """Also if a shard that the limit cuts has failures, which are not retried then."""
    rows = [*JobFiles(RunDirectory(unbroken), "mine", "lamps").statistics()]
    failed = [number for number, row in enumerate(rows) if row.failure]
    result = run_lamps(config, unbroken, limit=failed[0] + 1).results[0]
    assert (result.examples, result.failures) == (100, len(failed))
    same_bytes(unbroken, expected)
    assert RunDirectory(unbroken).expected() == {("mine", "lamps"): 100}


def test_missing_results_are_restored_from_stores(
    config: Path, expected: Path, unbroken: Path
) -> None:
    before = len(read_lines(unbroken / "workers.jsonl"))
    for missing in (None, *FILES):
        if missing is None:
            shutil.rmtree(unbroken / "mine")
        else:
            (unbroken / "mine" / "lamps" / missing).unlink()
        run_lamps(config, unbroken)
        same_bytes(unbroken, expected)
    reads = [row["reads"] for row in read_lines(unbroken / "workers.jsonl")[before:]]
    assert not any(reads)


def _truncate(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 3])


def _change(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE done SET data = substr(data, 1, length(data) - 1) || x'00'")


DAMAGE: Mapping[str, Callable[[Path], object]] = {
    "truncated": _truncate,
    "empty": lambda path: path.write_bytes(b""),
    "missing": Path.unlink,
    "not a store": lambda path: path.write_text("{}\n" * 999),
    "changed": _change,
    "another shard's": lambda path: shutil.copy(path.with_name("00000.sqlite"), path),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("merged", [True, False])
def test_the_shard_of_a_damaged_store_runs_again(
    config: Path, expected: Path, unbroken: Path, damage: str, merged: bool
) -> None:
    """With the same bytes. If the results are merged, only the retry of failures reads stores."""
    if not merged:
        shutil.rmtree(unbroken / "mine")
    before = len(read_lines(unbroken / "workers.jsonl"))
    DAMAGE[damage](store(unbroken, 1))
    run_lamps(config, unbroken, workers=int(damage == "changed"))
    predictions = Path("mine", "lamps", "predictions.jsonl")
    assert (unbroken / predictions).read_bytes() == (expected / predictions).read_bytes()
    if not merged:
        same_bytes(unbroken, expected)
    shards = [row["shard"] for row in read_lines(unbroken / "workers.jsonl")[before:]]
    assert 1 in shards


@pytest.mark.parametrize("name", FILES)
def test_a_changed_result_is_reported_and_restored(config: Path, unbroken: Path, name: str) -> None:
    path = unbroken / "mine" / "lamps" / name
    content = path.read_bytes()
    if b"1" not in content:
        pytest.skip("an empty file")
    path.write_bytes(content.replace(b"1", b"2", 1))
    if name != "metrics.json":
        with pytest.raises(UserError, match=f"{name}: is missing, or changed since"):
            [*JobFiles(RunDirectory(unbroken), "mine", "lamps").examples()]
    run_lamps(config, unbroken)
    assert path.read_bytes() == content


@pytest.fixture
def old(unbroken: Path) -> Path:
    """Directory of a run of 0.2, with a journal in place of stores."""
    shutil.rmtree(unbroken / "journal")
    (unbroken / "journal" / "mine").mkdir(parents=True)
    (unbroken / "journal" / "mine" / "lamps.jsonl").write_text('{"step": 0}\n')
    manifest = json.loads((unbroken / "manifest.json").read_text())
    manifest |= {"leporello": "0.2.0", "limits": {"max_active": 64, "shard_examples": 128}}
    del manifest["stores"]
    (unbroken / "manifest.json").write_text(json.dumps(manifest))
    return unbroken


VERBS: Iterable[str] = (
    "run mine --config CONFIG --out RUN", "plan mine --config CONFIG --out RUN", "compare RUN",
    "report RUN --out PAGE", "explain RUN q1", "export RUN --format parquet --out PAGE",
    "analyze RUN",
)  # fmt: skip


def _refusals(old: Path, config: Path) -> Iterator[tuple[str, BaseException | None]]:
    places = {"CONFIG": config, "RUN": old, "PAGE": old.parent / "page"}
    for line in VERBS:
        words = line.split()
        arguments = [str(places.get(word, word)) for word in words]
        yield words[0], CliRunner().invoke(application(), arguments).exception


def test_a_run_of_0_2_is_neither_resumed_nor_explained_but_read(old: Path, config: Path) -> None:
    before = {path: path.read_bytes() for path in old.rglob("*.json*")}
    for verb, error in _refusals(old, config):
        if verb in ("run", "plan", "explain"):
            assert "is a run of Leporello 0.2, whose journals this version" in str(error)
        else:
            assert not isinstance(error, UserError) or "needs the package" in str(error)
    assert before.items() <= {path: path.read_bytes() for path in old.rglob("*.json*")}.items()


def test_counts_of_a_single_example_are_numbers() -> None:
    """Also where each count is 0 or 1, as in metrics.json and the table of a run."""
    summary = Summary({})
    summary.add(ExampleStatistics(0, "q0", {}, empty=True))
    row = summary.result("mine", "rows").row()
    assert [str(row[name]) for name in ("empty", "noted", "cured")] == ["1", "0", "0"]
