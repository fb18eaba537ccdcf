"""The Trainer: losses, precision, devices and curves."""

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lookup_task import CONFIG, FEW, reader_of, save_models, trained, tuned, write_rows

from leporello.core.errors import UserError
from leporello.core.training import Training
from leporello.readers.training.fine_tuning import check


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
    ("variable", "value"), [("WORLD_SIZE", "2"), ("ACCELERATE_MIXED_PRECISION", "bf16")]
)
def test_a_launcher_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(UserError, match="train uses one process"):
        trained(place, "t5", place / "model")


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
