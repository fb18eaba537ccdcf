"""Compares the recall of several hops with one hop of equally many hits.

    python -m benchmarks.multi_hop --data DATA [--sets musique hotpotqa] [--readers]
    python -m benchmarks.multi_hop --data DATA --retrievers BM25 Dense ColBERT Dense+ColBERT

DATA contains the files of `benchmarks.evidence`. Each question is searched with `MultiHop`, and
once with the same number of hits, so that both have the same budget. Printed are the mean recall of
the supporting paragraphs' characters, the share of questions with complete recall, and the gain of
several hops over one, with 95 % intervals by paired bootstrap. `--readers` adds queries by the
model of the default pipeline. `--retrievers` compares retrievers under the default `MultiHop`
instead: the share of questions with complete recall, the words of all hits, and the paired gain
over the first retriever.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.evidence import POOL, RESAMPLES, Question, hotpotqa, musique
from leporello.chunkers import FixedTokens, Parts
from leporello.combiners import MultiHop
from leporello.config import Pipeline
from leporello.core.calls.stage_calls import read
from leporello.core.coverage import merge, overlap
from leporello.core.records import Example, Hit, Span
from leporello.engine.active_example import ActiveExample
from leporello.engine.selection import select
from leporello.readers import CausalLM, Lead
from leporello.retrievers import BM25, ColBERT, Dense, EntityGraph, Fusion, TfIdf

RETRIEVERS: Mapping[str, Callable[[int], Any]] = {
    "TfIdf": lambda k: TfIdf(k=k),
    "BM25": lambda k: BM25(k=k),
    "Dense": lambda k: Dense(k=k),
}
COMPARED: Mapping[str, Callable[[int], Any]] = {
    **RETRIEVERS,
    "ColBERT": lambda k: ColBERT(k=k),
    "Dense+ColBERT": lambda k: Fusion((Dense(k=POOL), ColBERT(k=POOL)), k=k),
    "EntityGraph": lambda k: EntityGraph(BM25(k=POOL), k=k),
    "EntityGraph of Dense": lambda k: EntityGraph(Dense(k=POOL), k=k),
}
SETS: Mapping[str, tuple[Callable[[Path], Iterator[Question]], Any]] = {
    "musique": (musique, Parts()),
    "hotpotqa": (hotpotqa, FixedTokens(size=200)),
}
WAYS: Mapping[str, Mapping[str, Any]] = {
    "names, 2 sentences": {},
    "names, 1 sentence": {"sentences": 1},
    "names, whole passage": {"sentences": 0},
    "passage, 2 sentences": {"query": "passage"},
    "passage, whole (MDR)": {"query": "passage", "sentences": 0},
    "names, beam 1": {"beam": 1, "new": 6},
    "names, 3 hops": {"hops": 3, "new": 1},
}
READERS: Mapping[str, Mapping[str, Any]] = {"reader": {"query": "reader"}}
FIRST = 5  # hits of the first hop
WHOLE = 0.95  # share of a complete paragraph, since chunks leave out blanks


@dataclass(frozen=True)
class Nothing:
    """A combiner that reads nothing, since only the hits are measured."""

    def combine(self, example: Example, hits: Sequence[Hit]) -> str:  # noqa: ARG002 -- the signature of combiners
        """Returns an empty answer."""
        return ""


def main() -> None:
    """Prints a table for each set and retriever, or a comparison of retrievers for each set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the benchmarks' files")
    parser.add_argument("--sets", nargs="+", default=[*SETS], choices=[*SETS])
    parser.add_argument("--retrievers", nargs="+", choices=[*COMPARED], help="compare these")
    parser.add_argument("--readers", action="store_true", help="also make queries with a model")
    options = parser.parse_args()
    ways = {**WAYS, **(READERS if options.readers else {})}
    for name in options.sets:
        load_questions, chunker = SETS[name]
        questions = [*load_questions(options.data)]
        title = f"{name}, {len(questions)} questions"
        if options.retrievers:
            compare_retrievers(title, questions, chunker, options.retrievers)
            continue
        for retriever, make in RETRIEVERS.items():
            compare(f"{title}, {retriever}", questions, chunker, make, ways)


