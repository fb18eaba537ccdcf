"""Fine-tuning: tiny models learn, interrupted trainings resume, and no test data leak."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import read_lines
from lookup_task import (
    CONFIG,
    FEW,
    LESSONS,
    reader_of,
    save_models,
    save_t5,
    trained,
    tuned,
    write_rows,
)

from leporello.api import run
from leporello.config import load_config
from leporello.core.errors import UserError
from leporello.core.training import Training, TuningJob, TuningResult
from leporello.jobs.shards import layout_of
from leporello.readers import CausalLM, Seq2Seq
from leporello.training.splits import split


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with tiny models, the task's splits and a config."""
    folder = tmp_path_factory.mktemp("lookup")
    write_rows(folder, {"train": 200, "validation": 20, "test": 50})
    save_models(folder)
    (folder / "mine.yaml").write_text(CONFIG)
    return folder


@pytest.mark.parametrize("pipeline", ["t5", "bert"])
def test_a_tiny_model_learns_what_is_found(place: Path, tmp_path: Path, pipeline: str) -> None:
    """TF-IDF finds the answer in one of 40 chunks; exact match rises from 25 to above 90."""
    reader = trained(place, pipeline, tmp_path / "model")
    options: Any = {"config": [place / "mine.yaml", reader.config], "split": "test", "workers": 0}
    [result] = run([reader.pipeline], ["lookup"], out=tmp_path / "run", **options).results
    assert result.scores["exact_match"] > 90
    record = json.loads((tmp_path / "model/training.json").read_text())
    losses = [r["validation_loss"] for [*rows] in record["curves"].values() for r in rows
              if "validation_loss" in r]  # fmt: skip
    assert losses[-1] < losses[0] / 2
    assert record["kept"]["validation loss"] == min(losses)
    assert not (tmp_path / "model.unfinished").exists()
    assert list((tmp_path / "model/curves").rglob("events*"))
    card = (tmp_path / "model/README.md").read_text()
    assert "split train" in card
    assert "exact_match" in card


class Stopping:
    """Interrupts at a step, as a kill does."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["t5", "llama", "bert", "span"])
def test_an_interrupted_training_ends_the_same(place: Path, tmp_path: Path, kind: str) -> None:
    reader = reader_of(kind, place)
    often = replace(FEW, epochs=2, evaluate_steps=4)  # of six steps per epoch: in the middle of one
    complete = tuned(reader, tmp_path / "whole", often)
    for at in (5, 4):
        with pytest.raises(KeyboardInterrupt):
            tuned(reader, tmp_path / "cut", often, Stopping(at))
    (tmp_path / "cut/checkpoint-99").mkdir()
    (tmp_path / "cut/checkpoint-99/trainer_state.json").write_text("{")
    resumed = tuned(reader, tmp_path / "cut", often)
    for row, resumed_row in zip(complete.curve, resumed.curve, strict=True):
        assert row == pytest.approx(resumed_row, abs=1e-6)
    assert resumed.candidates[0].loss == pytest.approx(complete.candidates[0].loss, abs=1e-6)


def test_lora_weights_are_merged(place: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    reader = reader_of("llama", place)
    settings = Training(epochs=2, learning_rate=0.01, lora_rank=2)
    tuned(reader, tmp_path / "t", settings).candidates[0].save(tmp_path / "model")
    before = load_file(place / "llama/model.safetensors")
    after = load_file(tmp_path / "model/model.safetensors")
    changed = {name for name in before if not before[name].equal(after[name])}
    assert changed == {name for name in before if "proj" in name}
    assert CausalLM(model=str(tmp_path / "model"), max_input_tokens=32, max_new_tokens=2).read(
        LESSONS.inputs[:1]
    )


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Returns a folder with a tiny model, few documents and a config."""
    write_rows(tmp_path, {"train": 12, "validation": 4, "test": 4})
    save_t5(tmp_path / "t5")
    (tmp_path / "mine.yaml").write_text(CONFIG)
    return tmp_path


