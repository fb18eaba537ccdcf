"""Tests of user-defined metrics in YAML and on the command line."""

import json
from pathlib import Path

import pytest
from command_line import HERE, leporello, read_lines, write_files

from leporello.config import load_config
from leporello.config.metrics import metrics_of
from leporello.core.errors import UserError
from leporello.metrics.own import OwnMetric

MINE = '''
from dataclasses import dataclass

@dataclass(frozen=True)
class WordCount:
    """How long answers are."""

    most: float = 1000

    def statistics(self, prediction, example):
        return (min(len(prediction.prediction.split()), self.most),)

    def aggregate(self, statistics):
        counts = [count for [count] in statistics]  # lists: they come from a file
        return {"mean": sum(counts) / len(counts), "longest": max(counts)}

class Raising(WordCount):
    def statistics(self, prediction, example):
        return 1 / len(example.id.strip("f")) if example.references else None

class NoJson(WordCount):
    def statistics(self, prediction, example):
        return {1, 2}

class NoNumber(WordCount):
    def aggregate(self, statistics):
        return float("nan")

class Leaving(WordCount):
    def aggregate(self, statistics):
        raise GeneratorExit

class Short:
    def aggregate(self, statistics):
        return 1

class Narrow(WordCount):
    def statistics(self, prediction):
        return 1

class Named(Raising):
    name, headline, signature = "own", "b", "mine|v1"

    def aggregate(self, statistics):
        return {"a": 1, "b": len(statistics)}

    def score(self, statistics):
        return 7
'''


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Writes a file with metrics, and a config whose task has one of them."""
    metrics = "[f1, {class: ./mine.py:WordCount, most: 9}]"
    task = f"tasks:\n  asked: {{class: Sample, metrics: {metrics}}}\n"
    write_files(tmp_path, {"mine.py": MINE, "mine.yaml": task})
    return tmp_path / "mine.yaml"


@pytest.mark.integration
def test_a_user_defined_metric_works_like_a_built_in_metric(mine: Path, tmp_path: Path) -> None:
    run, second_run, name = tmp_path / "run", tmp_path / "other", f"{tmp_path}/mine.py:WordCount"
    common = ("--config", mine, "--task", "asked", "--limit", "6", *HERE)
    leporello("run", "lead", *common, "--out", run)
    row = json.loads((run / "lead/asked/metrics.json").read_text())
    assert [*row["scores"]] == ["f1", "word_count", "word_count[mean]", "word_count[longest]"]
    assert row["scores"]["word_count"] == row["scores"]["word_count[mean]"] <= 9
    assert "class:WordCount|source:" in row["signatures"]["word_count"]
    assert row["signatures"]["word_count"].endswith("|most:9.0")
    metrics = ("--metric", f"{{class: {name}, most: 3}}", "--metric", "recall")
    leporello("run", "best-sentence", "lead", *common, *metrics, "--out", second_run)
    few = ("--samples", "100")
    compared = json.loads(leporello("compare", second_run, *few, "--format", "json").stdout)
    first, second = compared["boards"][0]["entries"]
    assert first["scores"]["word_count"]["interval"]
    assert second["scores"]["word_count"]["difference"]
    assert "was not computed alike" in leporello("compare", run, second_run, *few).stdout
    leporello("report", run, "--out", tmp_path / "report.html")
    predictions = run / "lead/asked/predictions.jsonl"
    assert ", word_count " in leporello("explain", run, read_lines(predictions)[0]["id"]).stdout
    task = ("--config", mine, "--task", "asked", *metrics, "--json")
    assert "missing ids of the task" in leporello("score", predictions, *task, status=2).stderr
    changed = leporello("run", "lead", *common, "--metric", "f1", "--out", run, status=2)
    assert "was created with other settings" in changed.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Raising", "Raising.statistics failed: ZeroDivisionError: division by zero"),
        ("NoJson", "NoJson.statistics returned {1, 2}, which is not JSON"),
        ("NoNumber", "NoNumber.aggregate returned nan, which is not a finite number"),
        ("Leaving", "Leaving.aggregate failed: GeneratorExit"),
    ],
)
def test_a_failing_metric_is_reported_with_its_line_and_loses_no_prediction(
    mine: Path, tmp_path: Path, name: str, message: str
) -> None:
    source = (tmp_path / "mine.py").read_text()
    (tmp_path / "mine.py").write_text(source.replace('strip("f")', "strip(example.id)"))
    metrics = ("--metric", "f1", "--metric", f"{tmp_path}/mine.py:{name}")
    options = ("--config", mine, "--task", "asked", "--limit", "3", "--out", tmp_path / "run")
    result = leporello("run", "lead", *HERE, *metrics, *options, status=1)
    output = result.stdout + result.stderr
    assert message in output
    assert f"({tmp_path}/mine.py, line " in output
    row = json.loads((tmp_path / "run/lead/asked/metrics.json").read_text())
    assert ([*row["scores"]], row["examples"], row["failures"]) == (["f1"], 3, 0)
    assert len(read_lines(tmp_path / "run/lead/asked/predictions.jsonl")) == 3


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("[./mine.py:WordCont]", "0.class: .*has no class 'WordCont'; did you mean 'WordCount'"),
        ("[f1, f2]", "1.class: there is no metric 'f2'; did you mean 'f1'; name your own"),
        ("[{class: ./mine.py:WordCount, mots: 3}]", "0.mots: .* did you mean 'most'"),
        (
            "[{class: ./mine.py:WordCount, most: [1, 2]}]",
            "0.most: only parameters of stages can be swept",
        ),
        ("[./mine.py:Short]", "Short is not a valid metric: it has no method 'statistics'"),
        ("[./mine.py:Narrow]", r"must take \(prediction, example\)"),
        ("f1", "must be a list of metrics"),
    ],
)
def test_faults_of_metrics_in_yaml_are_reported(mine: Path, metrics: str, message: str) -> None:
    mine.write_text(f"tasks:\n  asked: {{class: Sample, metrics: {metrics}}}\n")
    with pytest.raises(UserError, match=f"mine.yaml:2: tasks.asked.metrics.*{message}"):
        load_config([mine])


def test_metrics_of_a_data_set_can_be_replaced(mine: Path) -> None:
    mine.write_text("tasks: {mine: {class: Scrolls, name: qasper, metrics: [rouge]}}")
    task = load_config([mine]).tasks["mine"]
    assert task.metrics_of(task.spec.build()) == ("rouge",)
    assert task.resolved()["metrics"] == ["rouge"]


@pytest.mark.usefixtures("mine")
def test_duplicate_names_are_refused_and_defaults_can_be_overridden(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="two metrics are called 'word_count'"):
        metrics_of([{"class": f"{tmp_path}/mine.py:WordCount", "most": n} for n in (1, 2)])
    [metric] = metrics_of([f"{tmp_path}/mine.py:Named"]).values()
    assert (metric.name, metric.headline, metric.signature) == ("own", "own", "mine|v1")
    assert metric.aggregate([{"value": 1}] * 2) == {"own": 2.0, "own[a]": 1.0, "own[b]": 2.0}
    assert metric.score({"value": 1}) == 7.0
    assert isinstance(metric, OwnMetric)
