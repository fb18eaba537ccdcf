"""Compares methods that make, find and read passages with the plain pipeline: docs/methods.md.

    leporello run --suite methods --config benchmarks/methods.yaml --out RUN
    python -m benchmarks.methods RUN… --data DATA

DATA holds what `benchmarks.evidence` reads, whose supporting paragraphs are the evidence of MuSiQue
and HotpotQA; questions on novels have theirs in their task's file. Scores and their differences
are those of `compare`. Recall is of the evidence that the first hits stand for, as many as have the
characters of the plain pipeline's hits: so no method gains by reading more.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.evidence import RESAMPLES, hotpotqa, musique
from leporello.analysis.comparison.comparison import compare
from leporello.analysis.comparison.tables import PipelineScores, TaskComparison
from leporello.core.coverage import merge, overlap
from leporello.core.files import read_rows
from leporello.core.records import Prediction, Span
from leporello.engine.results.serialization import calls_from_row, prediction_from_row
from leporello.jobs.directory import RunDirectory

PLAIN = "default"
PAGE = Path(__file__).parents[1] / "docs" / "methods.md"
GOLD: Mapping[str, Callable[[Path], Iterator[tuple[str, Sequence[Span]]]]] = {
    "zero_scrolls/musique": lambda data: ((q.example.id, q.evidence) for q in musique(data)),
    "muld/hotpotqa": lambda data: ((q.example.id, q.evidence) for q in hotpotqa(data)),
    "novels": lambda data: _of_rows(data / "novels.jsonl"),
}


def main() -> None:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+", help="runs of the suite")
    parser.add_argument("--data", type=Path, required=True, help="where the benchmarks' files lie")
    options = parser.parse_args()
    boards = compare(options.runs, baseline=PLAIN, common=True).boards
    texts = [_board(board, options.data) for board in boards if board.baseline]
    head = PAGE.read_text(encoding="utf-8").partition("<!-- measured -->")[0]
    PAGE.write_text(f"{head}<!-- measured -->\n" + "".join(texts), encoding="utf-8")


def _board(board: TaskComparison, data: Path) -> str:
    metric = next(iter(board.metrics))
    entries = [*{entry.pipeline: entry for entry in board.entries}.values()]  # the last run's count
    gold = dict(GOLD[board.task](data)) if board.task in GOLD else {}
    made = {e.pipeline: _predictions(e.run, e.pipeline, board.task) for e in entries}
    shares = {name: _recalls(own, made[PLAIN], gold) for name, own in made.items()}
    ordered = sorted(entries, key=lambda e: (e.pipeline != PLAIN, -e.scores[metric].value))
    lines = [_line(entry, board.task, metric, shares) for entry in ordered]
    found = " recall, at plain's characters |" if gold else ""
    bar = "--:|" if gold else ""
    return (
        f"\n## {board.task}\n\n{entries[0].examples} questions; score: {metric}.\n\n"
        f"| method | score | less plain |{found} reads | characters given | seconds |\n"
        f"|---|--:|--:|{bar}--:|--:|--:|\n" + "".join(lines)
    )


def _line(
    entry: PipelineScores, task: str, metric: str, shares: Mapping[str, NDArray[np.float64]]
) -> str:
    score, difference = entry.scores[metric], entry.scores[metric].difference
    gain = _gain(difference.value, difference.low, difference.high) if difference else "–"
    recall = ""
    if len(own := shares[entry.pipeline]):
        less = own - shares[PLAIN]
        drawn = np.random.default_rng(0).integers(0, len(less), (RESAMPLES, len(less)))
        ends = np.percentile(less[drawn].mean(axis=1), [2.5, 97.5])
        recall = f" {own.mean():.1f} ({_gain(less.mean(), *ends)}) |"
    seconds = "–" if entry.seconds is None else f"{entry.seconds:.2f}"
    reads, given = _given(entry, task)
    return (
        f"| `{entry.pipeline}` | {score.value:.1f} | {gain} |{recall}"
        f" {reads:.1f} | {given:,.0f} | {seconds} |\n"
    )


def _given(entry: PipelineScores, task: str) -> tuple[float, float]:
    """Returns the reads of a question, and the characters that they were given; means."""
    path = RunDirectory.of_run(entry.run).results(entry.pipeline, task) / "calls.jsonl"
    rows = [calls_from_row(row["calls"]) for row in read_rows(path)]
    given = (
        len(passage) if isinstance(passage, str) else passage[1] - passage[0]
        for calls in rows
        for call in calls
        for passage in call["passages"]
    )
    return sum(map(len, rows)) / max(len(rows), 1), sum(given) / max(len(rows), 1)


def _gain(value: float, low: float, high: float) -> str:
    """Returns a difference with its interval, bold where that leaves 0 out."""
    text = f"{value:+.1f} [{low:+.1f}, {high:+.1f}]"
    return f"**{text}**" if low > 0 or high < 0 else text


def _predictions(run: Path, pipeline: str, task: str) -> dict[str, Prediction]:
    path = RunDirectory.of_run(run).results(pipeline, task) / "predictions.jsonl"
    return {row["id"]: prediction_from_row(row) for row in read_rows(path)}


def _recalls(
    own: Mapping[str, Prediction],
    plain: Mapping[str, Prediction],
    gold: Mapping[str, Sequence[Span]],
) -> NDArray[np.float64]:
    """Returns the recall of each question's evidence, 0 to 100, shape (questions,)."""
    return np.array(
        [
            _recall(own[one], sum(_lengths(plain[one])), evidence) if one in own else 0.0
            for one, evidence in gold.items()
            if one in plain
        ]
    )


def _lengths(prediction: Prediction) -> list[int]:
    """Returns how many characters a reader would be given of each hit."""
    made = prediction.passages
    return [
        len(made[rank].text) if rank in made else end - start
        for rank, (start, end, _) in enumerate(prediction.hits)
    ]


def _recall(prediction: Prediction, budget: int, evidence: Sequence[Span]) -> float:
    spans: list[Span] = []
    for length, stood in zip(_lengths(prediction), prediction.hit_spans, strict=True):
        if length > budget:
            break
        budget -= length
        spans.extend(stood)
    return 100 * overlap(spans, evidence) / sum(map(len, merge(evidence)))


def _of_rows(path: Path) -> Iterator[tuple[str, Sequence[Span]]]:
    """Yields the evidence of questions on novels."""
    for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        if "question" in row:
            yield row["id"], [Span(*span) for span in row["evidence"]]


if __name__ == "__main__":
    main()
