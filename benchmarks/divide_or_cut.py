"""Compares dividing with truncation: one reader, and equally many words, chosen in five ways.

    python -m benchmarks.divide_or_cut DATA [--task scrolls/qasper …] [--svg FILE]

DATA contains the benchmarks' files. The reader of the pipeline `default` reads 4, 8, 16 and 32
chunks of at most 100 words: the first chunks, the first and the last, evenly spaced chunks, or
those that BM25 selects; and all chunks. Differences to the first chunks with the same budget are
paired, with 95 % intervals by a bootstrap over documents.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from leporello.analysis.comparison.significance import bootstrap, interval
from leporello.api import load_pipelines
from leporello.config.metrics import metrics_of
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.core.records import Example, Read
from leporello.engine.results.finished import empty_prediction
from leporello.metrics import Resampled, Statistics
from leporello.readers.embedded.encoder import TextPair
from leporello.readers.embedded.spans import SpanHead
from leporello.report.plots import Axes, Point, Series, panel
from leporello.retrievers import BM25, All, Ends, Evenly, First
from leporello.tasks import Muld, Scrolls, ZeroScrolls

TASKS: Mapping[str, Any] = {
    "muld/hotpotqa": lambda data: Muld("hotpotqa", split="validation", data=data),
    "scrolls/qasper": lambda data: Scrolls("qasper", data=data),
    "scrolls/quality": lambda data: Scrolls("quality", data=data),
    "scrolls/contract_nli": lambda data: Scrolls("contract_nli", data=data),
    "scrolls/qmsum": lambda data: Scrolls("qmsum", data=data),
    "zero_scrolls/musique": lambda data: ZeroScrolls("musique", data=data),
    "zero_scrolls/squality": lambda data: ZeroScrolls("squality", data=data),
}
CHUNKS = (4, 8, 16, 32)
WORDS = 100  # maximum per chunk in the pipeline `default`
WAYS = ("first", "ends", "evenly", "selected", "all")
SAMPLES = 10_000
COLOURS = ("#777", "#b35900", "#7a3e9d", "#0b62a8")
STYLE = (
    "<style>text { font: 13px system-ui, sans-serif; } .name { font-weight: 600; }"
    " .tick, .axis { fill: #666; font-size: 12px; } .grid { stroke: #ddd; }"
    " .line { fill: none; stroke-width: 2; } .band { opacity: 0; }"
    " .line.s1 { stroke-dasharray: 8 3; } .line.s2 { stroke-dasharray: 3 3; }"
    + "".join(
        f" .line.s{n} {{ stroke: {c}; }} .mark.s{n} {{ fill: {c}; }}" for n, c in enumerate(COLOURS)
    )
    + "</style>"
)


class Remembering(SpanHead):
    """An encoder that memoises scores, since the five ways share most windows."""

    def __init__(self, encoder: SpanHead) -> None:
        """Reads with the model of another encoder."""
        self.__dict__ |= vars(encoder)
        self.cached: dict[tuple[tuple[int, ...], tuple[int, ...]], Any] = {}  # scores by window

    def scores(self, windows: Sequence[TextPair]) -> list[Any]:
        """Returns the scores of each head for each window."""
        keys = [(tuple(window.question), tuple(window.text)) for window in windows]
        new = {k: w for k, w in zip(keys, windows, strict=True) if k not in self.cached}
        self.cached |= zip(new, super().scores([*new.values()]), strict=True)
        return [self.cached[key] for key in keys]


def main() -> None:
    """Prints a table in Markdown, the rows of each task when it is finished."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of the benchmarks' files")
    parser.add_argument("--task", action="append", choices=[*TASKS], help="task; default: all")
    parser.add_argument("--svg", type=Path, help="file for a plot of the scores by budget")
    options = parser.parse_args()
    stages = load_pipelines().select(["default"])[0].build()
    print("| task (questions, documents) | chunks | first | selected | difference |")
    print("|---|---|---|---|---|")
    scores = []
    for name in options.task or TASKS:
        stages.reader.__dict__["_encoder"] = Remembering(stages.reader._encoder)
        task = TASKS[name](options.data)
        scores.append((name, table(name, task, stages)))
    if options.svg:
        options.svg.write_text(drawing(scores), encoding="utf-8")


