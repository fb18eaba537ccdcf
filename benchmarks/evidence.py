"""Measures the recall of retrievers for gold supporting paragraphs, with intervals.

    python -m benchmarks.evidence DATA [--rerank MODEL]

DATA contains `muld/hotpotqa_validation.json.bz2`, whose metadata has the supporting titles, and
`zero_scrolls/musique` with an additional `evidence.jsonl` ({"id", "inner_docs": numbers from 1}).
Chunks of hotpotqa have 200 tokens, as in MuLD's baselines; chunks of musique are its paragraphs.
The recall of a question is the share of its supporting paragraphs' characters that the hits cover.
Printed are the means over questions with 95 % intervals by bootstrap. Rerank needs a cross-encoder,
by path or hub id; the installation contains none.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from leporello.chunkers import FixedTokens
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.core.coverage import merge, overlap
from leporello.core.records import Chunk, Document, Example, Span
from leporello.retrievers import BM25, Dense, Fusion, Rerank, TfIdf
from leporello.tasks import Muld, ZeroScrolls

POOL = 50  # hits to fuse or rerank
RESAMPLES = 10_000
COLUMNS = (("hotpotqa", 10), ("hotpotqa", 3), ("musique", 10), ("musique", 5))


@dataclass(frozen=True)
class Question:
    """A question, the chunks of its document, and the paragraphs that support the answer."""

    example: Example
    chunks: Sequence[Chunk]
    evidence: Sequence[Span]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of the benchmarks' files")
    parser.add_argument("--rerank", default="", help="a cross-encoder, by path or hub id")
    options = parser.parse_args()
    sets = {"hotpotqa": [*hotpotqa(options.data)], "musique": [*musique(options.data)]}
    table = Table("retriever", *(f"{name}, first {k}" for name, k in COLUMNS))
    for name, make in retrievers(options.rerank).items():
        table.add_row(name, *(cell(make(k), sets[set_name]) for set_name, k in COLUMNS))
    console = Console(width=110)
    console.print(table)
    for set_name, questions in sets.items():
        console.print(f"{set_name}: {len(questions)} questions")


def retrievers(cross_encoder: str) -> Mapping[str, Callable[[int], Any]]:
    """Returns functions that create retrievers of k hits, by name."""
    pooled = (TfIdf(k=POOL), BM25(k=POOL), Dense(k=POOL))
    makers: dict[str, Callable[[int], Any]] = {
        "TfIdf": lambda k: TfIdf(k=k),
        "BM25": lambda k: BM25(k=k),
        "Dense": lambda k: Dense(k=k),
        "Fusion of BM25 and Dense": lambda k: Fusion(k=k, retrievers=pooled[1:]),
        "Fusion of all three": lambda k: Fusion(k=k, retrievers=pooled),
    }
    if cross_encoder:
        makers["Rerank of BM25"] = lambda k: Rerank(BM25(k=POOL), cross_encoder, k=k)
    return makers


def hotpotqa(data: Path) -> Iterator[Question]:
    """Yields MuLD's questions with their supporting paragraphs, found by their titles."""
    for example in Muld("hotpotqa", "validation", data=data).examples():
        gold: Any = example.metadata["gold"]
        evidence = [titled(example.document, title) for title in gold["supporting_titles"]]
        yield Question(example, divide(FixedTokens(size=200), example.document), evidence)


def titled(document: Document, title: str) -> Span:
    """Returns the span of a title and the paragraph below it."""
    match = re.search(rf"^{re.escape(title)}\n(?:.+\n?)*", document.text, re.MULTILINE)
    if not match:
        raise SystemExit(f"document {document.id!r} has no paragraph {title!r}")
    return Span(*match.span())


def musique(data: Path) -> Iterator[Question]:
    """Yields ZeroSCROLLS' questions with their supporting paragraphs."""
    rows = (data / "zero_scrolls/musique/evidence.jsonl").read_text("utf-8").splitlines()
    supporting = {row["id"]: row["inner_docs"] for row in map(json.loads, rows)}
    for example in ZeroScrolls("musique", "validation", data=data).examples():
        parts = example.document.parts
        chunks = [example.document.chunk(part.start, part.end) for part in parts]
        yield Question(example, chunks, [parts[number - 1] for number in supporting[example.id]])


def cell(retriever: Any, questions: Sequence[Question]) -> str:  # noqa: ANN401 -- some take examples, unlike the protocol
    """Returns the mean recall with its interval as text."""
    shares = np.array([recall(retriever, question) for question in questions])
    samples = np.random.default_rng(0).integers(0, len(shares), (RESAMPLES, len(shares)))
    low, high = np.percentile(shares[samples].mean(axis=1), [2.5, 97.5])
    return f"{100 * shares.mean():.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def recall(retriever: Any, question: Question) -> float:  # noqa: ANN401 -- as above
    """Returns the share of the supporting characters that the hits cover."""
    [hits] = retrieve(retriever, [question.example], question.chunks)
    evidence = merge(question.evidence)
    covered = overlap(merge(hit.chunk.span for hit in hits), evidence)
    return covered / sum(map(len, evidence))


if __name__ == "__main__":
    main()
