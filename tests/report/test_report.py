"""The report: one file that needs nothing else, shows what was run, and survives odd texts."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import sqlite3
import subprocess
from base64 import b64decode
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from report_page import DRAWS, Page
from typer.testing import CliRunner

from leporello.api import UserError, run
from leporello.cli import application
from leporello.core.files import read_json
from leporello.report import report
from leporello.report.example_index import packed

HOSTILE = "</script><script>alert(1)</script><!-- \ud800 \x00\x1b ]]> & <b> \u2028"
PLUG_IN = """
from dataclasses import dataclass
from leporello import Output

@dataclass(frozen=True)
class Echo:
    '''Answers with the first passage's first words; shows its input.'''
    words: int = 2

    def read(self, inputs):
        if any("explode" in read.question for read in inputs):
            raise RuntimeError("exploded </script>")
        return [self.said(read) for read in inputs]

    def said(self, read):
        [chunk, *_] = read.passages
        text = " ".join(chunk.text.split()[: self.words])
        span = chunk.document.chunk(chunk.start, chunk.start + len(text)).span
        return Output(text, span=span, probability=0.5 + len(text) % 5 / 10)

    def count(self, texts):
        return [0 for _ in texts]

    def fit(self, read):
        return len(read.passages)

    def render(self, read):
        return "PROMPT " + read.question
"""
CONFIG = """
tasks:
  rows: {class: JsonLines, path: rows.jsonl, metrics: [f1, recall]}
pipelines:
  echo:
    tasks: [rows]
    chunker: {class: Sentences, size: 6}
    retriever: {class: BM25, k: [1, 2]}
    reader: {class: "./plug.py:Echo"}
    combiner: {class: Stuff}
  first: {extends: echo, retriever: {class: First, k: 1}}
"""
PROOFS = ["Red foxes", "Blue hens", "Green owls", "Old barns"]
TEXT = "Red foxes sleep. Blue hens run far. Green owls see at night. Old barns burn well. "


def _rows() -> list[dict[str, Any]]:
    animals = ["red foxes", "blue hens", "green owls", "old barns"]
    rows: list[dict[str, Any]] = [
        {
            "id": f"q{number}",
            "document": f"{TEXT * (1 + number % 3)}Tale {number % 5}.",
            "title": HOSTILE,
            "question": f"what of {animals[number % 4]} {number}",
            "references": [animals[number % 4]],
            "evidence": [[start := TEXT.index(PROOFS[number % 4]), start + 9]],
        }
        for number in range(30)
    ]
    rows[7]["question"] = "explode"
    rows[8] |= {"id": HOSTILE, "question": f"{HOSTILE} owls", "document": f"{TEXT} {HOSTILE} owls."}
    return rows


def _files(folder: Path) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in _rows())
    (folder / "rows.jsonl").write_text(text)
    (folder / "plug.py").write_text(PLUG_IN)
    (folder / "mine.yaml").write_text(CONFIG)
    return folder / "mine.yaml"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a sweep and another pipeline; one example fails, one is hostile."""
    folder = tmp_path_factory.mktemp("report")
    run(["echo", "first"], config=[_files(folder)], out=folder / "out", workers=0)
    return folder / "out"


@pytest.fixture(scope="module")
def page(done: Path) -> Page:
    """The report of that run."""
    out = done.parent / "report.html"
    report([done], out, inputs=10, draws=DRAWS)
    return Page(out)


def test_a_report_is_one_well_formed_file_that_loads_nothing(page: Page) -> None:
    """No address, no source, no import; a policy that forbids them; every tag closed."""
    assert page.unclosed == []
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page.source)
    assert not [tag for tag, attributes in page.tags if {"src", "srcset"} & attributes.keys()]
    assert not [tag for tag, _ in page.tags if tag in ("link", "iframe", "img", "object", "base")]
    [policy] = [a["content"] for _, a in page.tags if a.get("http-equiv")]
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def test_a_reports_scores_are_those_of_the_run(done: Path, page: Page) -> None:
    """In the table, and as the mean of what the list shows."""
    index = page.data["index-0"]
    assert [job["pipeline"] for job in index["jobs"]] == [
        "echo@retriever.k=1", "echo@retriever.k=2", "first",
    ]  # fmt: skip
    for place, job in enumerate(index["jobs"]):
        whole = read_json(done / job["pipeline"] / "rows" / "metrics.json")
        told, sure = whole["scores"], whole["confidence"]
        assert sure["answers"] == 29
        assert f"{sure['ece']:.6g}" in page.text
        for name, scores in zip(index["metrics"], index["scores"][place], strict=True):
            assert fmean(scores) == pytest.approx(told[name], abs=0.01)
        assert f"{told['f1']:.2f} [" in page.text


def test_a_reports_examples_hold_what_was_run(done: Path, page: Page) -> None:
    """Predictions, hits, what was read and cited, references, and the documents' own words."""
    examples = page.examples()
    rows = [json.loads(line) for line in (done / "first/rows/predictions.jsonl").open()]
    by_id = {example["id"]: example for example in examples}
    assert len(examples) == len(by_id) == 30
    for row in rows:
        example = by_id[row["id"]]
        job = example["jobs"][2]
        assert (job["prediction"], job["hits"]) == (row["prediction"], row["hits"])
        assert (job["read"], job["coverage"]) == (row["read"], row["coverage"])
        [[start, end, _]], [call] = row["hits"], job["calls"]
        assert call["passages"] == [[start, end]]
        assert call["span"] == [start, start + len(row["prediction"])]
    excerpts = page.data["piece-0-0"]["documents"][by_id["q0"]["document"]]["excerpts"]
    assert excerpts["0-16"] == "Red foxes sleep."
    assert by_id["q0"]["references"] == ["red foxes"]
    assert by_id["q0"]["evidence"] == [[0, 9]]


