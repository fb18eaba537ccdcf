"""Tests of MuLD's built-in pipelines on files in its format, with tiny models."""

import json
import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from row_files import write_rows

from leporello.api import Run, UserError, load_pipelines, run
from leporello.core.records import Prediction
from leporello.engine.results.finished import FinishedRow
from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import JobFiles
from leporello.training import train

Tiny = Callable[[str], str]


def ran(
    folder: Path, pipeline: str, rows: Sequence[tuple[str, object]], *sets: str
) -> tuple[list[Prediction], list[FinishedRow]]:
    """Runs a pipeline on inputs and outputs; returns the predictions and the finished rows."""
    [point] = load_pipelines([]).pipelines[pipeline]
    name = point.tasks[0].removeprefix("muld/")
    file = folder / f"muld/{name}_test.json.bz2"
    write_rows(file, *({"input": text, "output": output} for text, output in rows))
    # Without the metrics that start Java.
    task = {"class": "Muld", "name": name, "split": "test", "data": str(folder), "metrics": ["f1"]}
    config: list[Any] = [{"tasks": {"muld": task}}]
    out = folder / pipeline
    finished = run([pipeline], ["muld"], config=config, overrides=sets, out=out, workers=0)
    rows_of_run = JobFiles(RunDirectory(out), pipeline, "muld").examples()
    return [*finished.predictions(pipeline, "muld")], [*rows_of_run]


PLACES = ("harbour", "mill", "tower", "forest", "bridge", "market", "garden", "church")
BOOK = "\n\n".join(
    f"In the {place} the wind blew all night. Person{n} found the key in the {place}."
    f" Nobody in the {place} knew of it, and so the day went by as days do."
    for n, place in enumerate(PLACES)
)


def test_chunks_are_read_best_first(tmp_path: Path, tiny: Tiny) -> None:
    rows = [(f"Who found the key in the {p}?\n\n{BOOK}", [p, "someone"]) for p in PLACES[:2]]
    small = ("reader.max_input_tokens=256", "reader.max_new_tokens=6", "chunker.size=12")
    sets = (f"reader.model={tiny('t5')}", *small)
    for answer, row in zip(*ran(tmp_path, "muld-narrativeqa", rows, *sets), strict=True):
        [call] = row.calls
        assert len(answer.hits) == 10
        assert [tuple(p) for p in call["passages"]] == [hit[:2] for hit in answer.hits]
        assert all(a >= b for (*_, a), (*_, b) in pairwise(answer.hits))
        coverage = answer.coverage
        assert coverage.selected == coverage.read + coverage.cut > coverage.read


RAIN = "The rain falls on the quay, and nobody says a word.\n" * 40
SCRIPT = (
    "FADE IN.\n\n          HARRY (V.O.)\n     Where have they gone?\n\n"
    + RAIN
    + "Harry sees Harry's boat. HARRY runs.\n"
    + RAIN
    + "                    HARRY\n     It is over.\n\nFADE OUT.\n"
)


def test_archetypes_are_predicted_near_mentions(tmp_path: Path, tiny: Tiny) -> None:
    labels = ("Hero", "Villain/Antagonist")
    rows = [(f"HARRY\n{SCRIPT}", "Hero"), (f"Sally\n{SCRIPT}", ["Villain/Antagonist"])]
    sets = (f"reader.model={tiny('t5')}", f"chunker.tokenizer={tiny('t5')}")
    (harry, sally), finished = ran(tmp_path, "muld-character-archetype-t5", rows, *sets)
    assert {harry.prediction, sally.prediction} <= {*labels}
    assert [count for *_, count in harry.hits] == [3, 1, 1]
    assert (sally.hits, sally.read) == ((), ())
    texts = [SCRIPT[span.start : span.end] for span in harry.read]
    assert [text.upper().count("HARRY") for text in texts] == [1, 3, 1]
    assert texts[0].startswith("FADE IN.")
    assert texts[2].endswith("FADE OUT.")
    assert harry.coverage.cut == 0
    [call], [second] = (row.calls for row in finished)
    assert call["choices"] == list(labels)
    assert len(call["output"]["scores"]) == 2
    assert second["passages"] == []
    assert "the name is never mentioned" in finished[1].statistics.notes[0]


