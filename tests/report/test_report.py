"""Tests of the report: a self-contained file with all results, robust against odd texts."""

import gzip
import json
import re
import shutil
import sqlite3
from base64 import b64decode
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from command_line import leporello, write_files
from report_page import DRAWS, Page

from leporello.analysis.comparison.comparison import compare
from leporello.analysis.comparison.summary import verdict
from leporello.api import UserError, run
from leporello.core.files import read_json
from leporello.report import report
from leporello.report.curves import binned
from leporello.report.example_details import packed
from leporello.report.plots import Point, Series, lines

CHROMIUM = shutil.which("chromium")
HOSTILE = "</script><script>alert(1)</script><!-- \ud800 \x00\x1b ]]> & <b> \u2028"
PLUG_IN = """
from leporello import Output
from leporello.readers import Lead

class Echo(Lead):
    '''Answers with the first words of the first passage, and renders its input.'''

    def read(self, inputs):
        if any("explode" in read.question for read in inputs):
            raise RuntimeError("exploded </script>")
        return [self.answer(read) for read in inputs]

    def answer(self, read):
        [chunk, *_] = read.passages
        text = " ".join(chunk.text.split()[: self.words])
        span = chunk.document.chunk(chunk.start, chunk.start + len(text)).span
        return Output(text, span=span, probability=0.5 + len(text) % 5 / 10)

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
    reader: {class: "./plug.py:Echo", words: 2}
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
    write_files(folder, {"rows.jsonl": _rows(), "plug.py": PLUG_IN, "mine.yaml": CONFIG})
    return folder / "mine.yaml"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a sweep and another pipeline; one example fails, one has hostile texts."""
    folder = tmp_path_factory.mktemp("report")
    run(["echo", "first"], config=[_files(folder)], out=folder / "out", workers=0)
    return folder / "out"


@pytest.fixture(scope="module")
def page(directory: Path) -> Page:
    out = directory.parent / "report.html"
    report([directory], out, inputs=10, draws=DRAWS)
    return Page(out)


def test_a_report_is_one_well_formed_file_that_loads_nothing(page: Page) -> None:
    assert page.unclosed == []
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page.source)
    assert not [tag for tag, attributes in page.tags if {"src", "srcset"} & attributes.keys()]
    assert not [tag for tag, _ in page.tags if tag in ("link", "iframe", "img", "object", "base")]
    [policy] = [a["content"] for _, a in page.tags if a.get("http-equiv")]
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    visible = page.source.partition("<body>")[2].partition("<summary>Config and manifest")[0]
    assert not re.search(r"(?<![\w<])/(?:tmp|home|root)/|[0-9a-f]{32}", visible)


def test_a_report_shows_the_scores_of_the_run(directory: Path, page: Page) -> None:
    index = page.data["index-0"]
    assert [job["pipeline"] for job in index["jobs"]] == [
        "echo@retriever.k=1", "echo@retriever.k=2", "first",
    ]  # fmt: skip
    for place, job in enumerate(index["jobs"]):
        metrics = read_json(directory / job["pipeline"] / "rows" / "metrics.json")
        expected, confidence = metrics["scores"], metrics["confidence"]
        assert confidence["answers"] == 29
        assert f"{confidence['ece']:.6g}" in page.text
        for name, scores in zip(index["metrics"], index["scores"][place], strict=True):
            assert fmean(scores) == pytest.approx(expected[name], abs=0.01)
        assert f"{expected['f1']:.2f} [" in page.text


def test_a_report_contains_the_examples_of_the_run(directory: Path, page: Page) -> None:
    examples = page.examples()
    rows = [json.loads(line) for line in (directory / "first/rows/predictions.jsonl").open()]
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
    index = page.data["index-0"]
    place = index["ids"].index("q7")
    assert index["states"][0][place] == 2
    failure = page.examples()[place]["jobs"][0]["failure"]
    assert failure == {"stage": "reader", "error": "RuntimeError: exploded </script>"}
    lost = index["lost"][2][index["ids"].index("q1")]  # `first` selects only the foxes
    assert index["stages"][lost] == "retriever"


def test_texts_of_a_run_never_become_html(page: Page) -> None:
    hostile = HOSTILE.replace("\ud800", "\ufffd")  # as the task reads it
    [example] = [example for example in page.examples() if example["id"] == hostile]
    assert example["question"] == f"{hostile} owls"
    document = page.data["piece-0-0"]["documents"][example["document"]]
    assert document["title"] == hostile
    assert json.loads(gzip.decompress(b64decode(packed(HOSTILE)))) == HOSTILE
    assert "alert(1)" not in page.source
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]", page.source)


def test_a_report_begins_with_the_verdict_and_losses(directory: Path, page: Page) -> None:
    [board] = compare([directory], common=True, draws=DRAWS).boards
    assert f"{verdict(board)}." in page.text
    summary, _, losses = page.source.partition('<section id="lost">')
    assert re.findall(r"<th scope=\"col\"><span>([^<]*)</span>", summary)[:4] == [
        "#", "pipeline", "retriever k", "n",
    ]  # fmt: skip
    assert {"#1", "#2", "first"} == {*re.findall(r'<th scope="row" title="([^"]*)"', summary)}
    assert summary.count('class="dot') == 2
    lost = page.data["index-0"]["lost"]
    bars = re.findall(r'data-filter="0 (\d) (\d)"><span>(\d+)<', losses)
    assert len(bars) > 3
    for job, stage, count in bars:
        assert lost[int(job)].count(int(stage)) == int(count)