def test_failures_and_lost_answers_are_shown(page: Page) -> None:
    """An example that failed says where and why; one whose evidence was missed says so."""
    index = page.data["index-0"]
    place = index["ids"].index("q7")
    assert index["states"][0][place] == 2
    failure = page.examples()[place]["jobs"][0]["failure"]
    assert failure == {"stage": "reader", "error": "RuntimeError: exploded </script>"}
    lost = index["lost"][2][index["ids"].index("q1")]  # `first` sees the foxes alone
    assert index["stages"][lost] == "retriever"


def test_no_text_of_a_run_becomes_part_of_the_page(page: Page) -> None:
    """Ends of scripts, lone surrogates and control characters arrive as they were, inert."""
    hostile = HOSTILE.replace("\ud800", "\ufffd")  # as the task says it
    [example] = [each for each in page.examples() if each["id"] == hostile]
    assert example["question"] == f"{hostile} owls"
    document = page.data["piece-0-0"]["documents"][example["document"]]
    assert document["title"] == hostile
    assert json.loads(gzip.decompress(b64decode(packed(HOSTILE)))) == HOSTILE
    assert "alert(1)" not in page.source
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]", page.source)


def test_the_curves_that_there_are_data_for_are_drawn(page: Page) -> None:
    """Length, position, recall at k, the parameter swept over, cost; each with its numbers."""
    for title in (
        "f1 against the length of the document",
        "f1 against where the evidence stands",
        "Recall of the evidence by the first k hits",
        "f1 against retriever.k",
        "f1 against seconds an example",
        "Risk against coverage",
        "f1 against confidence in bins",
        "first on rows: examples whose proof each stage kept whole",
    ):
        assert title in page.text
    figures = sum(tag == "figure" for tag, _ in page.tags)
    assert figures == sum(tag == "svg" for tag, _ in page.tags) > 8


def test_without_the_data_the_rest_is_shown(done: Path, tmp_path: Path) -> None:
    """Tables and predictions remain; the report says what is missing."""
    for path in done.parent.iterdir():
        if path.name != "report.html":
            (shutil.copytree if path.is_dir() else shutil.copy)(path, tmp_path / path.name)
    config = tmp_path / "out" / "run.yaml"
    config.write_text(config.read_text().replace(str(done.parent), str(tmp_path)))
    changed = [{**row, "document": f"{row['document']}!"} for row in _rows()]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in changed))
    told = report([tmp_path / "out"], tmp_path / "report.html", draws=DRAWS)
    assert any("shown without its documents" in note for note in told.notes)
    page = Page(tmp_path / "report.html")
    [first, *_] = page.examples()
    assert first["jobs"][0]["prediction"] == "Red foxes"
    assert "document" not in first
    assert "shown without its documents" in page.text


def test_a_run_that_was_killed_is_reported_as_far_as_it_came(tmp_path: Path) -> None:
    """From its stores; pipelines are compared by what all have finished."""
    out = tmp_path / "out"
    run(["echo", "first"], config=[_files(tmp_path)], out=out, workers=0)
    for name in ("echo@retriever.k=1", "echo@retriever.k=2", "first"):
        shutil.rmtree(out / name)
    with sqlite3.connect(out / "journal" / "first" / "rows" / "00000.sqlite") as store:
        store.execute("DELETE FROM done WHERE number > 25")
    told = report([out], tmp_path / "report.html", draws=DRAWS)
    assert any("examples that all pipelines have finished, of 30" in note for note in told.notes)
    index = Page(tmp_path / "report.html").data["index-0"]
    assert 0 in index["states"][2]
    assert len(index["ids"]) == 30


def test_two_runs_stand_side_by_side(done: Path, tmp_path: Path) -> None:
    """Pipelines of one name are told apart by their runs; a report twice made is the same."""
    other = tmp_path / "again"
    shutil.copytree(done, other)
    for name in ("one.html", "two.html"):
        report([done, other], tmp_path / name, tasks=["rows"], baseline="out:first", draws=DRAWS)
    page = Page(tmp_path / "one.html")
    labels = [job["label"] for job in page.data["index-0"]["jobs"]]
    assert labels[2:4] == ["out:first", "again:echo@retriever.k=1"]
    assert "against out:first" in page.text
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_the_verb_writes_a_report(done: Path, tmp_path: Path) -> None:
    """It tells where; a place that cannot be written to is the user's mistake."""
    out = tmp_path / "page.html"
    told = CliRunner().invoke(
        application(), ["report", str(done), "--out", str(out), "--inputs", "0"]
    )
    assert (told.exit_code, out.exists()) == (0, True), told.output
    assert "page.html: 30 examples," in told.output
    with pytest.raises(UserError, match="cannot be written"):
        report([done], tmp_path / "none" / "page.html", draws=DRAWS)
    with pytest.raises(UserError, match="is not a run"):
        report([tmp_path], out)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_a_browser_shows_the_examples(page: Page, done: Path) -> None:
    """The script runs under the page's own policy, and unpacks the list."""
    browser = str(shutil.which("chromium"))
    shown = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000",
         "--dump-dom", (done.parent / "report.html").as_uri()],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip
    assert "30 of 30 examples" in shown
    assert 'id="row-0"' in shown
    assert page.data["index-0"]["questions"][0] in shown
