"""Trained rows of the papers' tables: each pipeline trains a tiny model."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from command_line import leporello
from row_files import write_rows
from tiny_models import save, save_classifier

from leporello.api import load_pipelines, run
from leporello.config.suite_files import suite_named
from leporello.suites import suite_tables
from leporello.training import train

SENTENCES = [f"The miller's cat number {n} took the boots to the king." for n in range(12)]
SUBTITLES = {"input": "Hello.\n- Who is it?\nIt is me."}
STYLES = {"input": "\n".join(SENTENCES[:6]), "output": json.dumps([1, 1, 1, 2, 2, 2])}
PAPER = {"article_text": SENTENCES, "abstract_text": ["<S> A cat took boots . </S>"]}
BRIEF = ["train.epochs=1", "train.precision=float32", "train.gradient_checkpointing=false",
         "train.accumulate=1", "train.patience=0", "reader.device=cpu",
         "placement.workers=0"]  # fmt: skip


def muld(data: Path, task: str, rows: Sequence[Mapping[str, Any]]) -> None:
    for split in ("train", "validation", "test"):
        write_rows(data / f"muld/{task}_{split}.json.bz2", *rows)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a data directory with some rows of each task, in the official formats."""
    place = tmp_path / "data"
    monkeypatch.setenv("LEPORELLO_DATA", str(place))
    films = [{**SUBTITLES, "input": f"{n}\n{SUBTITLES['input']}"} for n in range(3)]
    muld(place, "opensubtitles", [{**film, "output": film["input"].upper()} for film in films])
    muld(place, "style_change", [STYLES] * 2)
    for name in ("train", "val", "test"):
        rows = ({**PAPER, "article_id": f"{name}{n}"} for n in range(2))
        write_rows(place / f"scientific_papers/arxiv-dataset/{name}.txt", *rows)
    (place / "shuffle_test").mkdir()
    texts = [{"text": "\n".join(SENTENCES[n:])} for n in range(4)]
    for split in ("train", "test"):
        file = place / f"shuffle_test/coherence_{split}_set.json"
        file.write_text(json.dumps(texts), encoding="utf-8")
    return place


ROWS = [
    ("muld-opensubtitles", "muld/opensubtitles", "t5",
     ["reader.max_input_tokens=64", "reader.max_new_tokens=20"]),
    ("muld-style-change-t5", "muld/style_change", "t5", ["train.choose=[]"]),
    ("muld-style-change-longformer", "muld/style_change", "longformer",
     ["train.choose=[]", "reader.max_input_tokens=120"]),
    ("shuffle-gpt2-in-domain", "shuffle_test/wsj", "gpt2",
     ["chunker.size=64", "chunker.stride=32", "reader.max_input_tokens=64"]),
]  # fmt: skip


@pytest.mark.parametrize(("pipeline", "task", "model", "more"), ROWS, ids=[row[0] for row in ROWS])
@pytest.mark.usefixtures("data")
def test_a_row_of_a_paper_is_trained_and_runs(
    tmp_path: Path, pipeline: str, task: str, model: str, more: list[str]
) -> None:
    if model == "longformer":
        save_classifier(model, tmp_path / model, ("different", "same"))
    else:
        save(model, tmp_path / model)
    overrides = [f"reader.model={tmp_path / model}", *BRIEF, *more]
    if "opensubtitles" in task or "shuffle" in task:
        overrides += [f"chunker.tokenizer={tmp_path / model}"]
    task_of_films = "{class: Muld, name: opensubtitles, metrics: [f1]}"
    config = [tmp_path / "quick.yaml"]
    config[0].write_text(f"tasks: {{muld/opensubtitles: {task_of_films}}}")
    out = tmp_path / "model"
    trained = train(pipeline, task, config=config, overrides=overrides, out=out, limit=3)
    assert trained.inputs > 0
    config += [trained.config]
    out = tmp_path / "out"
    [result] = run([trained.pipeline], [task], config=config, out=out, limit=2, workers=0).results
    assert (result.examples, result.failures) == (2, 0)


