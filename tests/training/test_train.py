"""`train`: a reader learns from what its own pipeline feeds it, and a config uses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import leporello, read_lines
from word_labels import CONFIG, PLUGIN, row


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder with a config, a plug-in, and a train and a test split."""
    (tmp_path / "plugin.py").write_text(PLUGIN)
    (tmp_path / "mine.yaml").write_text(CONFIG)
    learnt = [("sun and beach", "warm"), ("ice and snow", "cold"), ("hot sun today", "warm")]
    rows = [
        row(str(n), f"{text}\nnoise noise noise", label) for n, (text, label) in enumerate(learnt)
    ]
    (tmp_path / "train.jsonl").write_text("".join(rows))
    tested = [row("a", "the sun shines", "warm"), row("b", "deep snow lies", "cold")]
    (tmp_path / "test.jsonl").write_text("".join(tested))
    return tmp_path


def test_a_trained_reader_is_used_by_the_config_that_training_leaves(folder: Path) -> None:
    """The command that `train` tells runs as it stands, and answers what was learnt."""
    done = leporello("train", "mine", "--task", "rows", "--config", "mine.yaml", folder=folder)
    told, use = done.stdout.strip().splitlines()
    assert told == "trained on 3 inputs of 3 examples; to use it:"
    assert use.startswith("run mine-trained --task rows --config mine.yaml --config ")
    leporello(*use.split(), "--split", "test", "--out", "run", folder=folder)
    rows = read_lines(folder / "run/mine-trained/rows/predictions.jsonl")
    assert [r["prediction"] for r in rows] == ["warm", "cold"]
    resolved = (folder / "run/run.yaml").read_text()
    assert "case: false" in resolved


def test_the_train_split_is_learnt_from_unless_another_is_named(folder: Path) -> None:
    """What is tested is not learnt: the default split is `train`, whatever the task declares."""
    record = folder / "models/mine+rows/training.json"
    leporello("train", "mine", "--task", "rows", "--config", "mine.yaml", folder=folder)
    assert json.loads(record.read_text())["signature"]["task"]["split"] == "train"
    more = ["--split", "test", "--update", "--config", "mine.yaml"]
    leporello("train", "mine", "--task", "rows", *more, folder=folder)
    made = json.loads(record.read_text())
    assert (made["signature"]["task"]["split"], made["train"]["inputs"]) == ("test", 2)


def test_reads_that_are_to_be_left_out_are_not_learnt_from(folder: Path) -> None:
    """Where `supervise` says None, the reader never sees the read."""
    sets = ["--set", "combiner.shown=2", "--config", "mine.yaml", "--out", "two"]
    leporello("train", "mine", "--task", "rows", *sets, folder=folder)
    assert json.loads((folder / "two/training.json").read_text())["train"]["inputs"] == 6
    words = json.loads((folder / "two/model/words.json").read_text())
    assert words["warm"]["noise"] == 6


def test_what_failed_or_has_no_references_is_counted_and_skipped(folder: Path) -> None:
    """One bad example does not stop a training; it is told of."""
    with (folder / "train.jsonl").open("a") as file:
        file.write(row("odd", "some words", "warm") + row("open", "some words"))
    done = leporello("train", "mine", "--task", "rows", "--config", "mine.yaml", folder=folder)
    assert "3 inputs of 5 examples (2 skipped" in done.stdout
    made = json.loads((folder / "models/mine+rows/training.json").read_text())["train"]
    assert (made["failed"], made["without references"]) == (1, 1)


@pytest.mark.parametrize(
    ("pipeline", "told"),
    [
        ("plain", "its reader Lead has no method `learn`"),
        ("joined", "its combiner Refine has no method `supervise`"),
        ("short", "supervise must return a text, a tuple of texts or None for each of 2 reads"),
        ("broken", "Broken.learn failed: "),
        ("*", "train takes one pipeline"),
    ],
)
def test_what_cannot_be_trained_says_why_and_leaves_nothing(
    folder: Path, pipeline: str, told: str
) -> None:
    """A mistake ends with status 2, without a traceback, and without half a model."""
    arguments = ["train", pipeline, "--task", "rows", "--config", "mine.yaml", "--out", "models/x"]
    done = leporello(*arguments, status=2, folder=folder)
    assert told in done.stderr
    assert not (folder / "models").exists() or not list((folder / "models").iterdir())


def test_another_model_is_another_run(folder: Path) -> None:
    """A run goes on with the model that it was begun with, or refuses."""
    arguments = ["train", "mine", "--task", "rows", "--config", "mine.yaml", "--out", "m"]
    leporello(*arguments, folder=folder)
    use = ["run", "mine-trained", "--task", "rows", "--config", "m/pipeline.yaml"]
    use += ["--config", "mine.yaml", "--split", "test", "--out", "run"]
    leporello(*use, folder=folder)
    with (folder / "train.jsonl").open("a") as file:
        file.write(row("3", "snow and sleet", "cold"))
    leporello(*arguments, "--update", folder=folder)
    refused = leporello(*use, status=2, folder=folder)
    assert "model" in refused.stderr