def test_only_data_of_training_are_learnt(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from leporello.readers.training import fine_tuning

    for name in ("test", "validation"):
        rows = read_lines(small / f"{name}.jsonl")
        for row in rows:
            row |= {"question": row["question"] + " marker", "references": ["marker"]}
            if "document" in row:
                row |= {"document": row["document"].replace("ball", "marker")}
        (small / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    jobs: list[TuningJob] = []

    tuned = fine_tuning.tune

    def spy(reader: Seq2Seq, job: TuningJob) -> TuningResult:
        jobs.append(job)
        return tuned(reader, job)

    monkeypatch.setattr(fine_tuning, "tune", spy)
    trained(small, "t5", small / "model", "train.epochs=1", "train.learning_rate=0.01,0.001")
    assert len(jobs) == 2
    for job in jobs:
        assert len(job.train.inputs) == 24
        assert "marker" not in repr(job.train)
        assert repr(job.validation).count("marker") > 8


def test_of_several_learning_rates_the_best_is_kept_by_the_metric(small: Path) -> None:
    sets = ["train.learning_rate=1e-9,0.01", "train.best_by=metric", "train.epochs=2"]
    trained_reader = trained(small, "t5", small / "model", *sets)
    record = json.loads((small / "model/training.json").read_text())
    assert set(record["curves"]) == {"1e-09", "0.01"}
    assert record["kept"]["learning rate"] == 0.01
    score = record["kept"]["score"]
    assert score == record["scores"]["exact_match"] == trained_reader.scores["exact_match"]
    config = (small / "model/pipeline.yaml").read_text()
    assert "extends: t5" in config
    assert "model: ./model" in config


def test_a_text_and_its_shuffles_are_held_out_together(tmp_path: Path) -> None:
    """Otherwise the validation documents would contain training data."""
    rows = [json.dumps({"text": f"A{n}. B{n}. C{n}. D{n}."}) for n in range(4)]
    (tmp_path / "texts.jsonl").write_text("\n".join(rows))
    config = tmp_path / "mine.yaml"
    config.write_text("tasks: {t: {class: ShuffleTest, path: texts.jsonl}}\n")
    sides = split(load_config([config]).tasks["t"], "", Training(holdout=0.25), needed=True)
    assert sides.validation
    train, validation = (
        {example.id.partition("/")[0] for example in side.examples()}
        for side in (sides.train, sides.validation)
    )
    assert (len(train), len(validation), train & validation) == (3, 1, set())
    # A run has the same examples: it must not use the layout of the complete task.
    rows_of = sum(rows.examples for rows in layout_of(sides.validation, "t"))
    assert rows_of == len([*sides.validation.examples()])


def test_documents_are_held_out_where_there_is_no_split(small: Path) -> None:
    config = (small / "mine.yaml").read_text().replace("{split}.jsonl", "train.jsonl")
    (small / "mine.yaml").write_text(config)
    with pytest.raises(UserError, match=r"train\.holdout"):
        trained(small, "t5", small / "model", "train.epochs=1")
    sets = ["train.holdout=0.25", "train.epochs=1", 'train.choose="reader.max_new_tokens=1,2"']
    trained_reader = trained(small, "t5", small / "model", *sets)
    record = json.loads((small / "model/training.json").read_text())
    assert (record["train"]["documents"], record["validation"]["documents"]) == (9, 3)
    assert (record["shared"], trained_reader.validated) == (0, "3 documents held out")
    assert record["chosen"] == {"parameters": "reader.max_new_tokens=1"}
    assert "max_new_tokens: 1\n" in (small / "model/pipeline.yaml").read_text()


def test_an_unfinished_training_does_not_resume_with_other_settings(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leporello.readers.training import trainer as training

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(training, "_curve", fail)
        with pytest.raises(KeyboardInterrupt):
            trained(small, "t5", small / "model", "train.epochs=1")
    assert list((small / "model.unfinished").rglob("checkpoint-*"))
    trained(small, "t5", small / "model", "train.epochs=2")
    record = json.loads((small / "model/training.json").read_text())
    assert record["kept"]["epoch"] == 2
    assert not (small / "model.unfinished").exists()


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (["train.epochs=0"], "t5.train.epochs: must be greater than 0"),
        (["train.epoch=1"], "t5.train.epoch: unknown setting; did you mean 'epochs'"),
        (["train.preset=scrols"], "there is no preset 'scrols'; did you mean 'scrolls'"),
        (["train.epochs=1,2"], "only learning_rate may be swept"),
        (["train.accumulate=3"], "batch_size (32) is not a multiple of accumulate (3)"),
        (['train.choose="retriever.kk=1"'], "TfIdf has no parameter 'kk'"),
        (["train.validation=train"], "cannot be both trained and validated on"),
        (["train.precision=float16"], "train.precision: float16 needs a GPU"),
    ],
)
def test_a_mistake_in_settings_is_reported(small: Path, sets: list[str], message: str) -> None:
    with pytest.raises(UserError) as caught:
        trained(small, "t5", small / "model", *sets)
    assert message in str(caught.value)
    assert not list(small.glob("model*"))


def test_presets_are_the_papers() -> None:
    """SCROLLS has epochs by task and six learning rates; the user's settings override them."""
    from leporello.config import TrainingSpec

    scrolls = TrainingSpec({"preset": "scrolls"})
    by_task = {
        task: scrolls.settings(f"scrolls/{task}") for task in ("qmsum", "qasper", "gov_report")
    }
    assert {task: settings.epochs for task, settings in by_task.items()} == {
        "qmsum": 10, "qasper": 20, "gov_report": 10,
    }  # fmt: skip
    assert by_task["qasper"].rates == (1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4)
    assert (by_task["qasper"].betas, by_task["qasper"].batch_tokens) == ((0.9, 0.98), 131_072)
    assert TrainingSpec({"preset": "scrolls", "epochs": 3.0}).settings("qmsum").epochs == 3
