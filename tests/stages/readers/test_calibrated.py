"""Tests of a reader that is calibrated with percentages of complete documents."""

import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from row_files import write_rows

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

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns scores of which one is 0."""
        odds = [float(str(read.passages[0])) for read in inputs]
        return [Output("", scores=(min(0.0, value), min(0.0, -value))) for value in odds]

    def count(self, texts: Sequence[str]) -> list[int]:
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


def test_a_pipeline_learns_to_give_percentages(tmp_path: Path, tiny: Callable[[str], str]) -> None:
    """Lines of the digests with higher percentages have higher scores of the tiny model."""
    options: dict[str, Any] = {"prompt": "{context} is", "chat": False, "max_input_tokens": 128}
    lines = [f"{word} {letter} cat" for word in ("the", "boots", "mill") for letter in "abcdefgh"]
    outputs = CausalLM(tiny("gpt2"), **options).read([Read((x,), choices=CHOICES) for x in lines])
    ranked = [line for _, line in sorted(zip(map(_odds, outputs), lines, strict=True))]
    for name, first in (("train", 0), ("test", 1)):
        rows = (
            {"id": f"{share}", "document": "\n".join(ranked[start + first : start + 8 : 2]),
             "question": "?", "references": [f"{share}%"]}
            for start, share in ((0, 10), (8, 50), (16, 90))
        )  # fmt: skip
        write_rows(tmp_path / f"{name}.jsonl", *rows)
    reader = {"class": "CausalLM", "model": tiny("gpt2"), **options}
    pipeline = {
        "chunker": {"class": "Lines", "size": 3},
        "reader": {"class": "Calibrated", "reader": reader},
        "combiner": {"class": "Percentage", "share": "pooled"},
    }
    task = {"class": "JsonLines", "path": "{split}.jsonl", "metrics": ["exponential_similarity"]}
    config = tmp_path / "mine.yaml"
    config.write_text(json.dumps({"pipelines": {"mine": pipeline}, "tasks": {"shares": task}}))
    trained = train("mine", "shares", config=[config], out=tmp_path / "model")
    assert (trained.examples, trained.inputs) == (3, 12)
    configs, out = [config, trained.config], tmp_path / "run"
    summary = run([trained.pipeline], ["shares"], config=configs, split="test", out=out, workers=0)
    predictions = summary.predictions(trained.pipeline, "shares")
    low, middle, high = (float(p.prediction.removesuffix("%")) for p in predictions)
    assert 0 <= low < middle < high <= 100
    assert high - low > 40
