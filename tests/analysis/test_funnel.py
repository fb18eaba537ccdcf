"""Where answers are lost: what counts as a proof, what each stage kept of it, how it is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from leporello import Document, Example, Span
from leporello.analysis.datasets.analyze import analyze_run
from leporello.analysis.funnel.collect import trace_examples
from leporello.analysis.funnel.counts import funnels
from leporello.analysis.funnel.example_trace import ChunkCover, gold_of
from leporello.api import UserError, explain, run
from leporello.cli import application

PLUG_IN = """
from collections import Counter
from dataclasses import dataclass
from leporello import Output, Read

@dataclass(frozen=True)
class Near:
    '''Answers by the question's first word, and sees the first ten characters of a passage.'''

    def read(self, inputs):
        if any("explode" in read.question for read in inputs):
            raise RuntimeError("exploded")
        return [self.said(read) for read in inputs]

    def said(self, read):
        chunk = read.passages[0]
        seen = chunk.document.chunk(chunk.start, min(chunk.end, chunk.start + 10)).span
        return Output(read.question.split()[0], read=(seen,), cut=chunk.end - seen.end)

    def count(self, texts):
        return [0 for _ in texts]

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
        from leporello import Span
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
    {"id": "failed", "question": "explode", "references": ["fox"], "evidence": ["red fox"]},
    {"id": "found", "question": "high owl", "references": ["The Green, owl"]},
    {"id": "nothing", "question": "owl", "references": ["zebra"]},
]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two pipelines over one document; its chunker logs each time that it divides."""
    folder = tmp_path_factory.mktemp("funnel")
    rows = [{**row, "document_id": "d"} for row in ROWS]
    rows[0]["document"] = TEXT
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "plug.py").write_text(PLUG_IN)
    (folder / "mine.yaml").write_text(CONFIG.replace("LOG", str(folder / "log")))
    run(["two", "first"], config=[folder / "mine.yaml"], out=folder / "out", workers=0)
    return folder / "out"


def _example(text: str, **known: Any) -> Example:
    return Example("e", Document("d", text), **known)


def test_each_example_is_lost_at_the_first_stage_that_kept_less(done: Path) -> None:
    """A failure, the chunker, the retriever, the combiner, the reader, the answer; or nowhere."""
    found = {fate.id: fate for fate in trace_examples(done) if fate.pipeline == "two"}
    assert {name: fate.lost_at for name, fate in found.items()} == {
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
    over = found["over"]
    assert (over.retrieved, over.answered) == (1, True)
    assert over.given == pytest.approx(3 / 7)
    assert found["second"].gains == ((2, 1.0),)
    assert found["failed"].failed == "reader"
    assert [found[n].gold for n in ("right", "found", "nothing")] == ["evidence", "reference", ""]
    assert found["found"].position == TEXT.index("green") / len(TEXT)
    assert {fate.length for fate in found.values()} == {len(TEXT)}


def test_the_story_of_an_example_says_the_same(done: Path) -> None:
    """`explain` has one way to tell where an answer was lost."""
    for fate in trace_examples(done):
        if fate.id in ("over", "second", "failed", "found"):
            [told] = [s.fate for s in explain(done, fate.id) if s.pipeline == fate.pipeline]
            assert (told.lost_at, told.gains) == (fate.lost_at, fate.gains)


def test_the_funnel_counts_them(done: Path) -> None:
    """Shares of the examples with a proof, failed ones among them, and the first lost at each."""
    two, first = funnels(done)
    assert (two.pipeline, first.pipeline) == ("two", "first")
    assert (two.examples, two.evidence, two.located, two.proved) == (9, 7, 1, 8)
    told = {step.stage: (step.of, step.kept, step.lost, step.answered) for step in two.steps}
    assert told == {
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
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or not at all, where the cache has what it made, as in the second of these."""
    log = done.parent / "log"
    log.write_text("")
    monkeypatch.setenv("LEPORELLO_CACHE", str(tmp_path))
    for _ in range(2):
        assert len(list(trace_examples(done))) == 18
    assert log.read_text().split() == ["d"]