FILMS = (
    "Hello.\n- Who is it?\n\nIt is me, and it is cold.\n",
    "Go.\r\nNow!\r\n\r\n  - Where?",
    "one line that is far longer than a chunk of it may be, and goes on and on\nand another",
)


def test_subtitles_are_translated_in_chunks_of_complete_lines(tmp_path: Path, tiny: Tiny) -> None:
    rows = [(film, film.splitlines()) for film in FILMS]
    sets = (f"reader.model={tiny('t5')}", f"chunker.tokenizer={tiny('t5')}")
    answers, [first, *_] = ran(
        tmp_path, "muld-opensubtitles", rows, *sets, "reader.max_new_tokens=6"
    )
    assert {call["round"] for call in first.calls} == {0}
    read = [FILMS[0][start:end] for call in first.calls for start, end in call["passages"]]
    assert read == [FILMS[0].strip()]
    assert all(answer.coverage.selected >= 0.9 * len(str(answer.raw)) for answer in answers)


TEXT = "The eldest took the mill, the second the donkey, and the youngest had nothing but the cat."
CHAPTERS = ("Introduction", "The mill", "The boots", "Conclusion")
LISTED = "\n".join(f"-    {n} {title}" for n, title in enumerate(CHAPTERS, 1))
WRITTEN = "\n\n".join(
    f"## Chapter {n} {title}\n\n{TEXT}\n\n### {n}.1 More\n\n{TEXT} {TEXT}"
    for n, title in enumerate(CHAPTERS, 1)
)
APPENDIX = f"## Appendix A Proofs\n\n{TEXT}\n"
MARKED = f"##### Contents\n\n{LISTED}\n\n###### List of Figures\n\n-    1.1 A cat\n\n{WRITTEN}"
SHORT = ("reader.max_new_tokens=8",)
TINY_T5 = (*SHORT, "reader.min_new_tokens=2", "reader.max_input_tokens=96")
THESES = {  # model, settings for a model of this size, and number of chunks
    "muld-vlsp": ("t5", TINY_T5, 8),
    "muld-vlsp-hierarchical": ("t5", (*TINY_T5, "combiner.target_words=3"), 8),
    "muld-vlsp-led": ("led", (*SHORT, "reader.max_input_tokens=128"), 4),
}


@pytest.mark.parametrize("pipeline", THESES)
def test_theses_are_summarised_by_chapter(pipeline: str, tmp_path: Path, tiny: Tiny) -> None:
    """A text without headings is read as well."""
    model, settings, count = THESES[pipeline]
    rows = [(f"{MARKED}\n\n{APPENDIX}", ["A.", "B."]), (f"{TEXT}\n\n{TEXT}\n\nA cat.\n", ["C."])]
    (thesis, plain), _ = ran(tmp_path, pipeline, rows, f"reader.model={tiny(model)}", *settings)
    hits = [MARKED[start:end].splitlines()[0] for start, end, _ in thesis.hits]
    assert hits[0] == "## Chapter 1 Introduction"
    assert len(hits) == count
    assert all(hit.startswith("##") for hit in hits)
    begin = MARKED.index("## Chapter 1")
    assert all(begin <= span.start < span.end <= len(MARKED) for span in thesis.read)
    assert (thesis.coverage.cut, thesis.coverage.read) == (0, thesis.coverage.selected)
    assert plain.coverage.read > 0
    assert all(str(prediction.raw).strip() for prediction in (thesis, plain))
    if pipeline == "muld-vlsp":
        assert str(thesis.raw).count("\n") >= count - 1


VOICES = (
    "The {} saw a {}. It was a {}.",
    "“Whether {}, upon the {}—alas!—had never been, I can't pretend to {},” he said;",
    "so we went {} and {} and {} and nobody minded, and nobody cared very much, really",
)
NOUNS = ("mill", "cat", "sea", "captain", "road", "letter", "king", "rain", "lamp", "garden")


def written_by(seed: int, *runs: tuple[int, int]) -> dict[str, Any]:
    """Returns a row in MuLD's format, given the author and number of consecutive paragraphs."""
    chance = random.Random(seed)
    authors = [author for author, count in runs for _ in range(count)]
    lines = [
        " ".join(VOICES[author - 1].format(*chance.sample(NOUNS, 3)) for _ in range(3))
        for author in authors
    ]
    return {"input": "\n".join(lines), "output": json.dumps(authors)}


