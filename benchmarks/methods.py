"""Compares methods that make, find and read passages with the plain pipeline: docs/methods.md.

    leporello run --suite methods --config benchmarks/methods.yaml --out RUN
    python -m benchmarks.methods RUN… --data DATA >TABLES
    python -m benchmarks.page docs/methods.md methods TABLES

DATA contains the files of `benchmarks.evidence`, whose supporting paragraphs are the evidence of
MuSiQue and HotpotQA; the evidence of questions on novels is in their task's file. Scores and
differences are those of `compare`, by the scores of the suite's columns. Recall is measured for the
first hits that have together as many characters as the plain pipeline's hits, so that no method
gains by reading more. The tables have no seconds, since methods share what they cache.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

from benchmarks.evidence import RESAMPLES, hotpotqa, musique
from leporello.analysis.comparison.comparison import compare
from leporello.analysis.comparison.tables import PipelineScores, TaskComparison
from leporello.core.coverage import merge, overlap
from leporello.core.files import read_rows
from leporello.core.records import Prediction, Span
from leporello.engine.results.finished import prediction_from_row
from leporello.jobs.directory import RunDirectory

PLAIN = "default"
_SUITE = yaml.safe_load(Path(__file__).with_name("methods.yaml").read_text("utf-8"))["suites"]
_COLUMNS = _SUITE["methods"]["columns"].values()
SCORES: Mapping[str, str] = {column["task"]: column["score"] for column in _COLUMNS}
GOLD: Mapping[str, Callable[[Path], Iterator[tuple[str, Sequence[Span]]]]] = {
    "zero_scrolls/musique": lambda data: ((q.example.id, q.evidence) for q in musique(data)),
    "muld/hotpotqa": lambda data: ((q.example.id, q.evidence) for q in hotpotqa(data)),
    "novels": lambda _: _of_rows(Path(__file__).with_name("novels.jsonl")),  # as in methods.yaml
}


def main() -> None:
    """Prints the tables of the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+", help="runs of the suite")
    parser.add_argument("--data", type=Path, required=True, help="folder of the benchmarks' files")
    options = parser.parse_args()
    comparison = compare(options.runs, baseline=PLAIN, common=True)
    boards = [board for board in comparison.boards if board.baseline]
    tables = "".join(_board(board, options.data) for board in boards)
    names = {entry.pipeline: None for board in boards for entry in board.entries}
    others = ", ".join(f"`{name}`" for name in names if f"`{name}`" not in tables)
    last = f"\n## No gain or loss on any task\n\n{others}." if others else ""
    print(f"{tables}{last}".strip())


def _board(board: TaskComparison, data: Path) -> str:
    """Returns the table of a task: scores of the plain pipeline, and differences to them."""
    metric = SCORES[board.task]
    entries = [*{entry.pipeline: entry for entry in board.entries}.values()]  # the last run's count
    gold = dict(GOLD[board.task](data)) if board.task in GOLD else {}
    by_pipeline = {e.pipeline: _predictions(e.run, e.pipeline, board.task) for e in entries}
    plain = by_pipeline[PLAIN]
    shares = {name: _recalls(rows, plain, gold) for name, rows in by_pipeline.items()}
    ordered = sorted(entries, key=lambda e: (e.pipeline != PLAIN, -e.scores[metric].value))
    lines = [_line(entry, metric, shares[entry.pipeline], shares[PLAIN]) for entry in ordered]
    recall = " recall at equal characters |" if gold else ""
    bar = "--:|" if gold else ""
    return (
        f"\n## {board.task} ({entries[0].examples} questions)\n\n"
        f"| method | {metric} |{recall}\n|---|--:|{bar}\n" + "".join(lines)
    )


def _line(
    entry: PipelineScores, metric: str, recalls: NDArray[np.float64], plain: NDArray[np.float64]
) -> str:
    """Returns a row; an empty text for a method without another score or a higher recall."""
    score, difference = entry.scores[metric], entry.scores[metric].difference
    if not difference:
        recall = f" {plain.mean():.1f} |" if len(plain) else ""
        return f"| `{entry.pipeline}` | {score.value:.1f} |{recall}\n"
    gain = _gain(difference.value, difference.low, difference.high)
    recall = ""
    if len(plain):
        gains = recalls - plain
        samples = np.random.default_rng(0).integers(0, len(gains), (RESAMPLES, len(gains)))
        ends = np.percentile(gains[samples].mean(axis=1), [2.5, 97.5])
        recall = f" {_gain(gains.mean(), *ends)} |"
    if "**" not in gain and "**+" not in recall:
        return ""
    return f"| `{entry.pipeline}` | {gain} |{recall}\n"


def _gain(value: float, low: float, high: float) -> str:
    """Returns a difference with its interval, in bold if the interval excludes 0."""
    text = f"{value:+.1f} [{low:+.1f}, {high:+.1f}]"
    return f"**{text}**" if low > 0 or high < 0 else text


def _predictions(run: Path, pipeline: str, task: str) -> dict[str, Prediction]:
    path = RunDirectory.of_run(run).results(pipeline, task) / "predictions.jsonl"
    return {row["id"]: prediction_from_row(row) for row in read_rows(path)}


def _recalls(
    predictions: Mapping[str, Prediction],
    plain: Mapping[str, Prediction],
    gold: Mapping[str, Sequence[Span]],
) -> NDArray[np.float64]:
    """Returns the recall of each question's evidence, 0 to 100, shape (questions,)."""
    budgets = {key: sum(_lengths(prediction)) for key, prediction in plain.items()}
    return np.array(
        [
            _recall(predictions[key], budgets[key], evidence) if key in predictions else 0.0
            for key, evidence in gold.items()
            if key in plain
        ]
    )


def _lengths(prediction: Prediction) -> list[int]:
    """Returns the number of characters that a reader reads of each hit."""
    passages = prediction.passages
    return [
        len(passages[rank].text) if rank in passages else end - start
        for rank, (start, end, _) in enumerate(prediction.hits)
    ]


def _recall(prediction: Prediction, budget: int, evidence: Sequence[Span]) -> float:
    spans: list[Span] = []
    for length, hit_spans in zip(_lengths(prediction), prediction.hit_spans, strict=True):
        if length > budget:
            break
        budget -= length
        spans.extend(hit_spans)
    return 100 * overlap(spans, evidence) / sum(map(len, merge(evidence)))


def _of_rows(path: Path) -> Iterator[tuple[str, Sequence[Span]]]:
    """Yields the evidence of questions on novels."""
    for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        if "question" in row:
            yield row["id"], [Span(*span) for span in row["evidence"]]


if __name__ == "__main__":
    main()