def test_sentences_of_evidence_that_follow_each_other_stay_apart() -> None:
    """Each in a chunk of its own, none is cut; where they overlap they are one."""
    text = "One is here. Two is there."
    halves = (Span(0, 13), Span(13, len(text)))
    gold = gold_of(_example(text, evidence=halves))
    assert gold is not None
    assert all(map(ChunkCover.of(halves).holds, gold.alternatives[0]))
    assert gold_of(_example(text, evidence=(*halves, Span(8, 20)))).alternatives == (  # type: ignore[union-attr]  # there is evidence
        (Span(0, len(text)),),
    )


def test_a_reference_counts_where_it_says_something() -> None:
    """Not a short one, an option, or what stands everywhere; any of its places is a proof."""
    text = "No. The grey goose came, and a grey Goose left. " + "It rained. " * 21
    gold = gold_of(_example(text, references=("the grey goose", "no", "it rained")))
    assert gold is not None
    assert [text[way[0].start : way[0].end] for way in gold.alternatives] == [
        "grey goose",
        "grey Goose",
    ]
    assert gold.kept(text, [gold.alternatives[1][0]]) == 1
    assert gold_of(_example(text, references=("came",), choices=("came", "left"))) is None
    assert gold_of(_example(text, references=("came",))) is not None


def _told(*words: str | Path) -> str:
    """Returns what the command line prints, or the user's mistake."""
    done = CliRunner().invoke(application(), [*map(str, words)], env={"COLUMNS": "200"})
    assert done.exception is None or isinstance(done.exception, UserError)
    return str(done.exception or done.stdout)


def test_explain_without_an_example_tells_the_funnel(done: Path) -> None:
    """A table a pipeline, the ids that were lost, and the same as JSON."""
    told = " ".join(_told("explain", done).split())
    assert "two on rows 9 examples: 7 with gold evidence, 1 without, with a reference" in told
    assert "not completely read: cut" in told
    assert "@1 55.4 @2 75.0" in told
    assert "█" in told
    rows = json.loads(_told("explain", done, "--json"))
    assert [row["pipeline"] for row in rows] == ["two", "first"]
    assert rows[0]["steps"][1]["share"] == 75
    assert "for one example" in _told("explain", done, "--stage", "reader")


def test_explain_shows_one_stage(done: Path) -> None:
    """Of a failed example too, as far as anything is kept; a stage misspelt is told."""
    chunker = _told("explain", done, "over", "--stage", "chunker")
    assert "cut over chunks 1, 3" in chunker or "cut over chunks 1, 2" in chunker
    assert "hit 1" not in chunker
    assert "lost at the chunker" in chunker
    assert "hit 1" in _told("explain", done, "right", "--stage", "retriever")
    failed = _told("explain", done, "failed")
    assert "exploded" in failed
    assert "whole in chunk 1" in failed
    reader = _told("explain", done, "failed", "--stage", "reader")
    assert "no output of the reader is stored" in reader
    wrong = _told("explain", done, "right", "--stage", "raeder")
    assert "did you mean 'reader'" in wrong


def test_data_that_changed_are_told(done: Path) -> None:
    """An example that is gone, or a document of the same id with another text."""
    path = done.parent / "rows.jsonl"
    before = path.read_text()
    for changed in (before.replace('"missed"', '"gone"'), before.replace("red fox", "rad fox")):
        path.write_text(changed)
        with pytest.raises(UserError, match="put the data back"):
            funnels(done)
        if "gone" in changed:
            with pytest.raises(UserError, match="no example 'missed' in its place; put the data"):
                analyze_run(done)
        path.write_text(before)
    with pytest.raises(UserError, match="no run lies there"):
        funnels(done.parent)
