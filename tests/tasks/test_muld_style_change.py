"""End-to-end tests of MuLD's style change: training, runs and errors."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from row_files import write_rows

from leporello.api import Run, UserError, load_pipelines, run
from leporello.training import train

VOICES = (
    ("The", "The {} saw a {}. It was a {}."),
    ("Whether", "“Whether {}, upon the {}—alas!—had never been, I can't pretend to {},” he said;"),
    ("so", "so we went {} and {} and {} and nobody minded, and nobody cared very much, really"),
)
NOUNS = ("mill", "cat", "sea", "captain", "road", "letter", "king", "rain", "lamp", "garden")


def paragraph(author: int, chance: random.Random) -> str:
    """Returns a line in an author's style."""
    template = VOICES[author - 1][1]
    return " ".join(template.format(*chance.sample(NOUNS, 3)) for _ in range(3))


def row(runs: Sequence[tuple[int, int]], seed: int) -> dict[str, Any]:
    """Returns a row in MuLD's format, given the author and number of consecutive paragraphs."""
    chance = random.Random(seed)
    authors = [author for author, count in runs for _ in range(count)]
    lines = [paragraph(author, chance) for author in authors]
    return {"input": "\n".join(lines), "output": json.dumps(authors)}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Returns a data directory with three splits."""
    splits = {
        "train": [row(((1, 6), (2, 6), (1, 4)), 1), row(((1, 5), (2, 5), (3, 5)), 2)],
        "validation": [row(((1, 5), (2, 6)), 6)],
        "test": [row(((1, 8), (2, 8), (1, 5)), 3), row(((1, 9),), 4), row(((1, 1),), 5)],
    }
    for split, rows in splits.items():
        write_rows(tmp_path / f"data/muld/style_change_{split}.json.bz2", *rows)
    return tmp_path / "data"


@pytest.fixture(autouse=True)
def _places(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEPORELLO_DATA", str(data))
    monkeypatch.setenv("LEPORELLO_CACHE", str(data.parent / "cache"))


def trained(pipeline: str, place: Path) -> tuple[str, list[Path]]:
    """Trains the pipeline without choosing parameters; returns its new name and config."""
    outcome = train(pipeline, "muld/style_change", overrides=["train.choose=[]"], out=place)
    return outcome.pipeline, [outcome.config]


def answers(outcome: Run, pipeline: str) -> list[dict[str, Any]]:
    return [json.loads(p.prediction) for p in outcome.predictions(pipeline, "muld/style_change")]


@pytest.mark.parametrize("variant", ["", "-literal", "-clustered"])
def test_a_trained_pipeline_predicts_other_authors(variant: str, tmp_path: Path) -> None:
    name, config = trained(f"muld-style-change{variant}", tmp_path / "model")
    outcome = run([name], ["muld/style_change"], config=config, out=tmp_path / "out", workers=0)
    [result] = outcome.results
    assert (result.failures, result.empty) == (0, 0)
    coverages = [p.coverage for p in outcome.predictions(name, "muld/style_change")]
    # A single paragraph is not compared; the others are read with the line breaks between them.
    assert [c.cut for c in coverages] == [0, 0, coverages[2].selected]
    assert all(c.read >= c.selected for c in coverages[:2])
    several, single, alone = answers(outcome, name)
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