def test_all_curves_with_data_are_plotted(page: Page) -> None:
    """More than three series have a panel each, and no point is the mean of a few examples."""
    titles = re.findall(r"<figcaption>(.*?)[,:]", page.source)
    assert titles == [
        "f1 by length of the document", "f1 by position of the evidence",
        "Recall of the evidence by the first k hits", "f1 by confidence", "f1 by retriever k",
    ]  # fmt: skip
    series = [Series(str(n), (Point(1, 2, 1, 3), Point(2, 2, 1, 3))) for n in range(4)]
    few, many = (lines("t", series[:n], x_name="x", y_name="y") for n in (3, 4))
    assert [len(plot.panels) for plot in (few, many)] == [1, 4]
    assert [svg.count("band") for plot in (few, many) for _, svg in plot.panels] == [0, 1, 1, 1, 1]
    places = [*range(35), *[40] * 15, None]
    assert [point.x for point in binned(places, [1.0] * 51)] == [4.5, 14.5, 24.5, 38]
    assert not binned(range(9), [1.0] * 9)


def test_a_report_without_the_data_shows_results(directory: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(directory.parent, tmp_path / "moved")
    config = folder / "out" / "run.yaml"
    config.write_text(config.read_text().replace(str(directory.parent), str(folder)))
    changed = [{**row, "document": f"{row['document']}!"} for row in _rows()]
    write_files(folder, {"rows.jsonl": changed})
    result = report([folder / "out"], tmp_path / "report.html", draws=DRAWS)
    assert any("shown without its documents" in note for note in result.notes)
    page = Page(tmp_path / "report.html")
    [first, *_] = page.examples()
    assert first["jobs"][0]["prediction"] == "Red foxes"
    assert "document" not in first
    assert "shown without its documents" in page.text


def test_a_killed_run_can_be_reported(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(["echo", "first"], config=[_files(tmp_path)], out=out, workers=0)
    for name in ("echo@retriever.k=1", "echo@retriever.k=2", "first"):
        shutil.rmtree(out / name)
    with sqlite3.connect(out / "journal" / "first" / "rows" / "00000.sqlite") as store:
        store.execute("DELETE FROM done WHERE number > 25")
    result = report([out], tmp_path / "report.html", draws=DRAWS)
    assert any("examples that all pipelines have finished, of 30" in note for note in result.notes)
    index = Page(tmp_path / "report.html").data["index-0"]
    assert 0 in index["states"][2]
    assert len(index["ids"]) == 30


def test_two_runs_are_compared(directory: Path, tmp_path: Path) -> None:
    copied_run = tmp_path / "again"
    shutil.copytree(directory, copied_run)
    for name in ("one.html", "two.html"):
        runs, out = [directory, copied_run], tmp_path / name
        report(runs, out, tasks=["rows"], baseline="out:first", draws=DRAWS)
    page = Page(tmp_path / "one.html")
    labels = [job["label"] for job in page.data["index-0"]["jobs"]]
    assert labels[2:4] == ["out:first", "again:echo@retriever.k=1"]
    assert "against out:first" in page.text
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_the_verb_writes_a_report(directory: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    printed = leporello("report", directory, "--out", out, "--inputs", "0").stdout
    assert out.exists()
    assert "page.html: 30 examples," in printed
    with pytest.raises(UserError, match="cannot be written"):
        report([directory], tmp_path / "none" / "page.html", draws=DRAWS)


@pytest.mark.integration
@pytest.mark.skipif(CHROMIUM is None, reason="needs the distribution's chromium")
@pytest.mark.parametrize("width", [1280, 400])
def test_a_browser_shows_the_examples(page: Page, directory: Path, width: int) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    expect, errors = sync_api.expect, []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        shown = browser.new_page(viewport={"width": width, "height": 800})
        shown.on("console", lambda message: errors.append(message.text))
        shown.on("pageerror", lambda error: errors.append(str(error)))
        shown.goto((directory.parent / "report.html").as_uri())
        expect(shown.locator("#count")).to_have_text("30 of 30 examples")
        expect(shown.locator("#detail h3")).to_have_text("q0")
        size = shown.evaluate("[document.body.scrollWidth, document.body.scrollHeight]")
        assert size[0] <= width
        assert size[1] < 4_000
        column = shown.locator("#summary table th").last
        before = column.bounding_box()
        shown.locator("#summary .scroll").evaluate("table => { table.scrollLeft = 200; }")
        assert column.bounding_box() == before  # the first column is fixed
        bar = shown.locator('[data-filter="0 2 2"]')  # lost by the retriever of `first`
        count = bar.inner_text()
        bar.click()
        expect(shown.locator("#count")).to_have_text(f"{count} of 30 examples")
        expect(shown.locator("#job option:checked")).to_have_text("first")
        shown.keyboard.press("/")
        shown.keyboard.press("ArrowDown")
        shown.keyboard.press("ArrowDown")
        shown.keyboard.press("Enter")
        index = page.data["index-0"]
        ids = [n for n, lost in zip(index["ids"], index["lost"][2], strict=True) if lost == 2]
        assert len(ids) == int(count)
        expect(shown.locator("#detail h3")).to_have_text(ids[1])
        assert not errors
        browser.close()
