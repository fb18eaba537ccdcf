"""Tests of logging runs to trackers, read back with the trackers' libraries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leporello.analysis.export.trackers import track
from leporello.runs.run import Run, run


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of two points of a sweep over the first questions of the sample."""
    folder = tmp_path_factory.mktemp("tracked")
    return run(
        ["best-sentence"], ["sample"], overrides=["retriever.k=1,2"], limit=3,
        out=folder / "out", workers=0, cached=False,
    )  # fmt: skip


def test_mlflow(result: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pipeline is a run with its parameters, scores, tags and files."""
    mlflow = pytest.importorskip("mlflow", reason="the extra mlflow is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    names = track(result.directory, "mlflow", project="novels")
    assert names == [f"best-sentence@retriever.k={k} on sample" for k in (1, 2)]
    tracked = mlflow.search_runs(experiment_names=["novels"], output_format="list")
    assert {entry.info.run_name for entry in tracked} == set(names)
    for job in result.results:
        [entry] = [item for item in tracked if item.data.tags["pipeline"] == job.pipeline]
        assert entry.data.params["retriever.k"] == job.pipeline[-1]
        assert entry.data.metrics["f1"] == job.scores["f1"]
        assert entry.data.metrics["examples"] == 3
        folder = Path(entry.info.artifact_uri.removeprefix("file://"))
        assert len((folder / "predictions.jsonl").read_text().splitlines()) == 3


def test_wandb(result: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In offline mode, each pipeline has a folder with its files and summary."""
    pytest.importorskip("wandb", reason="the extra wandb is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    track(result.directory, "wandb")
    folders = sorted((tmp_path / "wandb").glob("offline-run-*"))
    assert len(folders) == 2
    for folder in folders:
        metrics = json.loads((folder / "files/metrics.json").read_text())
        assert metrics["examples"] == 3
        assert any(folder.glob("*.wandb"))
