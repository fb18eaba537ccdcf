"""Fine-tuning: tiny models really learn; what is killed goes on; nothing leaks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import read_lines
from lookup_task import (
    CONFIG,
    FEW,
    LESSONS,
    reader_of,
    save_bert,
    save_llama,
    save_t5,
    trained,
    tuned,
    write_rows,
)

from leporello.api import Trained, run
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
    save_t5(folder / "t5")
    save_bert(folder / "bert")
    save_bert(folder / "span", spans=True)
    save_llama(folder / "llama")
    (folder / "mine.yaml").write_text(CONFIG)
    return folder


def scored(place: Path, done: Trained, out: Path) -> float:
    """Returns the exact match of a trained pipeline on the test split."""
    files = [place / "mine.yaml", done.config]
    return (
        run([done.pipeline], ["lookup"], config=files, split="test", out=out, workers=0)
        .results[0]
        .scores["exact_match"]
    )


@pytest.mark.parametrize("pipeline", ["t5", "bert"])
def test_a_tiny_model_learns_what_its_pipeline_finds(
    place: Path, tmp_path: Path, pipeline: str
) -> None:
    """The answer in one of 40 chunks, through TF-IDF: from a quarter to above nine tenths."""
    done = trained(place, pipeline, tmp_path / "model")
    assert scored(place, done, tmp_path / "run") > 90
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


def test_where_chunks_are_random_it_stays_at_chance(place: Path, tmp_path: Path) -> None:
    """What is learnt is what the pipeline's own retriever finds."""
    done = trained(place, "random", tmp_path / "model")
    assert 10 < scored(place, done, tmp_path / "run") < 45


# -- below the command line ----------------------------------------------------------------------


class Stopping:
    """Interrupts at a step, as a kill does."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["t5", "llama", "bert", "span"])
def test_what_is_interrupted_ends_as_if_it_were_not(place: Path, tmp_path: Path, kind: str) -> None:
    """Each kind of model; half a checkpoint is passed over, and so is one that lacks files."""
    reader = reader_of(kind, place)
    often = replace(FEW, evaluate_steps=4)  # of six in an epoch: in the midst of one
    whole = tuned(reader, tmp_path / "whole", often)
    for at in (9, 8):
        with pytest.raises(KeyboardInterrupt):
            tuned(reader, tmp_path / "cut", often, Stopping(at))
    (tmp_path / "cut/checkpoint-99").mkdir()
    (tmp_path / "cut/checkpoint-99/config.json").write_text("{")
    resumed = tuned(reader, tmp_path / "cut", often)
    for one, other in zip(whole.curve, resumed.curve, strict=True):
        assert one == pytest.approx(other, abs=1e-6)
    assert resumed.candidates[0].loss == pytest.approx(whole.candidates[0].loss, abs=1e-6)


def test_additions_of_low_rank_are_merged(place: Path, tmp_path: Path) -> None:
    """What is saved reads like any model, and all but the additions is as it was."""
    from safetensors.torch import load_file

    reader = reader_of("llama", place)
    settings = Training(epochs=2, learning_rate=0.01, lora_rank=2, lora_targets=("q_proj",))
    tuned(reader, tmp_path / "t", settings).candidates[0].save(tmp_path / "model")
    before = load_file(place / "llama/model.safetensors")
    after = load_file(tmp_path / "model/model.safetensors")
    changed = {name for name in before if not before[name].equal(after[name])}
    assert changed == {name for name in before if "q_proj" in name}
    assert CausalLM(model=str(tmp_path / "model"), max_input_tokens=32, max_new_tokens=2).read(
        LESSONS.inputs[:1]
    )


# -- through the whole verb ----------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Returns a folder with a tiny model, few documents and a config."""
    write_rows(tmp_path, {"train": 12, "validation": 4, "test": 4})
    save_t5(tmp_path / "t5")
    (tmp_path / "mine.yaml").write_text(CONFIG)
    return tmp_path


