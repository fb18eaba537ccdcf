"""Tests of exported files and of trackers, read back with the programs that they are for."""

import json
import shutil
from pathlib import Path

import ir_measures
import pyarrow.parquet as pq
import pytest
from command_line import read_lines, write_files
from ir_measures import RR, R
from row_files import reseal

from leporello.analysis.export.formats import write_parquet, write_trec
from leporello.analysis.export.trackers import track
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
from leporello import Output
from leporello.readers import Lead

class Broken(Lead):
    def read(self, inputs):
        if any("cat" in read.question for read in inputs):
            raise ValueError("cat")
        output = Output("half \\ud83d", input_tokens=7, output_tokens=2, dollars=0.5)
        return [output for _ in inputs]
"""
TEXT = (
    "The miller had three sons. The eldest took the mill with both its wheels. The second took"
    " the grey donkey and left at once. Nothing but the cat was left for the youngest of them. He"
    " had the cat and a pair of boots, and nobody else had boots."
)
QUESTIONS = {
    "q 1": ("Who took the mill?", "The eldest", "The eldest took the mill with both its wheels."),
    "q2": ("Who took the donkey?", "The second", "The second took the grey donkey"),
    "q3": ("Who had the cat?", "the youngest", "Nothing but the cat was left for the youngest"),
    "q4": ("Why?", "because", ""),
}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of three pipelines, one of which fails on a question."""
    folder = tmp_path_factory.mktemp("exported")
    rows = [
        {
            "id": name, "document_id": "a tale", "document": TEXT, "question": question,
            "references": [reference], "evidence": [proof] if proof else [],
        }
        for name, (question, reference, proof) in QUESTIONS.items()
    ]  # fmt: skip
    write_files(folder, {"mine.yaml": CONFIG, "broken.py": BROKEN, "mills.jsonl": rows})
    return run(
        ["mine", "breaks"], ["mills"], config=[folder / "mine.yaml"], out=folder / "out",
        workers=0, cached=False,
    )  # fmt: skip


def test_parquet(result: Run, tmp_path: Path) -> None:
    """A table has one row per example and pipeline; its mean scores are the run's scores."""
    [path] = write_parquet(result.directory, tmp_path)
    rows = pq.read_table(path).to_pylist()
    assert [row["id"] for row in rows] == [*QUESTIONS] * 3
    for job in result.results:
        scores = [row["score_f1"] for row in rows if row["pipeline"] == job.pipeline]
        assert sum(scores) / len(scores) == pytest.approx(job.scores["f1"], abs=1e-3)
    failed = rows[-2]
    assert (failed["id"], failed["failed"], failed["prediction"]) == ("q3", "reader", None)
    assert failed["score_f1"] == 0
    succeeded = rows[-1]
    assert succeeded["prediction"] == "half \ufffd"
    assert [succeeded[n] for n in ("input_tokens", "output_tokens", "dollars")] == [7, 2, 0.5]
    assert succeeded["document"] == len(TEXT)
    assert succeeded["score_recall"] is None  # it has no evidence


def test_trec(result: Run, tmp_path: Path) -> None:
    paths = {
        path.relative_to(tmp_path).as_posix(): path
        for path in write_trec(result.directory, tmp_path)
    }
    assert len(paths) == 6
    for k in (1, 3):
        name = f"mine@retriever.k={k}"
        hits = [*ir_measures.read_trec_run(str(paths[f"{name}/mills.run"]))]  # type: ignore[no-untyped-call]  # it has no types
        qrels = [*ir_measures.read_trec_qrels(str(paths[f"{name}/mills.qrels"]))]  # type: ignore[no-untyped-call]  # it has no types
        assert {judgement.query_id for judgement in qrels} == {"q%201", "q2", "q3"}
        scores = ir_measures.calc_aggregate([R @ k, RR], qrels, hits)
        job = next(job for job in result.results if job.pipeline == name)
        assert scores[RR] == pytest.approx(job.scores["mrr"] / 100, abs=1e-4)
        assert scores[R @ k] == pytest.approx(job.scores["recall_whole"] / 100, abs=1e-4)


def test_equal_scores_keep_their_ranks(result: Run, tmp_path: Path) -> None:
    """Hits that a program would reorder get scores that decrease with the rank."""
    directory = shutil.copytree(result.directory, tmp_path / "run")
    folder = directory / "mine@retriever.k=3/mills"
    rows = read_lines(folder / "predictions.jsonl")
    for row in rows:
        row["hits"] = [[start, end, 1.0] for start, end, _ in row["hits"]]
    write_files(folder, {"predictions.jsonl": rows})
    reseal(folder)
    write_trec(directory, tmp_path)
    run_file = tmp_path / "mine@retriever.k=3" / "mills.run"
    lines = [line.split() for line in run_file.read_text().splitlines()]
    assert [float(line[4]) for line in lines[:3]] == [3, 2, 1]


@pytest.fixture(scope="module")
def tracked_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of two points of a sweep over the first questions of the sample."""
    folder = tmp_path_factory.mktemp("tracked")
    return run(
        ["best-sentence"], ["sample"], overrides=["retriever.k=1,2"], limit=3,
        out=folder / "out", workers=0, cached=False,
    )  # fmt: skip


def test_mlflow(tracked_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="the extra mlflow is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    names = track(tracked_run.directory, "mlflow", project="novels")
    assert names == [f"best-sentence@retriever.k={k} on sample" for k in (1, 2)]
    tracked = mlflow.search_runs(experiment_names=["novels"], output_format="list")
    assert {entry.info.run_name for entry in tracked} == set(names)
    for job in tracked_run.results:
        [entry] = [item for item in tracked if item.data.tags["pipeline"] == job.pipeline]
        assert entry.data.params["retriever.k"] == job.pipeline[-1]
        assert entry.data.metrics["f1"] == job.scores["f1"]
        assert entry.data.metrics["examples"] == 3
        folder = Path(entry.info.artifact_uri.removeprefix("file://"))
        assert len((folder / "predictions.jsonl").read_text().splitlines()) == 3


def test_wandb(tracked_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In offline mode, each pipeline has a folder with its files and summary."""
    pytest.importorskip("wandb", reason="the extra wandb is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    track(tracked_run.directory, "wandb")
    folders = sorted((tmp_path / "wandb").glob("offline-run-*"))
    assert len(folders) == 2
    for folder in folders:
        metrics = json.loads((folder / "files/metrics.json").read_text())
        assert metrics["examples"] == 3
        assert any(folder.glob("*.wandb"))
