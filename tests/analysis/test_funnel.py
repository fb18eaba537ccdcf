"""Tests of the funnel: proofs of answers, the stages that lose them, and the printed tables."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import leporello, write_files

from leporello import Document, Example, Span
from leporello.analysis.datasets import analyze_run
from leporello.analysis.example_trace import containment, gold_of
from leporello.analysis.funnel import funnels, trace_examples
from leporello.api import UserError, explain, run

PLUG_IN = """
from dataclasses import dataclass
from leporello import Output, Read, Span
from leporello.readers import Lead

class Near(Lead):
    '''Answers with the question's first word; sees the first ten characters of a passage.'''

    def read(self, inputs):
        if any("explode" in read.question for read in inputs):
            raise RuntimeError("exploded")
        return [self.answer(read) for read in inputs]

    def answer(self, read):
        chunk = read.passages[0]
        seen = chunk.document.chunk(chunk.start, min(chunk.end, chunk.start + 10)).span
        return Output(read.question.split()[0], read=(seen,), cut=chunk.end - seen.end)

@dataclass(frozen=True)
class Best:
    def combine(self, example, hits):
        [output] = yield [Read((hits[0].chunk,), example.question)]
        return output.text

@dataclass(frozen=True)
class Lines:
    log: str

    def chunk(self, document):
        with open(self.log, "a") as log:
            print(document.id, file=log)
        start = 0
        for line in document.text.splitlines(keepends=True):
            yield Span(start, start + len(line.rstrip()))
            start += len(line)
"""
CONFIG = """
tasks:
  rows: {class: JsonLines, path: rows.jsonl, metrics: [recall, f1]}
pipelines:
  two:
    tasks: [rows]
    chunker: {class: "./plug.py:Lines", log: LOG}
    retriever: {class: BM25, k: 2}
    reader: {class: "./plug.py:Near"}
    combiner: {class: "./plug.py:Best"}
  first: {extends: two, retriever: {class: First, k: 1}}
"""
TEXT = "red fox far\n\nblue hen near the old brown barn\n\ngreen owl high"
ROWS: list[dict[str, Any]] = [
    {"id": "right", "question": "fox", "references": ["fox"], "evidence": ["red fox"]},
    {"id": "wrong", "question": "blue", "references": ["hen"], "evidence": ["blue hen"]},
    {"id": "cut", "question": "barn", "references": ["barn"], "evidence": ["brown barn"]},
    {"id": "over", "question": "fox blue", "references": ["fox"], "evidence": ["far\n\nblue"]},
    {"id": "missed", "question": "fox", "references": ["fox"], "evidence": ["owl"]},
    {"id": "second", "question": "blue hen owl", "references": ["x"], "evidence": ["green owl"]},
    {"id": "failed", "question": "explode fox", "references": ["fox"], "evidence": ["red fox"]},
    {"id": "found", "question": "high owl", "references": ["The Green, owl"]},
    {"id": "nothing", "question": "owl", "references": ["zebra"]},
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two pipelines on one document, whose chunker logs each call."""
    folder = tmp_path_factory.mktemp("funnel")
    rows = [{**row, "document_id": "d"} for row in ROWS]
    rows[0]["document"] = TEXT
    config = CONFIG.replace("LOG", str(folder / "log"))
    write_files(folder, {"rows.jsonl": rows, "plug.py": PLUG_IN, "mine.yaml": config})
    run(["two", "first"], config=[folder / "mine.yaml"], out=folder / "out", workers=0)
    return folder / "out"


def _example(text: str, **fields: Any) -> Example:
    return Example("e", Document("d", text), **fields)


def test_each_example_is_lost_at_the_first_incomplete_stage(directory: Path) -> None:
    traces = {trace.id: trace for trace in trace_examples(directory) if trace.pipeline == "two"}
    assert {name: trace.lost_at for name, trace in traces.items()} == {
        "right": "",
        "wrong": "answer",
        "cut": "reader",
        "over": "chunker",
        "missed": "retriever",
        "second": "combiner",
        "failed": "failed",
        "found": "answer",
        "nothing": "",
    }
    over = traces["over"]
    assert (over.retrieved, over.answered) == (1, True)
    assert over.given == pytest.approx(3 / 7)
    assert traces["second"].gains == ((2, 1.0),)
    assert traces["failed"].failed == "reader"
    assert [traces[n].gold for n in ("right", "found", "nothing")] == ["evidence", "reference", ""]
    assert traces["found"].position == TEXT.index("green") / len(TEXT)
    assert {trace.length for trace in traces.values()} == {len(TEXT)}


def test_a_read_can_join_evidence_of_two_chunks(directory: Path, tmp_path: Path) -> None:
    """Only a combiner that reads the chunks apart loses what the chunker divided."""
    both = {"pipelines": {"both": {"extends": "two", "combiner": "Stuff"}}}
    run(["both"], config=[directory.parent / "mine.yaml", both], out=tmp_path / "out", workers=0)
    [over] = [trace for trace in trace_examples(tmp_path / "out") if trace.id == "over"]
    assert (over.whole, over.given, over.lost_at) == (True, 1, "reader")


