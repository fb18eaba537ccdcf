"""End-to-end tests of MuLD's theses with their built-in pipelines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import HERE, leporello, read_lines
from row_files import write_rows
from tiny_models import save

TEXT = "The eldest took the mill, the second the donkey, and the youngest had nothing but the cat."
CHAPTERS = ("Introduction", "The mill", "The boots", "Conclusion")
LISTED = "\n".join(f"-    {n} {title}" for n, title in enumerate(CHAPTERS, 1))
WRITTEN = "\n\n".join(
    f"## Chapter {n} {title}\n\n{TEXT}\n\n### {n}.1 More\n\n{TEXT} {TEXT}"
    for n, title in enumerate(CHAPTERS, 1)
)
APPENDIX = f"## Appendix A Proofs\n\n{TEXT}\n"
MARKED = f"##### Contents\n\n{LISTED}\n\n###### List of Figures\n\n-    1.1 A cat\n\n{WRITTEN}"
PLAIN = f"{TEXT}\n\n{TEXT}\n\nThe cat asked for boots.\n"


# The official task without METEOR, which would take most of these tests' time.
TASK = """
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from leporello.tasks import Muld


@dataclass(frozen=True)
class Theses(Muld):
    metrics = ("rouge",)
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a file in MuLD's format: a thesis, and a text without headings."""
    folder = tmp_path_factory.mktemp("data")
    rows = [
        {"input": f"{MARKED}\n\n{APPENDIX}", "output": ["The cat wins.", "Boots are bought."]},
        {"input": PLAIN, "output": ["The cat asks."]},
    ]
    write_rows(folder / "muld/vlsp_test.json.bz2", *rows)
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a tiny T5 and a tiny LED."""
    folder = tmp_path_factory.mktemp("models")
    for name in ("t5", "led"):
        save(name, folder / name)
    return folder


def summarised(
    pipeline: str, data: Path, tmp_path: Path, settings: dict[str, object]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, Any]]:
    """Runs a pipeline by the command line, and returns predictions, calls and metrics."""
    (tmp_path / "theses.py").write_text(TASK, encoding="utf-8")
    config = tmp_path / "tasks.yaml"
    task = f'{{class: "./theses.py:Theses", name: vlsp, data: {data}}}'
    config.write_text(f"tasks:\n  muld/vlsp: {task}\n", encoding="utf-8")
    overrides = [f"--set={key}={value}" for key, value in settings.items()]
    out = tmp_path / "run"
    leporello("run", *HERE, pipeline, "--config", config, "--out", out, *overrides)
    [place] = (path.parent for path in out.rglob("metrics.json"))
    metrics = json.loads((place / "metrics.json").read_text(encoding="utf-8"))
    return read_lines(place / "predictions.jsonl"), read_lines(place / "calls.jsonl"), metrics


TINY_T5: dict[str, object] = {
    "reader.max_new_tokens": 8,
    "reader.min_new_tokens": 2,
    "reader.max_input_tokens": 96,
}
TINY_LED: dict[str, object] = {"reader.max_new_tokens": 8, "reader.max_input_tokens": 128}


# Model, settings for a model of this size, and number of chunks.
PIPELINES: dict[str, tuple[str, dict[str, object], int]] = {
    "muld-vlsp": ("t5", TINY_T5, 8),
    "muld-vlsp-hierarchical": ("t5", {**TINY_T5, "combiner.target_words": 3}, 8),
    "muld-vlsp-led": ("led", TINY_LED, 4),
}


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_pipeline_summarises_theses(
    pipeline: str, data: Path, models: Path, tmp_path: Path
) -> None:
    model, settings, starts = PIPELINES[pipeline]
    settings = {"reader.model": models / model, **settings}
    predictions, calls, metrics = summarised(pipeline, data, tmp_path, settings)
    begin = MARKED.index("## Chapter 1")
    hits = [MARKED[start:end].splitlines()[0] for start, end, _ in predictions[0]["hits"]]
    assert hits[0] == "## Chapter 1 Introduction"
    assert len(hits) == starts
    assert all(hit.startswith("##") for hit in hits)
    for first, end in predictions[0]["read"]:
        assert begin <= first
        assert end <= len(MARKED)
    coverage = predictions[0]["coverage"]
    assert (coverage["cut"], coverage["read"]) == (0, coverage["selected"])  # no text is lost
    assert predictions[1]["coverage"]["read"] > 0
    assert all(prediction["raw"].strip() for prediction in predictions)
    assert len(calls) == 2
    assert metrics
    if pipeline == "muld-vlsp":
        assert predictions[0]["raw"].count("\n") >= starts - 1
