"""What other programs read of a run, read by those programs."""

from __future__ import annotations

import json
from pathlib import Path

import ir_measures
import pyarrow.parquet as pq
import pytest
from command_line import leporello, read_lines
from ir_measures import RR, R
from results import reseal

from leporello.analysis.export.formats import write_parquet, write_trec
from leporello.core.errors import UserError
from leporello.runs.run import Run, run

CONFIG = """
pipelines:
  mine:
    chunker: {class: Sentences, size: 12}
    retriever: {class: BM25, k: [1, 3]}
    reader: {class: BestSentence}
  breaks:
    reader: {class: "./broken.py:Broken"}
tasks:
  mills: {class: JsonLines, path: mills.jsonl, metrics: [f1, recall]}
"""
BROKEN = """
from dataclasses import dataclass
from leporello import Output

@dataclass(frozen=True)
class Broken:
    def read(self, inputs):
        if any("cat" in read.question for read in inputs):
            raise ValueError("cat")
        said = Output("half \\ud83d", input_tokens=7, output_tokens=2, dollars=0.5)
        return [said for _ in inputs]

    def count(self, texts):
        return [0 for _ in texts]
"""
TEXT = (
    "The miller had three sons. The eldest took the mill with both its wheels. The second took"
    " the grey donkey and left at once. Nothing but the cat was left for the youngest of them. He"
    " had the cat and a pair of boots, and nobody else had boots."
)
ASKED = {
    "q 1": ("Who took the mill?", "The eldest", "The eldest took the mill with both its wheels."),
    "q2": ("Who took the donkey?", "The second", "The second took the grey donkey"),
    "q3": ("Who had the cat?", "the youngest", "Nothing but the cat was left for the youngest"),
    "q4": ("Why?", "because", ""),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of three pipelines, one of which fails at a question."""
    folder = tmp_path_factory.mktemp("exported")
    (folder / "mine.yaml").write_text(CONFIG)
    (folder / "broken.py").write_text(BROKEN)
    rows = [
        {
            "id": name, "document_id": "a tale", "document": TEXT, "question": question,
            "references": [reference], "evidence": [proof] if proof else [],
        }
        for name, (question, reference, proof) in ASKED.items()
    ]  # fmt: skip
    (folder / "mills.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run(
        ["mine", "breaks"], ["mills"], config=[folder / "mine.yaml"], out=folder / "out",
        workers=0, cached=False,
    )  # fmt: skip


def test_parquet(made: Run, tmp_path: Path) -> None:
    """A table has a row for each example of each pipeline, and its scores average to the run's."""
    [path] = write_parquet(made.directory, tmp_path)
    rows = pq.read_table(path).to_pylist()
    assert [row["id"] for row in rows] == [*ASKED] * 3
    for result in made.results:
        own = [row["score_f1"] for row in rows if row["pipeline"] == result.pipeline]
        assert sum(own) / len(own) == pytest.approx(result.scores["f1"], abs=1e-3)
    failed = rows[-2]
    assert (failed["id"], failed["failed"], failed["prediction"]) == ("q3", "reader", None)
    assert failed["score_f1"] == 0
    fine = rows[-1]
    assert fine["prediction"] == "half \ufffd"
    assert (fine["input_tokens"], fine["output_tokens"], fine["dollars"]) == (7, 2, 0.5)
    assert fine["document"] == len(TEXT)
    assert fine["score_recall"] is None  # it has no evidence


def test_trec(made: Run, tmp_path: Path) -> None:
    """What ir_measures reads of the files is what the run found, by its own reckoning too."""
    written = {
        path.relative_to(tmp_path).as_posix(): path for path in write_trec(made.directory, tmp_path)
    }
    assert len(written) == 6
    for k in (1, 3):
        name = f"mine@retriever.k={k}"
        ranked = [*ir_measures.read_trec_run(str(written[f"{name}/mills.run"]))]  # type: ignore[no-untyped-call]  # it has no types
        judged = [*ir_measures.read_trec_qrels(str(written[f"{name}/mills.qrels"]))]  # type: ignore[no-untyped-call]  # likewise
        assert {one.query_id for one in judged} == {"q%201", "q2", "q3"}
        found = ir_measures.calc_aggregate([R @ k, RR], judged, ranked)
        result = next(r for r in made.results if r.pipeline == name)
        assert found[RR] == pytest.approx(result.scores["mrr"] / 100, abs=1e-4)
        assert found[R @ k] == pytest.approx(result.scores["recall_whole"] / 100, abs=1e-4)


def test_equal_scores_keep_their_ranks(made: Run, tmp_path: Path) -> None:
    """Hits that a program would sort otherwise are given scores that fall with the rank."""
    folder = made.directory / "mine@retriever.k=3/mills"
    rows = read_lines(folder / "predictions.jsonl")
    kept = (folder / "predictions.jsonl").read_bytes()
    for row in rows:
        row["hits"] = [[start, end, 1.0] for start, end, _ in row["hits"]]
    (folder / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    reseal(folder)
    try:
        written = {
            path.name + path.parent.name: path for path in write_trec(made.directory, tmp_path)
        }
    finally:
        (folder / "predictions.jsonl").write_bytes(kept)
        reseal(folder)
    lines = [
        line.split() for line in written["mills.runmine@retriever.k=3"].read_text().splitlines()
    ]
    assert [float(line[4]) for line in lines[:3]] == [3, 2, 1]


def test_on_the_command_line(made: Run, tmp_path: Path) -> None:
    """The verb prints what it wrote; a directory without a run is told."""
    told = leporello("export", made.directory, "--format", "trec", "--out", tmp_path / "o").stdout
    assert (tmp_path / "o/breaks/mills.run") in map(Path, told.split())
    assert "is not a run" in leporello("export", tmp_path, "--format", "trec", status=2).stderr
    for write in (write_parquet, write_trec):
        with pytest.raises(UserError, match="is not a run"):
            write(tmp_path, tmp_path)
