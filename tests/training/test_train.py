"""`train`: trains readers, calibrates their scores, and writes a config that uses the result."""

import json
from pathlib import Path

import pytest
from command_line import leporello, read_lines, write_files
from word_labels import CONFIG, PLUGIN, row

from leporello.api import UserError, run
from leporello.training import calibrate


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pairs = [("sun and beach", "warm"), ("ice and snow", "cold"), ("hot sun today", "warm")]
    lines = (
        row(str(n), f"{text}\nnoise noise noise", label) for n, (text, label) in enumerate(pairs)
    )
    test_lines = row("a", "the sun shines", "warm") + row("b", "deep snow lies", "cold")
    files = {"plugin.py": PLUGIN, "mine.yaml": CONFIG, "test.jsonl": test_lines}
    write_files(tmp_path, {**files, "train.jsonl": "".join(lines)})
    return tmp_path


def test_the_config_that_training_writes_uses_the_trained_reader(folder: Path) -> None:
    trained = leporello("train", "mine", "--task", "rows", "--config", "mine.yaml", folder=folder)
    summary, use = trained.stdout.strip().splitlines()
    assert summary == "trained on 3 inputs of 3 examples; to use it:"
    program, command = use.split(" run ")
    assert program.endswith(("leporello", ".py"))
    assert command.startswith("mine-trained --task rows --config mine.yaml --config ")
    leporello("run", *command.split(), "--split", "test", "--out", "run", folder=folder)
    rows = read_lines(folder / "run/mine-trained/rows/predictions.jsonl")
    assert [r["prediction"] for r in rows] == ["warm", "cold"]
    resolved = (folder / "run/run.yaml").read_text()
    assert "case: false" in resolved


def test_the_train_split_is_the_default(folder: Path) -> None:
    """Even if the task declares its test split, so that test data are not trained on."""
    record = folder / "models/mine+rows/training.json"
    leporello("train", "mine", "--task", "rows", "--config", "mine.yaml", folder=folder)
    assert json.loads(record.read_text())["signature"]["task"]["split"] == "train"
    more = ["--split", "test", "--update", "--config", "mine.yaml"]
    leporello("train", "mine", "--task", "rows", *more, folder=folder)
    row = json.loads(record.read_text())
    assert (row["signature"]["task"]["split"], row["train"]["inputs"]) == ("test", 2)


def test_reads_without_a_target_are_not_trained_on(folder: Path) -> None:
    sets = ["--set", "combiner.shown=2", "--config", "mine.yaml", "--out", "two"]
    leporello("train", "mine", "--task", "rows", *sets, folder=folder)
    assert json.loads((folder / "two/training.json").read_text())["train"]["inputs"] == 6
    words = json.loads((folder / "two/model/words.json").read_text())
    assert words["warm"]["noise"] == 6


def test_failures_and_examples_without_references_are_counted_and_skipped(folder: Path) -> None:
    with (folder / "train.jsonl").open("a") as file:
        file.write(row("odd", "some words", "warm") + row("open", "some words"))
    trained = leporello("train", "mine", "--task", "rows", "--config", "mine.yaml", folder=folder)
    assert "3 inputs of 5 examples (2 skipped" in trained.stdout
    counts = json.loads((folder / "models/mine+rows/training.json").read_text())["train"]
    assert (counts["failed"], counts["without references"]) == (1, 1)


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("plain", "its reader Lead has neither a method `learn` nor a model"),
        ("joined", "its combiner Refine has no method `supervise`"),
        ("short", "supervise must return a text, a tuple of texts or None for each of 2 reads"),
        ("broken", "Broken.learn failed: "),
        ("*", "train takes one pipeline"),
    ],
)
def test_untrainable_pipelines_are_reported(folder: Path, pipeline: str, message: str) -> None:
    arguments = ["train", pipeline, "--task", "rows", "--config", "mine.yaml", "--out", "models/x"]
    result = leporello(*arguments, status=2, folder=folder)
    assert message in result.stderr
    assert not (folder / "models").exists() or not list((folder / "models").iterdir())


CALIBRATED = """
tasks:
  rows: {class: JsonLines, path: rows.jsonl, metrics: [exact_match]}
pipelines:
  mine: {reader: {class: BestSentence}, tasks: [rows], placement: {workers: 0}}
  first: {extends: mine, reader: {class: Lead, words: 3}}
"""


@pytest.fixture(name="config")
def _config(tmp_path: Path) -> Path:
    """Returns a config whose task has half easy, half hard questions; some have wrong answers."""
    rows = [
        {
            "id": str(n),
            "document": f"The miller {n} slept. The red cat {n} sat on the mat.",
            "question": ["Where did the red cat sit?", "The cat?"][n % 2],
            "references": [f"The red cat {n} sat on the mat." if n % 8 else "Nowhere"],
        }
        for n in range(40)
    ]
    write_files(tmp_path, {"rows.jsonl": rows, "mine.yaml": CALIBRATED})
    return tmp_path / "mine.yaml"


def test_probabilities_are_fitted_to_scores_and_used(config: Path) -> None:
    out = config.parent / "fitted"
    fitted = calibrate("mine", config=[config], out=out)
    assert (fitted.answers, fitted.documents) == (40, 40)
    assert fitted.after < fitted.before
    overrides = [f"reader.calibration={fitted.file}"]
    calibrated = run(["mine"], config=[config], overrides=overrides, out=config.parent / "run")
    assert calibrated.results[0].confidence["ece"] < 0.05


@pytest.mark.parametrize(
    ("pipeline", "limit", "message"),
    [
        ("first", None, "Lead has no parameter 'calibration'"),
        ("mine", 5, "5 answers .* at least 20"),
    ],
)
def test_a_pipeline_that_cannot_be_calibrated_is_reported(
    config: Path, pipeline: str, limit: int | None, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        calibrate(pipeline, config=[config], limit=limit, out=config.parent / "fitted")
