"""Dividing against cutting: the same reader on as many words, taken from a document in five ways.

    python -m benchmarks.divide_or_cut DATA [--task scrolls/qasper …] [--svg FILE]

DATA holds the benchmarks' files. The reader is that of the pipeline `default`. It reads 4, 8, 16
and 32 chunks of at most 100 words: the first ones, the first and the last, some from all over the
document, or those that BM25 selects; and all chunks. Differences are paired, to the first chunks at
the same budget, with intervals of 95 % of a bootstrap over documents.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from leporello.analysis.comparison.significance import bootstrap, interval
from leporello.api import load_pipelines
from leporello.config.metrics import metrics_of
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.core.records import Example, Read
from leporello.engine.results.serialization import empty_prediction
from leporello.metrics import Resampled, Statistics
from leporello.readers.embedded.encoder import Encoder, TextPair
from leporello.report.plots import Point, Series, lines
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
WORDS = 100  # of a chunk at most, in the pipeline `default`
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


@dataclass
class Remembering:
    """An encoder that reads every window once, since the five ways share most of them.

    Attributes:
        encoder: Encoder that reads.
        known: Scores by window.
    """

    encoder: Encoder
    known: dict[tuple[tuple[int, ...], tuple[int, ...]], Any] = field(default_factory=dict)

    def scores(self, windows: Sequence[TextPair]) -> list[Any]:
        """Returns what each head gives for each window."""
        keys = [(tuple(window.question), tuple(window.text)) for window in windows]
        new = {k: w for k, w in zip(keys, windows, strict=True) if k not in self.known}
        self.known |= zip(new, self.encoder.scores([*new.values()]), strict=True)
        return [self.known[key] for key in keys]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- all else is the encoder's
        return getattr(self.encoder, name)


def main() -> None:
    """Prints a table in Markdown a task, as soon as it is done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="where the benchmarks' files lie")
    parser.add_argument("--task", action="append", choices=[*TASKS], help="all of them if left out")
    parser.add_argument("--svg", type=Path, help="file to draw the scores in, by budget")
    given = parser.parse_args()
    stages = load_pipelines().select(["default"])[0].build()
    drawn = []
    for name in given.task or TASKS:
        stages.reader.__dict__["_encoder"] = Remembering(stages.reader._encoder)
        task = TASKS[name](given.data)
        drawn.append((name, table(name, task, stages)))
    if given.svg:
        given.svg.write_text(drawing(drawn), encoding="utf-8")


def table(name: str, task: Any, stages: Any) -> dict[tuple[str, int], float]:  # noqa: ANN401 -- any task
    """Prints the scores of a task and how they differ; returns them by way and chunks."""
    # MuLD's BLEU and ROUGE say little of answers of two words.
    names = ["f1"] if name == "muld/hotpotqa" else task.metrics
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
    found = {
        key: float(metric.of_sums(sums.sum(axis=0)[None], counts)[0])
        for key, sums in zip(keys, tables, strict=True)
    }
    drawn = bootstrap(tables, metric.of_sums, samples=SAMPLES, seed=0, units=units)
    print(f"\n{name}, {metric.name}: {len(units)} examples, {units[-1] + 1} documents\n")
    print(f"| chunks | {' | '.join(WAYS[:4])} | selected − first |\n|---|---|---|---|---|---|")
    for count in CHUNKS:
        scores = " | ".join(f"{found[way, count]:.1f}" for way in WAYS[:4])
        apart = drawn[keys.index(("selected", count))] - drawn[keys.index(("first", count))]
        gain = found["selected", count] - found["first", count]
        print(f"| {count} | {scores} | {_shown(gain, *interval(apart))} |")
    apart = drawn[keys.index(("all", 0))] - drawn[keys.index(("first", CHUNKS[0]))]
    gain = found["all", 0] - found["first", CHUNKS[0]]
    told = _shown(gain, *interval(apart))
    print(f"\nall chunks: {found['all', 0]:.1f}, more than the first four {told}")
    return found


def answers(
    stages: Any,  # noqa: ANN401 -- a pipeline's
    examples: Sequence[Example],
) -> dict[tuple[str, int], list[str]]:
    """Returns what the reader answers to the questions on a document, by way and chunks."""
    chunks = divide(stages.chunker, examples[0].document)
    found: dict[tuple[str, int], list[str]] = {}
    for way, count, retriever in _ways():
        hits = retrieve(retriever, examples, chunks)
        reads = [
            Read(tuple(h.chunk for h in row), e.question, e.instruction, e.choices)
            for row, e in zip(hits, examples, strict=True)
        ]
        found[way, count] = [output.text for output in stages.reader.read(reads)]
    return found


def _ways() -> Iterator[tuple[str, int, Any]]:
    """Yields each way to take chunks, with their number; 0 stands for all."""
    for count in CHUNKS:
        yield "first", count, First(count)
        yield "ends", count, Ends(count)
        yield "evenly", count, Evenly(count)
        yield "selected", count, BM25(count)
    yield "all", 0, All()


def figure(name: str, found: Mapping[tuple[str, int], float]) -> str:
    """Returns a drawing of a task's scores by budget."""
    series = [
        Series(
            way, tuple(Point(WORDS * n, y, y, y) for (w, n), y in found.items() if w == way and n)
        )
        for way in WAYS[:4]
    ]
    return lines(name, series, x_name="words read", y_name="score", logarithmic=True).svg


def drawing(tasks: Sequence[tuple[str, Mapping[tuple[str, int], float]]]) -> str:
    """Returns the figures of all tasks as one, two a row, with their names above."""
    parts = []
    for number, (name, found) in enumerate(tasks):
        x, y = 660 * (number % 2), 370 * (number // 2)
        place = f'x="{x}" y="{y + 24}" width="640" height="336"'
        parts.append(f'<text x="{x + 56}" y="{y + 18}" class="name">{name}</text>')
        parts.append(figure(name, found).replace("<svg ", f"<svg {place} ", 1))
    height = 370 * ((len(tasks) + 1) // 2)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1300 {height}">'
    paper = '<rect width="100%" height="100%" fill="#fff"/>'
    return "\n".join([head, STYLE, paper, *parts, "</svg>\n"])


def _shown(value: float, low: float, high: float) -> str:
    return f"{value:+.1f} [{low:+.1f}, {high:+.1f}]"


if __name__ == "__main__":
    main()
