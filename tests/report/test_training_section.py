"""Tests of the report's section on training, from records that `train` stores with models."""

import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import write_files
from report_page import DRAWS, Page
from word_labels import CONFIG, PLUGIN, row

from leporello.api import run, train
from leporello.report import report


@pytest.fixture
def folder_of_run(tmp_path: Path) -> Path:
    """A folder with a run of two readers; `train` made one of them, in `model`."""
    texts = [("sun and beach", "warm"), ("ice and snow", "cold"), ("hot sun", "warm")]
    rows = "".join(row(str(number), text, label) for number, (text, label) in enumerate(texts))
    files = {"plugin.py": PLUGIN, "mine.yaml": CONFIG, "train.jsonl": rows, "test.jsonl": rows}
    write_files(tmp_path, files)
    training = train("mine", "rows", config=[tmp_path / "mine.yaml"], out=tmp_path / "model")
    run(
        ["mine-trained", "plain"], ["rows"], config=[tmp_path / "mine.yaml", training.config],
        split="test", out=tmp_path / "run", workers=0,
    )  # fmt: skip
    return tmp_path


def report_of(folder: Path) -> tuple[Page, list[str]]:
    result = report([folder / "run"], folder / "page.html", draws=DRAWS)
    return Page(folder / "page.html"), [note for note in result.notes if "training" in note]


def section_of(page: Page) -> str:
    return page.source.partition('id="training"')[2].partition('<details class="more"')[0]


def change_record(folder: Path, **values: Any) -> None:
    file = folder / "model" / "training.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def _curve(scale: float) -> list[dict[str, float]]:
    rows: list[dict[str, float]] = []
    for epoch in (1, 2):
        rows.append({"step": 10 * epoch - 5, "epoch": epoch - 0.5, "loss": scale / epoch})
        rows.append({"step": 10 * epoch, "epoch": epoch, "validation_loss": scale / epoch + 0.125})
        rows.append({"step": 10 * epoch, "epoch": epoch, "validation_score": 40.0 * epoch})
    return rows


def test_a_reader_without_a_curve_has_a_sentence(folder_of_run: Path) -> None:
    page, notes = report_of(folder_of_run)
    section = section_of(page)
    assert "mine-trained: trained on split train of rows, not validated." in section
    assert "<svg" not in section
    assert (page.unclosed, notes) == ([], [])


def test_curves_are_plotted(folder_of_run: Path) -> None:
    diverged = [*_curve(4.0), {"step": 25, "epoch": 2.5, "loss": math.nan}]
    curves = {"0.001": _curve(1.0), "0.1": diverged}
    change_record(folder_of_run, curves=curves, kept={"step": 20}, metric="f1")
    section = section_of(report_of(folder_of_run)[0])
    assert re.findall("<figcaption>(.*)</figcaption>", section) == [
        "Loss at learning rate 0.001, mine-trained on rows",
        "Loss at learning rate 0.1, mine-trained on rows",
        "f1 on validation, mine-trained on rows",
    ]
    assert "<td>20</td><td>0.6250</td>" in section
    assert "training (1 not finite)" in section
    assert "nan" not in section
    assert "Checkpoint: step 20." in section


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model: shutil.move(model, model.with_name("moved")), "any more"),
        (lambda model: (model / "words.json").write_text("{}"), "is another model now"),
        (lambda model: (model.parent / "training.json").write_text("[1]"), "is damaged"),
    ],
)
def test_a_lost_or_changed_model_is_noted(folder_of_run: Path, change: Any, message: str) -> None:
    change(folder_of_run / "model" / "model")
    page, notes = report_of(folder_of_run)
    assert 'id="training"' not in page.source
    [note] = notes
    assert note.startswith("mine-trained: the training of its reader is not shown: ")
    assert message in note
    assert note in page.text