def table(name: str, task: Any, stages: Any) -> dict[tuple[str, int], float]:  # noqa: ANN401 -- any task
    """Prints the rows of a task; returns scores by way and chunks."""
    # MuLD's BLEU and ROUGE are not informative for answers of two words; the first metric of the
    # other tasks is that of their benchmark.
    names = ["f1"] if name == "muld/hotpotqa" else [*task.metrics][:1]
    [metric] = metrics_of(names).values()
    assert isinstance(metric, Resampled)
    rows: dict[tuple[str, int], list[Statistics]] = {}
    units: list[int] = []
    documents = groupby(task.examples(), key=lambda example: id(example.document))
    for number, (_, group) in enumerate(documents):
        examples = [example for example in group if not example.fault]
        for key, texts in answers(stages, examples).items():
            rows.setdefault(key, []).extend(
                metric.statistics(replace(empty_prediction(e), prediction=t), e) or {}
                for e, t in zip(examples, texts, strict=True)
            )
        units += [number] * len(examples)
    keys = [*rows]
    tables = [metric.summands(rows[key]) for key in keys]
    counts = np.array([float(len(units))])
    scores = {
        key: float(metric.of_sums(sums.sum(axis=0)[None], counts)[0])
        for key, sums in zip(keys, tables, strict=True)
    }
    samples = bootstrap(tables, metric.of_sums, samples=SAMPLES, seed=0, units=units)
    label = f" {name} ({len(units)}, {units[-1] + 1})"
    for way, count, cut in [*(("selected", n, n) for n in CHUNKS), ("all", 0, CHUNKS[0])]:
        gains = samples[keys.index((way, count))] - samples[keys.index(("first", cut))]
        before, after = scores["first", cut], scores[way, count]
        difference = _with_interval(after - before, *interval(gains))
        print(f"|{label} | {count or way} | {before:.1f} | {after:.1f} | {difference} |")
        label = ""  # the next rows are of the same task
    return scores


def answers(
    stages: Any,  # noqa: ANN401 -- a pipeline
    examples: Sequence[Example],
) -> dict[tuple[str, int], list[str]]:
    """Returns the reader's answers to the questions on a document, by way and chunks."""
    chunks = divide(stages.chunker, examples[0].document)
    texts: dict[tuple[str, int], list[str]] = {}
    for way, count, retriever in _ways():
        hits = retrieve(retriever, examples, chunks)
        reads = [
            Read(tuple(h.chunk for h in row), e.question, e.instruction, e.choices)
            for row, e in zip(hits, examples, strict=True)
        ]
        texts[way, count] = [output.text for output in stages.reader.read(reads)]
    return texts


def _ways() -> Iterator[tuple[str, int, Any]]:
    """Yields each way to choose chunks, with their number; 0 means all."""
    for count in CHUNKS:
        yield "first", count, First(count)
        yield "ends", count, Ends(count)
        yield "evenly", count, Evenly(count)
        yield "selected", count, BM25(count)
    yield "all", 0, All()


def figure(name: str, scores: Mapping[tuple[str, int], float]) -> str:
    """Returns a plot of a task's scores by budget."""
    series = [
        Series(
            way, tuple(Point(WORDS * n, y, y, y) for (w, n), y in scores.items() if w == way and n)
        )
        for way in WAYS[:4]
    ]
    points = [point for line in series for point in line.points]
    return panel(name, series, Axes.around(points, "words read", "score", logarithmic=True))


def drawing(tasks: Sequence[tuple[str, Mapping[tuple[str, int], float]]]) -> str:
    """Returns the plots of all tasks in one drawing, two per row, with their names above."""
    parts = []
    for number, (name, scores) in enumerate(tasks):
        x, y = 660 * (number % 2), 370 * (number // 2)
        place = f'x="{x}" y="{y + 24}" width="640" height="336"'
        parts.append(f'<text x="{x + 56}" y="{y + 18}" class="name">{name}</text>')
        parts.append(figure(name, scores).replace("<svg ", f"<svg {place} ", 1))
    height = 370 * ((len(tasks) + 1) // 2)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1300 {height}">'
    paper = '<rect width="100%" height="100%" fill="#fff"/>'
    return "\n".join([head, STYLE, paper, *parts, "</svg>\n"])


def _with_interval(value: float, low: float, high: float) -> str:
    return f"{value:+.1f} [{low:+.1f}, {high:+.1f}]"


if __name__ == "__main__":
    main()