def compare_retrievers(
    title: str,
    questions: Sequence[Question],
    chunker: Any,  # noqa: ANN401 -- any chunker
    names: Sequence[str],
) -> None:
    """Prints the recall of several hops with each retriever, and the gain over the first."""
    table = Table("retriever", "recall", "all found", "words", "gain in all found", title=title)
    first = None
    for name in names:
        stages = Pipeline(chunker, COMPARED[name](FIRST), Lead(), MultiHop(combiner=Nothing()))
        rankings = several_hops(stages, questions)
        recall, complete = scored(rankings, questions).T
        first = complete if first is None else first
        words = np.mean([sum(len(hit.chunk.text.split()) for hit in hits) for hits in rankings])
        means = (f"{100 * recall.mean():.1f}", f"{100 * complete.mean():.1f}", f"{words:.0f}")
        table.add_row(name, *means, cells(first, complete)[1])
    Console(width=120).print(table)


def compare(
    title: str,
    questions: Sequence[Question],
    chunker: Any,  # noqa: ANN401 -- any chunker
    make: Callable[[int], Any],
    ways: Mapping[str, Mapping[str, Any]],
) -> None:
    """Prints a comparison with one hop for each way of making queries."""
    table = Table("query", "hits", "recall", "gain", "all found", "gain", title=title)
    for name, parameters in ways.items():
        combiner = MultiHop(combiner=Nothing(), **parameters)
        reader = model() if combiner.query == "reader" else Lead()
        rankings = several_hops(Pipeline(chunker, make(FIRST), reader, combiner), questions)
        single = [
            one_hop(Pipeline(chunker, make(len(hits)), reader, Nothing()), question)
            for hits, question in zip(rankings, questions, strict=True)
        ]
        several = scored(rankings, questions)
        columns = zip(scored(single, questions).T, several.T, strict=True)
        count = np.mean([*map(len, rankings)])
        table.add_row(name, f"{count:.1f}", *(cell for pair in columns for cell in cells(*pair)))
    Console(width=120).print(table)


def model() -> CausalLM:
    """Returns the reader of the default pipeline."""
    return CausalLM(model="smollm2-135m-instruct", stop=("\n",), max_new_tokens=16)


def several_hops(stages: Pipeline, questions: Sequence[Question]) -> list[list[Hit]]:
    """Returns the hits of `MultiHop`; reads of all questions form batches, as in a run."""
    examples = []
    for number, question in enumerate(questions):
        [selection] = select(stages, [question.example])
        examples.append(ActiveExample.create(stages, number, question.example, selection))
    for example in examples:
        example.start()
    while waiting := [example for example in examples if not example.finished]:
        answer(stages, waiting)
    return [example.hits for example in examples]


def answer(stages: Pipeline, examples: Sequence[ActiveExample]) -> None:
    """Answers the reads that examples wait for."""
    reads = [request for example in examples for request in example.reads]
    outputs: Iterator[Any] = iter(read(stages.reader, reads))
    for example in examples:
        example.replies = [next(outputs) for _ in example.reads]
        example.send()


def one_hop(stages: Pipeline, question: Question) -> list[Hit]:
    """Returns the retriever's hits."""
    [selection] = select(stages, [question.example])
    return selection.hits


def scored(rankings: Sequence[Sequence[Hit]], questions: Sequence[Question]) -> Any:  # noqa: ANN401 -- an array
    """Returns for each question its recall, and whether it is complete; shape (questions, 2)."""
    pairs = zip(rankings, questions, strict=True)
    return np.array([recalls([h.chunk.span for h in hits], q.evidence) for hits, q in pairs])


def recalls(hits: Sequence[Span], evidence: Sequence[Span]) -> tuple[float, float]:
    """Returns the share of the evidence in the hits, and 1 if they contain all spans, else 0."""
    gold = merge(evidence)
    is_complete = all(overlap(hits, [span]) >= WHOLE * len(span) for span in evidence)
    return overlap(hits, gold) / sum(map(len, gold)), float(is_complete)


def cells(single: Any, several: Any) -> tuple[str, str]:  # noqa: ANN401 -- arrays
    """Returns both means, and the gain with its interval."""
    gains = several - single
    samples = np.random.default_rng(0).integers(0, len(gains), (RESAMPLES, len(gains)))
    low, high = np.percentile(gains[samples].mean(axis=1), [2.5, 97.5])
    gain = f"{100 * gains.mean():+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"
    return f"{100 * single.mean():.1f} -> {100 * several.mean():.1f}", gain


if __name__ == "__main__":
    main()
