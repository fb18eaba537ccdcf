"""Training by several processes of a launcher; losses and curves are those of one process."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT
from lookup_task import CONFIG, FEW, reader_of, save_models, trained, tuned, write_rows

from leporello.core.errors import UserError
from leporello.core.training import Training
from leporello.readers.training.hardware import check


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with tiny models without dropout, few documents and a config."""
    folder = tmp_path_factory.mktemp("models")
    write_rows(folder, {"train": 20, "validation": 4, "test": 4})
    save_models(folder)
    for kind in ("bert", "span"):
        file = folder / kind / "config.json"
        dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        file.write_text(json.dumps({**json.loads(file.read_text()), **dropout}))
    (folder / "mine.yaml").write_text(CONFIG)
    return folder


@pytest.fixture
def place(models: Path, tmp_path: Path) -> Path:
    """Returns a copy of the folder, which a test may change."""
    return shutil.copytree(models, tmp_path / "place")


def record_of(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / "training.json").read_text())
    return record


@pytest.mark.parametrize("kind", ["t5", "llama", "bert", "span"])
def test_a_loss_does_not_depend_on_how_a_batch_is_split(
    models: Path, tmp_path: Path, kind: str
) -> None:
    once = Training(epochs=2, learning_rate=0.003, batch_size=40)
    split = replace(once, accumulate=4)
    curves = [
        tuned(reader_of(kind, models), tmp_path / name, settings).curve
        for name, settings in (("once", once), ("split", split))
    ]
    for row, split_row in zip(*curves, strict=True):
        assert row == pytest.approx(split_row, abs=1e-4)
    assert [row["step"] for row in curves[0] if "loss" in row] == [1, 2]


@pytest.mark.parametrize("kind", ["t5", "bert", "llama"])
def test_bfloat16_learns_as_float32_does(models: Path, tmp_path: Path, kind: str) -> None:
    from safetensors.torch import load_file

    settings = replace(FEW, epochs=1, lora_rank=2 if kind == "llama" else 0)
    curves = []
    for precision in ("float32", "bfloat16"):
        result = tuned(reader_of(kind, models), tmp_path / precision,
                       replace(settings, precision=precision))  # fmt: skip
        curves.append([row["loss"] for row in result.curve if "loss" in row])
    assert curves[0] == pytest.approx(curves[1], rel=0.05)
    assert curves[0] != pytest.approx(curves[1], rel=1e-6)
    result.candidates[0].save(tmp_path / "model")
    weights = load_file(tmp_path / "model/model.safetensors").values()
    assert {str(tensor.dtype) for tensor in weights} == {"torch.float32"}


@pytest.mark.parametrize(
    ("variables", "settings", "message"),
    [
        ({"WORLD_SIZE": "2"}, Training(batch_size=9, accumulate=3), "set it to a multiple of 2"),
        ({"ACCELERATE_MIXED_PRECISION": "bf16"}, Training(), "train.precision is float32"),
    ],
)
def test_a_conflict_with_the_launcher_is_reported(
    models: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    settings: Training,
    message: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=message):
        check(reader_of("t5", models), settings)


def test_a_device_that_would_not_be_taken_is_refused(models: Path) -> None:
    """The Trainer would train on another device without a warning."""
    with pytest.raises(UserError, match="device"):
        check(replace(reader_of("t5", models), device="cuda:7"), Training())


def points(folder: Path) -> Counter[tuple[str, int, float]]:
    """Returns how often TensorBoard would show each tag, step and value."""
    from tensorboard.backend.event_processing import event_accumulator  # type: ignore[import-untyped]  # tensorboard leaves it so

    events = event_accumulator.EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    return Counter(
        (tag, event.step, round(event.value, 3))
        for tag in events.Tags()["scalars"]
        for event in events.Scalars(tag)
        if tag != "train/epoch"  # logged with each loss
    )


def test_scores_of_checkpoints_are_curves(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from leporello.readers.training import trainer as training
    from leporello.training.training_run import TrainingRun

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    sets = ["train.learning_rate=0.001,0.01", "train.best_by=metric", "train.epochs=2"]
    for owner, name in ((training, "_curve"), (TrainingRun, "_finish")):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, stop)
            with pytest.raises(KeyboardInterrupt):
                trained(place, "t5", place / "model", *sets)
    trained(place, "t5", place / "model", *sets)
    for rate, rows in record_of(place / "model")["curves"].items():
        shown = points(place / "model/curves" / f"rate-{rate}")
        scored = {
            ("eval/exact_match", row["step"], round(row["validation_score"], 3))
            for row in rows
            if "validation_score" in row
        }
        assert {point for point in shown if point[0] == "eval/exact_match"} == scored
        assert len(scored) == 2
        assert set(shown.values()) == {1}
        assert {("eval/loss", 2), ("train/loss", 1)} <= {(tag, step) for tag, step, _ in shown}


LAUNCHER = ("-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2")
PLAIN = (
    "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no",
    "--main_process_port", "0",
)  # fmt: skip
SETS = ("batch_size=8", "accumulate=2", "epochs=4", "evaluate_steps=2", "learning_rate=0.003")


def launched(place: Path, pipeline: str, out: str, *sets: str) -> subprocess.Popen[str]:
    """Starts a training by two processes on CPUs."""
    options = ["--config", "mine.yaml", "--out", out]
    options += [part for text in sets for part in ("--set", f"train.{text}")]
    arguments = ["train", pipeline, "--task", "lookup", *options]
    return subprocess.Popen(
        [sys.executable, *LAUNCHER, *PLAIN, ROOT / "run_pipeline.py", *arguments],
        cwd=place, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", ["t5", "bert"])
def test_two_processes_have_the_results_of_one(place: Path, pipeline: str) -> None:
    trained(place, pipeline, place / "one", *(f"train.{text}" for text in SETS))
    with launched(place, pipeline, "two", *SETS) as launcher:
        while not list(place.glob("two.unfinished/*/*/checkpoint-6/.whole")):
            assert launcher.poll() is None, "it ended before it was killed"
            time.sleep(0.01)
        children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text()
        for process in map(int, children.split()):
            os.kill(process, signal.SIGKILL)
        launcher.communicate(timeout=60)
    with launched(place, pipeline, "two", *SETS) as launcher:
        output, errors = launcher.communicate(timeout=120)
    assert launcher.returncode == 0, errors
    assert output.count("trained on 40 inputs of 40 examples") == 1
    single, double = record_of(place / "one"), record_of(place / "two")
    [expected], [curve] = single["curves"].values(), double["curves"].values()
    assert len(curve) == len(expected)
    for row, expected_row in zip(curve, expected, strict=True):
        assert row == pytest.approx(expected_row, abs=1e-4)
    assert double["scores"] == single["scores"]
    assert len(list((place / "two/curves").rglob("events*"))) == 2  # one per start, not per process
    assert set(points(place / "two/curves/rate-0.003").values()) == {1}
    assert not list(place.glob("*two*unfinished"))


@pytest.mark.slow
def test_two_processes_report_an_error_once(place: Path) -> None:
    shutil.rmtree(place / "t5")
    with launched(place, "t5", "two", *SETS) as launcher:
        _, errors = launcher.communicate(timeout=60)
    assert launcher.returncode != 0
    assert errors.count("there is no such file or folder") == 1
    assert errors.count("Traceback") == 1  # that of the launcher
    assert not list(place.glob("two*"))