def test_nothing_of_test_or_validation_is_learnt(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A marker in their documents, questions, references and evidence is in no training input."""
    from leporello.readers.training import fine_tuning

    for name in ("test", "validation"):
        rows = read_lines(small / f"{name}.jsonl")
        for row in rows:
            row |= {"question": row["question"] + " marker", "references": ["marker"]}
            if "document" in row:
                row |= {"document": row["document"].replace("ball", "marker")}
        (small / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    seen: list[TuningJob] = []

    tuned = fine_tuning.seq2seq

    def spy(reader: Seq2Seq, course: TuningJob) -> TuningResult:
        seen.append(course)
        return tuned(reader, course)

    monkeypatch.setattr(fine_tuning, "seq2seq", spy)
    trained(small, "t5", small / "model", "train.epochs=1", "train.learning_rate=0.01,0.001")
    assert len(seen) == 2
    for course in seen:
        assert len(course.train.inputs) == 24
        assert "marker" not in repr(course.train)
        assert repr(course.validation).count("marker") > 8


def test_of_several_learning_rates_the_best_is_kept_by_the_metric(small: Path) -> None:
    """Every checkpoint is scored through the pipeline; the sweep is a list."""
    sets = ["train.learning_rate=1e-9,0.01", "train.best_by=metric", "train.epochs=2"]
    done = trained(small, "t5", small / "model", *sets)
    record = json.loads((small / "model/training.json").read_text())
    assert set(record["curves"]) == {"1e-09", "0.01"}
    assert record["kept"]["learning rate"] == 0.01
    assert record["kept"]["score"] == record["scores"]["exact_match"] == done.scores["exact_match"]
    used = (small / "model/pipeline.yaml").read_text()
    assert "extends: t5" in used
    assert "model: ./model" in used


def test_a_text_and_its_shuffles_are_held_out_together(tmp_path: Path) -> None:
    """Though each is a document to the engine: what is learnt would else be validated on."""
    rows = [json.dumps({"text": f"A{n}. B{n}. C{n}. D{n}."}) for n in range(4)]
    (tmp_path / "texts.jsonl").write_text("\n".join(rows))
    config = tmp_path / "mine.yaml"
    config.write_text("tasks: {t: {class: ShuffleTest, path: texts.jsonl}}\n")
    sides = split(load_config([config]).tasks["t"], "", Training(holdout=0.25), needed=True)
    assert sides.validation
    learnt, held = (
        {example.id.partition("/")[0] for example in side.examples()}
        for side in (sides.train, sides.validation)
    )
    assert (len(learnt), len(held), learnt & held) == (3, 1, set())
    # A run takes the same ones, though the task itself could find its documents faster.
    rows_of = sum(rows.examples for rows in layout_of(sides.validation, "t"))
    assert rows_of == len([*sides.validation.examples()])


def test_documents_are_held_out_where_there_is_no_split(small: Path) -> None:
    """Whole documents, which are not learnt; and what was chosen by them is written down."""
    config = (small / "mine.yaml").read_text().replace("{split}.jsonl", "train.jsonl")
    (small / "mine.yaml").write_text(config)
    with pytest.raises(UserError, match=r"train\.holdout"):
        trained(small, "t5", small / "model", "train.epochs=1")
    sets = ["train.holdout=0.25", "train.epochs=1", 'train.choose="reader.max_new_tokens=1,2"']
    done = trained(small, "t5", small / "model", *sets)
    record = json.loads((small / "model/training.json").read_text())
    assert (record["train"]["documents"], record["validation"]["documents"]) == (9, 3)
    assert (record["shared"], done.validated) == (0, "3 documents held out")
    assert record["chosen"] == {"parameters": "reader.max_new_tokens=1"}
    assert "max_new_tokens: 1\n" in (small / "model/pipeline.yaml").read_text()


def test_another_recipe_does_not_go_on_with_what_is_unfinished(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what differs; --update begins anew, and what is left unfinished is tidied up."""
    from leporello.readers.training import trainer as training

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(training, "_curve", fail)
        with pytest.raises(KeyboardInterrupt):
            trained(small, "t5", small / "model", "train.epochs=1")
    assert list((small / "model.unfinished").rglob("checkpoint-*"))
    with pytest.raises(UserError, match=r"settings.epochs: 1.0 -> 2.0"):
        trained(small, "t5", small / "model", "train.epochs=2")
    assert trained(small, "t5", small / "model", "train.epochs=1").inputs == 24
    assert not (small / "model.unfinished").exists()


@pytest.mark.parametrize(
    ("sets", "told"),
    [
        (["train.epochs=0"], "t5.train.epochs: input should be greater than 0"),
        (["train.epoch=1"], "t5.train.epoch: there is no such setting; did you mean 'epochs'"),
        (["train.preset=scrols"], "there is no preset 'scrols'; did you mean 'scrolls'"),
        (["train.epochs=1,2"], "only learning_rate may be swept"),
        (["train.accumulate=3"], "batch_size (32) is not a multiple of accumulate (3)"),
        (['train.choose="retriever.kk=1"'], "TfIdf has no parameter 'kk'"),
        (["train.validation=train"], "cannot be learnt and validated on"),
        (["train.precision=float16"], "float16 needs a GPU"),
        (["train.lora_rank=2", "train.lora_targets=[nowhere]"], "lora_targets: "),
    ],
)
def test_what_is_wrong_with_settings_is_told(small: Path, sets: list[str], told: str) -> None:
    """Where it can be, before any work; and nothing is left."""
    with pytest.raises(UserError) as caught:
        trained(small, "t5", small / "model", *sets)
    assert told in str(caught.value)
    assert not list(small.glob("model*"))


def test_presets_are_the_papers() -> None:
    """SCROLLS': epochs by task, six learning rates; a setting of one's own stands above them."""
    from leporello.config import TrainingSpec

    scrolls = TrainingSpec({"preset": "scrolls"})
    found = {
        task: scrolls.settings(f"scrolls/{task}") for task in ("qmsum", "qasper", "gov_report")
    }
    assert {task: settings.epochs for task, settings in found.items()} == {
        "qmsum": 10, "qasper": 20, "gov_report": 10,
    }  # fmt: skip
    assert found["qasper"].rates == (1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4)
    assert (found["qasper"].betas, found["qasper"].batch_tokens) == ((0.9, 0.98), 131_072)
    assert TrainingSpec({"preset": "scrolls", "epochs": 3.0}).settings("qmsum").epochs == 3


def test_characters_are_few_and_both_classes_count() -> None:
    """More passes, the checkpoint by F1, whatever reads; a share held out replaces the split."""
    from leporello.config import TrainingSpec, load_config

    found = load_config().pipelines
    for name, rate in (("", 3e-5), ("-t5", 3e-4)):
        [point] = found[f"muld-character-archetype{name}"]
        settings = point.training.settings("muld/character_id")
        assert (settings.epochs, settings.best_by, settings.patience) == (10, "metric", 0)
        assert (settings.rates, settings.validation) == ((rate,), "validation")
    [other] = found["muld-narrativeqa"]
    assert other.training.settings("muld/narrativeqa").best_by == "loss"
    given = TrainingSpec({"preset": "muld-t5", "holdout": 0.1}).settings("muld/character_id")
    assert (given.validation, given.holdout) == ("", 0.1)
