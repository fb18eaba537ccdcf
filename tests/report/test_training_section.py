"""The report's section on training: what `train` left beside the models that the runs read with."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from report_page import DRAWS, Page
from word_labels import CONFIG, PLUGIN, row

from leporello.api import run, train
from leporello.report import report


@pytest.fixture
def done(tmp_path: Path) -> Path:
    """A run with two readers, of which `train` made the one; its model lies in `model`."""
    (tmp_path / "plugin.py").write_text(PLUGIN)
    (tmp_path / "mine.yaml").write_text(CONFIG)
    texts = [("sun and beach", "warm"), ("ice and snow", "cold"), ("hot sun", "warm")]
    rows = [row(str(number), text, label) for number, (text, label) in enumerate(texts)]
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text("".join(rows))
    made = train("mine", "rows", config=[tmp_path / "mine.yaml"], out=tmp_path / "model")
    run(
        ["mine-trained", "plain"], ["rows"], config=[tmp_path / "mine.yaml", made.config],
        split="test", out=tmp_path / "run", workers=0,
    )  # fmt: skip
    return tmp_path


def shown(folder: Path) -> tuple[Page, list[str]]:
    """Returns the report, and what it leaves out."""
    told = report([folder / "run"], folder / "page.html", draws=DRAWS)
    return Page(folder / "page.html"), [note for note in told.notes if "trained" in note]


def changed(folder: Path, **values: Any) -> None:
    """Changes the record beside the model."""
    file = folder / "model" / "training.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def _curve(scale: float) -> list[dict[str, float]]:
    """Returns a curve as fine-tuning leaves it."""
    rows: list[dict[str, float]] = []
    for epoch in (1, 2):
        rows.append({"step": 10 * epoch - 5, "epoch": epoch - 0.5, "loss": scale / epoch})
        rows.append({"step": 10 * epoch, "epoch": epoch, "validation_loss": scale / epoch + 0.125})
        rows.append({"step": 10 * epoch, "epoch": epoch, "validation_score": 40.0 * epoch})
    return rows


def test_a_reader_without_a_curve_has_its_facts(done: Path) -> None:
    """Once, for the one pipeline that was trained; and no plot."""
    page, notes = shown(done)
    section = page.source.partition('<section id="training">')[2].partition("</section>")[0]
    assert re.findall("<h3>(.*)</h3>", section) == ["mine-trained"]
    for fact in ("mine, its reader Words", "split train of rows: 3 examples", "nothing", "seed"):
        assert fact in section
    assert "<svg" not in section
    assert "epochs" not in section  # which no such reader has
    assert 'href="#training"' in page.source
    assert (page.unclosed, notes) == ([], [])


def test_losses_and_the_metric_are_drawn_with_the_kept_checkpoint(done: Path) -> None:
    """One line a learning rate; what became no number is left out, and said; numbers below."""
    diverged = [*_curve(4.0), {"step": 25, "epoch": 2.5, "loss": math.nan}]
    kept = {"learning rate": 0.001, "step": 20, "epoch": 2.0, "validation loss": 0.625}
    curves = {"0.001": _curve(1.0), "0.1": diverged}
    changed(done, curves=curves, kept=kept, metric="f1", scores={"f1": 80.0})
    page, _ = shown(done)
    section = page.source.partition('<section id="training">')[2].partition("</section>")[0]
    titles = re.findall("<figcaption>(.*)</figcaption>", section)
    ring = "mine-trained on rows: the kept checkpoint has a ring"
    assert titles == [
        "Loss on what is learnt, mine-trained on rows",
        f"Loss on what is validated on, {ring}",
        f"f1 on validation, {ring}",
    ]
    assert section.count('class="ring"') == 2
    assert "<td>20 (kept)</td><td>0.6250</td>" in section
    assert "learning rate 0.1 (1 no numbers)" in section
    assert "nan" not in section
    assert "learning rate 0.001, step 20, epoch 2, validation loss 0.625" in section
    changed(done, curves={"0.001": _curve(1.0)})
    titles = re.findall("<figcaption>(.*)</figcaption>", shown(done)[0].source)
    assert f"Loss, {ring}" in titles  # both losses of one learning rate stand side by side


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda model: shutil.move(model, model.with_name("moved")), "any more"),
        (lambda model: (model / "words.json").write_text("{}"), "is another model now"),
        (lambda model: (model.parent / "training.json").write_text("[1]"), "is damaged"),
    ],
)
def test_a_model_that_is_gone_or_another_is_said_in_one_line(
    done: Path, change: Any, told: str
) -> None:
    """The rest of the report is as it was."""
    change(done / "model" / "model")
    page, notes = shown(done)
    assert 'id="training"' not in page.source
    [note] = notes
    assert note.startswith("mine-trained: how its reader was trained is not shown: ")
    assert told in note
    assert note in page.text
