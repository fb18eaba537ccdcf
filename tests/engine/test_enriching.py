"""Enrichers in a run: the passages of results, and failures with their stage."""

from pathlib import Path

import pytest
from command_line import HERE, leporello, read_lines, write_files
from lamps import began, project

RUN = ("run", "rooted", *HERE, "--limit", "12")
DONE = Path("rooted", "lamps")


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lamps")
    config = project(folder, examples=12, documents=4)
    leporello(*RUN, "--config", config, "--out", folder / "out", "--no-cache", status=1)
    return folder / "out"


def test_results_contain_the_passages_of_hits(finished_run: Path) -> None:
    rows = read_lines(finished_run / DONE / "predictions.jsonl")
    hits = [passage for row in rows for passage in row.get("passages", {}).values()]
    assert {passage["kind"] for passage in hits} == {"summary"}
    assert all(passage["text"] and passage["spans"] for passage in hits)
    assert any(row["coverage"]["stood_for"] for row in rows)


def test_explain_shows_the_sources_of_a_passage(finished_run: Path) -> None:
    """Down to the document, from the store."""
    rows = read_lines(finished_run / DONE / "predictions.jsonl")
    row = next(row for row in rows if row.get("passages"))
    output = leporello("explain", finished_run, row["id"]).stdout
    assert "summary" in output
    assert "└ verbatim" in output


PLUG = """
import time
from dataclasses import dataclass

@dataclass(frozen=True)
class Bad:
    how: str

    def enrich(self, document, chunks):
        match self.how:
            case "none": return None
            case "raises": raise ValueError("cannot be summarised")
            case "hangs": time.sleep(600)
        return [*chunks] * 5000

@dataclass(frozen=True)
class Searches:
    how: str

    def enrich(self, document, chunks):
        from leporello import Search
        yield [Search("lamp")]
"""
FAULTS = {
    "none": "must return a list of chunks and passages",
    "raises": "cannot be summarised",
    "many": "returned more than",
    "searches": "passages are only searched afterwards",
    "hangs": "TimeoutError: took longer than 0.5 s",
}


def test_the_failure_of_an_enricher_fails_the_questions_on_the_document(tmp_path: Path) -> None:
    """The failures name the stage; the same command tries again."""
    classes = {how: "Searches" if how == "searches" else "Bad" for how in FAULTS}
    bad = [
        f"  {how}: {{extends: mine, enricher: {{class: ./bad.py:{name}, how: {how}}}}}"
        for how, name in classes.items()
    ]
    write_files(tmp_path, {"bad.py": PLUG, "bad.yaml": "\n".join(["pipelines:", *bad])})
    config = project(tmp_path, examples=3, documents=2)
    line = (*HERE, "--config", config, "--config", tmp_path / "bad.yaml", "--no-cache", "--out")
    *others, hanging = FAULTS
    for _ in range(2):
        leporello("run", *others, *line, tmp_path / "out", status=1)
        limit = ("--example-timeout", "0.5")
        leporello("run", hanging, *line, tmp_path / "late", *limit, status=1)
        for how, message in FAULTS.items():
            out = tmp_path / ("late" if how == hanging else "out")
            failed = read_lines(out / how / "lamps" / "failures.jsonl")
            assert [row["stage"] for row in failed] == ["enricher"] * 3
            assert all(message in row["error"] for row in failed), how


def test_plan_reports_passages_without_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMP_SECONDS", "0")
    config = project(tmp_path, 3, documents=2)
    out = ("--config", config, "--out", tmp_path / "out")
    before = leporello("plan", "rooted", *out).stdout
    assert "passages" in before
    assert not began(tmp_path).exists()
