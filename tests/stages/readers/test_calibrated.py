"""Tests of a reader that is calibrated with percentages of complete documents."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import pytest
from tiny_models import save, save_classifier

from leporello.api import run
from leporello.core.calls.stage_calls import read as checked_read
from leporello.core.errors import UserError
from leporello.core.records import Output, Read
from leporello.readers import Calibrated, CausalLM
from leporello.training import train

CHOICES = ("yes", "no")


@dataclass(frozen=True)
class Numbers:
    """Reader whose log odds are the number in the passage."""

    certain: bool = False

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns scores of which one is 0."""
        if self.certain:
            return [Output("yes", scores=(1.0, 0.0)) for _ in inputs]
        odds = [float(str(read.passages[0])) for read in inputs]
        return [Output("", scores=(min(0.0, value), min(0.0, -value))) for value in odds]

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns one token per text."""
        return [1 for _ in texts]


def _reads(odds: Sequence[float]) -> list[Read]:
    return [Read((str(value),), choices=CHOICES) for value in odds]


def _odds(output: Output) -> float:
    return output.scores[0] - output.scores[1]


def test_log_odds_are_shifted_and_scaled() -> None:
    reader = Calibrated(Numbers(), offset=2.0, slope=3.0)
    outputs = checked_read(reader, _reads([1.5, 2.5, 30.0]))
    assert [output.text for output in outputs] == ["no", "yes", "yes"]
    assert [_odds(output) for output in outputs] == pytest.approx([-1.5, 1.5, 84.0])
    assert sum(map(math.exp, outputs[0].scores)) == pytest.approx(1)
    assert outputs[0].score == max(outputs[0].scores)


def test_offset_and_slope_are_learnt_from_percentages(tmp_path: Path) -> None:
    chance, inputs, targets = random.Random(0), list[Read](), list[str]()
    for percentage in (20, 35, 50, 65, 80):
        pooled = math.log(percentage / (100 - percentage)) / 4.0 + 1.9  # slope 4, offset 1.9
        noise = [chance.gauss(0, 0.7) for _ in range(60)]
        inputs += _reads([pooled + deviation - fmean(noise) for deviation in noise])
        targets += [f"{percentage}%"] * 60
    learnt = Calibrated(Numbers()).learn(inputs, targets, tmp_path)
    assert learnt["offset"] == pytest.approx(1.9, abs=0.01)
    assert learnt["slope"] == pytest.approx(4.0, rel=0.03)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("odds", "targets", "message"),
    [
        ([1, 2], ["50%", "50%"], "at least two different percentages"),
        ([1, 2], ["good", "50%"], "the combiner's target is 'good'"),
        ([1, 2], ["150%", "50%"], "the combiner's target is '150%'"),
        ([1, 2], ["80%", "20%"], "do not rise with the percentages"),
        ([1, 1], ["80%", "20%"], "do not rise with the percentages"),
    ],
)
def test_unsuitable_training_data_is_reported(
    odds: Sequence[float], targets: Sequence[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        Calibrated(Numbers()).learn(_reads(odds), targets, tmp_path)


def test_two_choices_with_scores_are_required() -> None:
    @dataclass(frozen=True)
    class Writes(Numbers):
        def read(self, inputs: Sequence[Read]) -> list[Output]:
            return [Output("yes") for _ in inputs]

    with pytest.raises(ValueError, match="a combiner that gives two"):
        Calibrated(Numbers()).read([Read(("1",), choices=("a", "b", "c"))])
    with pytest.raises(ValueError, match="which Writes does not"):
        Calibrated(Writes()).read(_reads([1.0]))


CONFIG = """
pipelines:
  counted:
    chunker: {class: Lines, size: 3}
    reader: &lm
      class: CausalLM
      model: ./lm
      prompt: "{context} is"
      chat: false
      max_input_tokens: 128
    combiner: Percentage
  learned:
    extends: counted
    reader:
      class: Calibrated
      reader: *lm
    combiner: {class: Percentage, share: pooled, digits: 1}
  sentiment:
    extends: counted
    reader: {class: Classifier, model: ./bert, max_input_tokens: 128}
    combiner: {class: Percentage, positive: POSITIVE, negative: NEGATIVE}
tasks:
  shares: {class: JsonLines, path: "{split}.jsonl", metrics: [exponential_similarity]}
"""


def _rows(texts: Sequence[Sequence[str]], shares: Sequence[int]) -> str:
    rows = (
        {"id": str(n), "document": "\n".join(lines), "question": "?", "references": [f"{share}%"]}
        for n, (lines, share) in enumerate(zip(texts, shares, strict=True))
    )
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder with a config, a tiny model, a tiny classifier and digests.

    The model gives lines of digests with higher percentages higher scores.
    """
    save("gpt2", tmp_path / "lm")
    save_classifier("bert", tmp_path / "bert", ("NEGATIVE", "POSITIVE"))
    (tmp_path / "mine.yaml").write_text(CONFIG)
    lines = [f"{word} {letter} cat" for word in ("the", "boots", "mill") for letter in "abcdefgh"]
    reader = CausalLM(str(tmp_path / "lm"), prompt="{context} is", chat=False, max_input_tokens=128)
    outputs = reader.read([Read((line,), choices=CHOICES) for line in lines])
    ranked = [line for _, line in sorted(zip(map(_odds, outputs), lines, strict=True))]
    low, middle, high = ranked[:8], ranked[8:16], ranked[16:]
    split = {"train": slice(0, 8, 2), "test": slice(1, 8, 2)}
    for name, half in split.items():
        rows = _rows([low[half], middle[half], high[half]], [10, 50, 90])
        (tmp_path / f"{name}.jsonl").write_text(rows)
    return tmp_path


def test_pipelines_return_percentages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    trained = train("learned", "shares", config=[Path("mine.yaml")])
    assert (trained.examples, trained.inputs) == (3, 12)
    names = (trained.pipeline, "counted", "sentiment")
    configs = [Path("mine.yaml"), trained.config]
    summary = run(names, ["shares"], config=configs, split="test", out=folder / "run", workers=0)
    percentages = {
        name: [float(p.prediction.removesuffix("%")) for p in summary.predictions(name, "shares")]
        for name in names
    }
    low, middle, high = percentages["learned-trained"]
    assert low < middle < high
    assert high - low > 40
    assert all(0 <= share <= 100 for shares in percentages.values() for share in shares)
