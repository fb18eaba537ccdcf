"""Compares dividing with truncation on RULER's needles, at 4k to 1M words, with the same reader.

    python -m benchmarks.ruler [--lengths 4096 … 1048576] [--tasks niah_single_1 …] [--page FILE]

Writes docs/ruler.md and its plot. RULER's tasks are generated, with lengths in words. The reader is
`BestSentence`, which copies the sentence that shares most words with the question, or four
sentences for four values. It reads forty chunks of at most a hundred words: the first forty, or
those that BM25 selects.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.divide_or_cut import STYLE
from leporello.chunkers import Sentences
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.core.records import Example, Read
from leporello.engine.results.finished import empty_prediction
from leporello.metrics.long_context.needles import StringMatchAll
from leporello.readers import BestSentence
from leporello.report.plots import Point, Series, lines
from leporello.retrievers import BM25, First
from leporello.tasks import Ruler

NEEDLES = (
    "niah_single_1", "niah_single_2", "niah_single_3", "niah_multikey_1", "niah_multikey_2",
    "niah_multikey_3", "niah_multivalue", "niah_multiquery",
)  # fmt: skip
OTHERS = ("vt",)
MEAN = "eight needle tasks"
LENGTHS = tuple(4096 * 2**power for power in range(9))
CHUNKS, WORDS = 40, 100  # number of chunks to read, and their maximum length
WAYS: Mapping[str, Any] = {"dividing": BM25(CHUNKS), "cutting": First(CHUNKS)}
ASK_FOUR = ("niah_multivalue", "niah_multiquery", "vt")
Scores = dict[tuple[str, str, int], float]
PAGE = """# RULER: dividing against cutting, 4k to 1M tokens

A reader sees {chunks} chunks of at most {words} words: the first chunks of the document
(*cutting*), or those that BM25 selects for the question (*dividing*). Needles and documents are
generated as in [RULER](benchmarks.md#ruler). Lengths are in words; the score is
`string_match_all`.

![Mean score of the eight needle tasks over length](ruler.svg)

{scores}
{summary}

In `vt` only the first assignment shares a word with the question, so one search finds one of five
variables. `cwe` and `fwe` are left out: frequent words are everywhere.

The reader is not a language model: `BestSentence` copies the sentence that shares most rare words
with the question, or the four best ones for four values. So the page shows whether the needle
reaches the reader. The essays around the needles are the benchmark's noise, since Paul Graham's
essays may not be shipped (`--background FOLDER`).

`python -m benchmarks.ruler` measured this in {minutes:.0f} minutes, with {few} to {many} examples
per task and length. A needle is anywhere with equal probability, so cutting finds about the share
of the document that the reader sees.
"""


def main() -> None:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--tasks", nargs="+", default=(*NEEDLES, *OTHERS))
    parser.add_argument("--background", type=Path, help="folder of texts for the essays")
    parser.add_argument("--page", type=Path, default=Path("docs/ruler.md"))
    options = parser.parse_args()
    start, scores = time.monotonic(), Scores()
    for length in options.lengths:
        for name in options.tasks:
            task = Ruler(name, length, samples=samples(length), background=options.background)
            for way, score in scored(task).items():
                scores[way, name, length] = score
                print(f"{length:>8} {name:<16} {way:<9} {score:6.1f}", flush=True)
    options.page.write_text(page(scores, (time.monotonic() - start) / 60), encoding="utf-8")
    options.page.with_suffix(".svg").write_text(drawing(scores), encoding="utf-8")


def samples(length: int) -> int:
    """Returns the number of examples of a length: 3 to 20, with about a million words in all."""
    return max(3, min(20, 2**20 // length))


def scored(task: Ruler) -> dict[str, float]:
    """Returns the mean score of each way."""
    scores: dict[str, list[float]] = defaultdict(list)
    reader = BestSentence(sentences=4 if task.name in ASK_FOUR else 1)
    for example in task.examples():
        chunks = divide(Sentences(WORDS), example.document)
        for way, retriever in WAYS.items():
            [hits] = retrieve(retriever, [example], chunks)
            read = Read(tuple(hit.chunk for hit in hits), example.question, example.instruction)
            [output] = reader.read([read])
            scores[way].append(score_of(example, output.text))
    return {way: fmean(values) for way, values in scores.items()}


def score_of(example: Example, text: str) -> float:
    """Returns the score of an answer."""
    prediction = replace(empty_prediction(example), prediction=text)
    statistics = StringMatchAll().statistics(prediction, example)
    assert statistics
    return float(statistics["string_match_all"])


def page(scores: Scores, minutes: float) -> str:
    """Returns the page in Markdown."""
    lengths = sorted({length for *_, length in scores})
    means = {way: dict(mean(scores, way)) for way in WAYS}
    rows = {(w, MEAN, n): score for w, by in means.items() for n, score in by.items()}
    first, last = lengths[0], lengths[-1]
    summary = (
        f"With dividing, the worst needle task has {worst(scores)}. Cutting falls from"
        f" {means['cutting'][first]:.1f} to {means['cutting'][last]:.1f}, where the reader sees"
        f" {100 * CHUNKS * WORDS / last:.1f} % of the document."
    )
    return PAGE.format(
        chunks=CHUNKS,
        words=WORDS,
        minutes=max(1, minutes),
        summary=summary,
        scores=table(scores | rows, (MEAN, *OTHERS), lengths),
        few=samples(last),
        many=samples(first),
    )


def worst(scores: Scores) -> str:
    """Returns the lowest score of dividing, with its task and length."""
    divided = {key: score for key, score in scores.items() if key[0] == "dividing"}
    needles = {key: score for key, score in divided.items() if key[1] in NEEDLES}
    (_, name, length), score = min(needles.items(), key=lambda item: item[1])
    return f"{score:.1f}, {name} at {length:,}" if score < 100 else "100.0 at every length"


def table(scores: Scores, names: Sequence[str], lengths: Sequence[int]) -> str:
    """Returns a table with one line per task and way."""
    head = f"| task | | {' | '.join(f'{length // 1024}k' for length in lengths)} |"
    rows = [head, f"|---|---|{'---|' * len(lengths)}"]
    for name in names:
        for way in WAYS:
            cells = [scores.get((way, name, length)) for length in lengths]
            texts = " | ".join("–" if cell is None else f"{cell:.1f}" for cell in cells)
            rows.append(f"| {name} | {way} | {texts} |")
    return "\n".join(rows) + "\n"


def mean(scores: Scores, way: str) -> list[tuple[int, float]]:
    """Returns the mean of the needle tasks for each length."""
    by_length: dict[int, list[float]] = defaultdict(list)
    for (score_way, name, length), score in scores.items():
        if score_way == way and name in NEEDLES:
            by_length[length].append(score)
    return [(length, fmean(values)) for length, values in sorted(by_length.items())]


def drawing(scores: Scores) -> str:
    """Returns a plot of both ways over length."""
    series = [Series(way, tuple(Point(x, y, y, y) for x, y in mean(scores, way))) for way in WAYS]
    [(_, plot)] = lines(
        "Needles of RULER: mean score over length",
        series,
        x_name="words of the document",
        y_name="string_match_all",
        logarithmic=True,
    ).panels
    head = '<svg xmlns="http://www.w3.org/2000/svg" '
    paper = '<rect width="100%" height="100%" fill="#fff"/>'
    return plot.replace("<svg ", head, 1).replace(">", f">{STYLE}{paper}", 1) + "\n"


if __name__ == "__main__":
    main()