def test_an_explanation_has_the_same_trace(directory: Path) -> None:
    for fate in trace_examples(directory):
        if fate.id in ("over", "second", "failed", "found"):
            fates = {s.pipeline: s.fate for s in explain(directory, fate.id)}
            explained = fates[fate.pipeline]
            assert (explained.lost_at, explained.gains) == (fate.lost_at, fate.gains)


def test_the_funnel_counts_traces(directory: Path) -> None:
    two, first = funnels(directory)
    assert (two.pipeline, first.pipeline) == ("two", "first")
    assert (two.examples, two.evidence, two.located, two.proved) == (9, 7, 1, 8)
    counts = {step.stage: (step.of, step.kept, step.lost, step.answered) for step in two.steps}
    assert counts == {
        "failed": (8, 7, 1, 0),
        "chunker": (8, 6, 1, 1),
        "retriever": (8, 6, 1, 1),
        "combiner": (8, 4, 1, 0),
        "reader": (8, 3, 1, 1),
        "answer": (8, 4, 2, 0),
    }
    assert [step.ids for step in two.steps[:2]] == [("failed",), ("over",)]
    assert two.steps[1].share == 75
    assert list(two.recall) == pytest.approx([100 * (4 + 3 / 7) / 8, 75], abs=1e-3)


def test_a_chunker_divides_a_document_once_for_all_pipelines(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With cached chunks, as in the second iteration, it does not run at all."""
    log = directory.parent / "log"
    log.write_text("")
    monkeypatch.setenv("LEPORELLO_CACHE", str(tmp_path))
    for _ in range(2):
        assert len(list(trace_examples(directory))) == 18
    assert log.read_text().split() == ["d"]


def test_sentences_of_evidence_that_follow_each_other_stay_apart() -> None:
    """Adjacent spans in separate chunks are not cut; overlapping spans are merged."""
    text = "One is here. Two is there."
    halves = (Span(0, 13), Span(13, len(text)))
    gold = gold_of(_example(text, evidence=halves))
    assert gold is not None
    assert all(map(containment(halves), gold.alternatives[0]))
    assert gold_of(_example(text, evidence=(*halves, Span(8, 20)))).alternatives == (  # type: ignore[union-attr]  # there is evidence
        (Span(0, len(text)),),
    )


def test_a_reference_counts_if_it_is_specific() -> None:
    """Short, frequent and multiple-choice references do not count; every place is a proof."""
    text = "No. The grey goose came, and a grey Goose left. " + "It rained. " * 21
    gold = gold_of(_example(text, references=("the grey goose", "no", "it rained")))
    assert gold is not None
    proofs = [text[alternative[0].start : alternative[0].end] for alternative in gold.alternatives]
    assert proofs == ["grey goose", "grey Goose"]
    assert gold.covered_share(text, [gold.alternatives[1][0]]) == 1
    assert gold_of(_example(text, references=("came",), choices=("came", "left"))) is None
    assert gold_of(_example(text, references=("came",))) is not None


def _explained(*words: str | Path, status: int = 0) -> str:
    process = leporello("explain", *words, status=status)
    return process.stderr if status else process.stdout


def test_explain_without_an_example_prints_the_funnel(directory: Path) -> None:
    output = " ".join(_explained(directory).split())
    assert "two on rows 9 examples: 7 with gold evidence, 1 without, with a reference" in output
    assert "not completely read: cut" in output
    read = funnels(directory)[0].steps[4].mean
    assert f"recall read {read:.1f} recall of hits @1 55.4 @2 75.0" in output
    assert 0 < read < 55.4
    assert "█" in output
    rows = json.loads(_explained(directory, "--json"))
    assert [row["pipeline"] for row in rows] == ["two", "first"]
    assert rows[0]["steps"][1]["share"] == 75


def test_explain_shows_an_example(directory: Path) -> None:
    over = _explained(directory, "over")
    assert "cut over chunks 1, 3" in over or "cut over chunks 1, 2" in over
    assert "lost at the chunker" in over
    right = _explained(directory, "right")
    assert "red fox" in right
    assert "hit 1" in right
    assert "kept through every stage" in right
    assert "no example 'rigt'; did you mean 'right'" in _explained(directory, "rigt", status=2)
    failed = _explained(directory, "failed")
    assert "exploded" in failed
    assert "whole in chunk 1" in failed


def test_changed_data_are_reported(directory: Path) -> None:
    path = directory.parent / "rows.jsonl"
    before = path.read_text()
    for changed in (before.replace('"missed"', '"gone"'), before.replace("red fox", "rad fox")):
        path.write_text(changed)
        with pytest.raises(UserError, match="restore the data"):
            funnels(directory)
        if "gone" in changed:
            with pytest.raises(UserError, match="'missed' is missing or out of order; restore"):
                analyze_run(directory)
        path.write_text(before)
