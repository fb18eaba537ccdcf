"""End-to-end tests of the Shuffle Test by the command line, with tiny models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import HERE, leporello, read_lines
from row_files import write_rows
from tiny_models import STORY, save, save_classifier

SENTENCES = [f"{part.strip()}." for part in STORY.split(".")[:2] for part in part.split(",")]
ROWS: list[dict[str, Any]] = [
    {"id": "story", "sentences": SENTENCES},
    {"id": "short", "text": "One sentence only."},
    {"id": "two", "text": "The miller died. He left a mill."},
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shuffle")
    save("gpt2", folder / "gpt2")

    save_classifier("roberta", folder / "roberta", ("original", "shuffled"))
    write_rows(folder / "texts.jsonl", *ROWS)
    (folder / "own.yaml").write_text(
        """
pipelines:
  tiny:
    chunker: {class: Windows, size: 24, stride: 12, tokenizer: ./gpt2}
    reader: {class: LogLikelihood, model: ./gpt2, max_input_tokens: 24}
    combiner: {class: Mean}
  tiny-code:
    extends: tiny
    chunker: {growing: true}
    reader: {per_token: true}
    combiner: {perplexity: true, tokenizer: ./gpt2}
  tiny-supervised:
    extends: shuffle-roberta-supervised
    reader: {model: ./roberta, max_input_tokens: 64}
  too-long: {extends: tiny, chunker: {class: Whole}}
tasks:
  texts: {class: ShuffleTest, path: texts.jsonl, block_sizes: [1, 2], shuffles: 3}
""",
        encoding="utf-8",
    )
    return folder


def _results(out: Path, pipeline: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    folder = out / pipeline / "texts"
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    return metrics, read_lines(folder / "predictions.jsonl")


def test_texts_are_scored_and_compared(place: Path, tmp_path: Path) -> None:
    names = ("tiny", "tiny-code", "tiny-supervised")
    config = ("--task", "texts", "--config", place / "own.yaml", "--out", tmp_path / "run")
    result = leporello("run", *HERE, *names, *config)
    assert "accuracy[1]" in result.stdout
    ids = [f"{row['id']}/{name}" for row in ROWS for name in _names()]
    for name in names:
        metrics, rows = _results(tmp_path / "run", name)
        assert [row["id"] for row in rows] == ids
        scores = {row["id"]: float(row["prediction"]) for row in rows}
        assert metrics["failures"] == 0
        actual, expected = metrics["scores"], _expected(scores)
        assert {key: actual[key] for key in expected} == pytest.approx(expected, abs=1e-3)
        for n in (1, 2):
            assert actual[f"low[{n}]"] <= actual[f"accuracy[{n}]"] <= actual[f"high[{n}]"]
        signs = {score < 0 for score in scores.values()}
        assert signs == {name != "tiny-supervised"}  # only logarithms are negative
    before = (tmp_path / "run" / "tiny" / "texts" / "predictions.jsonl").read_bytes()
    leporello("run", *HERE, *names, *config)
    assert (tmp_path / "run" / "tiny" / "texts" / "predictions.jsonl").read_bytes() == before
    explanation = leporello("explain", tmp_path / "run", "two/1-0").stdout
    assert "He left a mill." in explanation


def _names() -> list[str]:
    return ["original", *(f"{size}-{number}" for size in (1, 2) for number in range(3))]


def _expected(scores: dict[str, float]) -> dict[str, float]:
    """Returns the expected accuracies and shares."""
    right = {
        size: [
            len(row.get("sentences", [0, 0])) > size
            and row["id"] != "short"
            and scores[f"{row['id']}/original"] - scores[f"{row['id']}/{size}-{n}"] > 1e-4
            for row in ROWS
            for n in range(3)
        ]
        for size in (1, 2)
    }
    shares = {size: 100 * sum(pairs) / len(pairs) for size, pairs in right.items()}
    # `short` is a single block for both sizes, `two` only for size 2.
    base = {"shuffle_accuracy": (shares[1] + shares[2]) / 2, "same": 50.0, "missing": 0.0}
    return base | {f"accuracy[{size}]": share for size, share in shares.items()}