@pytest.fixture
def styles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets a data directory with three splits of style change."""
    splits = {
        "train": [written_by(1, (1, 6), (2, 6), (1, 4)), written_by(2, (1, 5), (2, 5), (3, 5))],
        "validation": [written_by(6, (1, 5), (2, 6))],
        "test": [
            written_by(3, (1, 8), (2, 8), (1, 5)), written_by(4, (1, 9)), written_by(5, (1, 1))
        ],
    }  # fmt: skip
    for split, rows in splits.items():
        write_rows(tmp_path / f"data/muld/style_change_{split}.json.bz2", *rows)
    monkeypatch.setenv("LEPORELLO_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("LEPORELLO_CACHE", str(tmp_path / "cache"))


@pytest.mark.usefixtures("styles")
@pytest.mark.parametrize("variant", ["", "-literal", "-clustered"])
def test_a_trained_pipeline_predicts_other_authors(variant: str, tmp_path: Path) -> None:
    pipeline, task = f"muld-style-change{variant}", "muld/style_change"
    trained = train(pipeline, task, overrides=["train.choose=[]"], out=tmp_path / "model")
    name, config = trained.pipeline, [trained.config]
    outcome: Run = run([name], [task], config=config, out=tmp_path / "out", workers=0)
    [result] = outcome.results
    assert (result.failures, result.empty) == (0, 0)
    predictions = [*outcome.predictions(name, task)]
    coverages = [prediction.coverage for prediction in predictions]
    # A single paragraph is not compared; the others are read with the line breaks between them.
    assert [c.cut for c in coverages] == [0, 0, coverages[2].selected]
    assert all(c.read >= c.selected for c in coverages[:2])
    several, single, alone = (json.loads(prediction.prediction) for prediction in predictions)
    assert alone == {"multi-author": 0, "changes": [], "paragraph-authors": [1]}
    assert len(several["paragraph-authors"]) == 21
    assert several["multi-author"] == 1
    if variant == "-clustered":
        assert several["paragraph-authors"] == [1] * 8 + [2] * 8 + [1] * 5
        assert single["paragraph-authors"] == [1] * 9
        assert (result.scores["pan21_task1"], result.scores["pan21_task2"]) == (100.0, 100.0)
    elif variant == "-literal":
        pairs = zip(several["changes"], [0] * 7 + [1] + [0] * 7 + [1] + [0] * 4, strict=True)
        assert sum(change == wanted for change, wanted in pairs) >= 17


@pytest.mark.usefixtures("styles")
def test_thresholds_are_chosen_on_validation_by_default(tmp_path: Path) -> None:
    name = "muld-style-change"
    outcome = train(name, out=tmp_path / "model")
    record = json.loads((tmp_path / "model" / "training.json").read_text(encoding="utf-8"))
    chosen = dict(pair.split("=") for pair in record["chosen"]["parameters"].split(","))
    assert float(chosen["combiner.threshold"]) in (0.7, 0.8, 0.9)
    assert float(chosen["combiner.change_threshold"]) in (0.2, 0.3, 0.4)
    assert (record["validated"], record["metric"]) == ("split validation", "pan21_task3")
    assert outcome.scores["pan21_task3"] == record["scores"]["pan21_task3"]
    [pipeline] = load_pipelines([outcome.config]).select([outcome.pipeline])
    assert pipeline.stages["combiner"].params["threshold"] == float(chosen["combiner.threshold"])
    with pytest.raises(UserError, match=r"train\.choose=\[\] disables the choice"):
        train(name, overrides=["combiner.threshold=0.9"], out=tmp_path / "other")
    settings = ["combiner.change_threshold=0.9", "train.choose=combiner.threshold=0.1"]
    train(name, overrides=settings, out=tmp_path / "other")
    [pipeline] = load_pipelines([tmp_path / "other/pipeline.yaml"]).select([outcome.pipeline])
    params = pipeline.stages["combiner"].params
    assert (params["threshold"], params["change_threshold"]) == (0.1, 0.9)
