"""Measures at which stage the pipeline `default` loses answers to questions.

    python -m benchmarks.losses DATA [--task scrolls/qasper …] [--precision float32]

DATA contains the benchmarks' files. Printed are F1 x 100 with 95 % intervals by a bootstrap over
documents: of the answers; of the answers from only those passages that contain a reference, where
there are any; of the better of the first two candidates; and of the best of all candidates. Then
follows the share of questions with a reference in their passages.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.divide_or_cut import SAMPLES, TASKS, Remembering
from leporello.analysis.comparison.significance import Numbers, bootstrap, interval
from leporello.api import load_pipelines
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.core.records import Example, Read
from leporello.engine.reading import BatchReaders
from leporello.engine.rounds import Rounds
from leporello.engine.store import MemoryStore
from leporello.readers.embedded.answers import answer_question
from leporello.readers.embedded.rows import looked_up
from leporello.readers.prompting.template import passage_text
from leporello.text.squad import normalise, token_f1

QUESTIONS = ("scrolls/qasper", "zero_scrolls/musique", "muld/hotpotqa")
STAGES = ("answer", "passages with a reference only", "better of two", "best of all", "reference")


def main() -> None:
    """Prints a table in Markdown; each task adds a row when it is finished."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of the benchmarks' files")
    parser.add_argument("--task", action="append", choices=QUESTIONS, help="task; default: all")
    parser.add_argument("--precision", default="auto", choices=["auto", "float32"])
    options = parser.parse_args()
    stages = load_pipelines().select(["default"])[0].build()
    stages = replace(stages, reader=replace(stages.reader, precision=options.precision))
    print(f"| task | questions | {' | '.join(STAGES)} |\n|---|---|---|---|---|---|---|")
    for name in options.task or QUESTIONS:
        units, rows = scores(stages, TASKS[name](options.data))
        tables = [np.array(column)[:, None] * 100 for column in zip(*rows, strict=True)]
        samples = bootstrap(tables, _mean, samples=SAMPLES, seed=0, units=units)
        cells = [
            f"{table.mean():.1f} [{low:.1f}, {high:.1f}]"
            for table, (low, high) in zip(tables, map(interval, samples), strict=True)
        ]
        print(f"| {name} | {len(rows)} | {' | '.join(cells)} |", flush=True)


def _mean(sums: Numbers, counts: Numbers) -> Numbers:
    means: Numbers = sums[:, 0] / counts
    return means


def scores(stages: Any, task: Any) -> tuple[list[int], list[list[float]]]:  # noqa: ANN401 -- any
    """Returns the document's number and the scores by stage, 0 to 1, of each question."""
    units: list[int] = []
    rows: list[list[float]] = []
    documents = groupby(task.examples(), key=lambda example: id(example.document))
    for number, (_, group) in enumerate(documents):
        # A new memory for each document: its passages are read again, those of others are not.
        reader = replace(stages.reader)
        reader.__dict__["_encoder"] = Remembering(stages.reader._encoder)
        for row in _rows(replace(stages, reader=reader), [e for e in group if not e.fault]):
            units.append(number)
            rows.append(row)
    return units, rows


def _rows(stages: Any, examples: Sequence[Example]) -> Iterator[list[float]]:  # noqa: ANN401
    chunks = divide(stages.chunker, examples[0].document)
    hits = retrieve(stages.retriever, examples, chunks)
    store = MemoryStore()
    Rounds(BatchReaders(stages), store).run(examples)
    for example, row, answered in zip(examples, hits, store.rows(), strict=True):
        read = Read(tuple(h.chunk for h in row), example.question, example.instruction)
        references = [normalise(reference) for reference in example.references]
        supported = [p for p in read.passages if _holds(passage_text(p), references)]
        [best] = stages.reader.read([replace(read, passages=tuple(supported) or read.passages)])
        f1 = [_f1(text, references) for text in _candidates(stages.reader, read)] or [0.0]
        yield [
            _f1(answered.prediction["prediction"] if answered.prediction else "", references),
            _f1(best.text, references),
            max(f1[:2]),
            max(f1),
            float(bool(supported)),
        ]


def _candidates(reader: Any, read: Read) -> list[str]:  # noqa: ANN401 -- an Embedded
    texts = [*map(passage_text, read.passages)]
    answered = answer_question(reader._encoder, read.question, texts)
    return [c.text for c in looked_up(read.question, read.passages, answered.candidates)]


def _holds(passage: str, references: Sequence[str]) -> bool:
    return any(reference in normalise(passage) for reference in references if reference)


def _f1(text: str, references: Sequence[str]) -> float:
    words = normalise(text).split()
    return max((token_f1(words, reference.split()) for reference in references), default=0.0)


if __name__ == "__main__":
    main()