def test_one_run_fills_both_tables_of_the_shuffle_test(data: Path, tmp_path: Path) -> None:
    save("gpt2", tmp_path / "gpt2")
    texts = [{"text": "\n".join(SENTENCES[n:])} for n in range(3)]
    write_rows(data / "test.jsonl", *texts)
    path = f"path: '{data}/{{split}}.jsonl', split: test"
    task = f"{{class: ShuffleTest, {path}, unit: line, shuffles: 2}}"
    config = tmp_path / "domains.yaml"
    tasks = ", ".join(f"shuffle_test/{name}: {task}" for name in ("wsj", "legal", "reddit"))
    config.write_text(f"tasks: {{{tasks}}}")
    sets = [f"chunker.tokenizer={tmp_path / 'gpt2'}", f"reader.model={tmp_path / 'gpt2'}",
            "reader.device=cpu", "chunker.size=64", "chunker.stride=32",
            "reader.max_input_tokens=64"]  # fmt: skip
    out = tmp_path / "out"
    run(["gpt2-medium"], suite="shuffle_test", config=[config], overrides=sets, out=out,
        limit=22, workers=0)  # fmt: skip
    [first, second] = suite_tables(suite_named("shuffle_test", [config]), [out], files=[config])
    assert (first.name, second.name) == ("results", "block_sizes")
    rows = [next(row for row in table.rows if row.ours) for table in (first, second)]
    assert [*rows[0].entries] == ["wsj", "legal", "reddit", "average"]
    assert [*rows[1].entries] == ["WSJ", "Legal", "Reddit", "average"]
    domains = [rows[1].entries[name].numbers for name in ("WSJ", "Legal", "Reddit")]
    accuracies = [entry.entering for entry in rows[0].entries.values()]
    assert [numbers[0] for numbers in domains] == accuracies[:3]
    means = [sum(column) / 3 for column in zip(*domains, strict=True)]
    assert rows[1].entries["average"].numbers == pytest.approx(means)
    assert [row.name for row in second.rows][1:] == ["GPT2-med", rows[1].name]


@pytest.mark.usefixtures("data")
def test_a_row_of_a_suite_is_trained_by_its_task(tmp_path: Path) -> None:
    errors = leporello("train", "t6", "--suite", "muld", status=2).stderr
    assert "'t6' is not a row of it; name a row of the suite 'muld': t5, longformer" in errors
    errors = leporello("train", "t5", "--suite", "muld", "--task", "muld/x", status=2).stderr
    assert "row 't5' has no task 'muld/x'; its tasks: muld/narrativeqa, " in errors
    options = ("--suite", "muld", "--task", "muld/opensubtitles", "--out", tmp_path / "model")
    empty = ("--set", f"chunker.tokenizer={tmp_path}", "--set", f"reader.model={tmp_path}")
    errors = leporello("train", "t5", *options, *empty, status=2).stderr
    assert f"tokenizer '{tmp_path}'" in errors


@pytest.mark.parametrize(("row", "model"), [("t5", "t5"), ("longformer", "led")])
def test_the_rows_of_theses_read_with_a_model_of_papers(
    tmp_path: Path, data: Path, row: str, model: str
) -> None:
    save(model, tmp_path / model)
    thesis = "1 Introduction\n" + "\n".join(SENTENCES) + "\n2 Methods\n" + "\n".join(SENTENCES)
    muld(data, "vlsp", [{"input": thesis, "output": ["A cat took boots."]}] * 2)
    (tmp_path / "quick.yaml").write_text(
        "tasks: {muld/vlsp: {class: Muld, name: vlsp, metrics: [f1]}}", encoding="utf-8"
    )
    sizes = ["reader.max_input_tokens=128", "reader.max_new_tokens=10", "reader.min_new_tokens=0",
             "reader.num_beams=1"]  # fmt: skip
    overrides = [f"reader.model={tmp_path / model}", *BRIEF, *sizes]
    options: dict[str, Any] = {"config": [tmp_path / "quick.yaml"], "out": tmp_path / "model"}
    trained = train(row, "muld/vlsp", suite="muld", overrides=overrides, limit=2, **options)
    assert (trained.task, trained.row) == ("scientific_papers/arxiv", f"{row}-trained")
    config = [tmp_path / "quick.yaml", trained.config]
    out = tmp_path / "out"
    [result] = run([trained.row], suite="muld", config=config, out=out, workers=0).results
    assert (result.task, result.pipeline, result.failures) == (
        "muld/vlsp", f"muld-{row}-vlsp-trained", 0
    )  # fmt: skip
    [point] = load_pipelines(config).select([result.pipeline])
    assert point.stages["reader"].params["model"] == str(tmp_path / "model/model")
    assert point.stages["combiner"].cls.__name__ == "ReadEach"
