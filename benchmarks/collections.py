"""Times a collection: read and indexed, asked, changed in one file, asked again.

    OMP_NUM_THREADS=1 python -m benchmarks.collections [--files 200] [--megabytes 50] [--text FILE…]
    OMP_NUM_THREADS=1 python -m benchmarks.collections --vectors 100000

Files are cut from the texts that are named, or of words with the frequencies of a natural text.
Each step is a process of its own, as a person's commands are; what is printed are its CPU seconds,
its seconds, and the most memory that it took. `--vectors` compares HNSW with all products: of
random vectors around centres, as embeddings lie.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from leporello import Example
from leporello.cache.store import Cache
from leporello.chunkers import FixedTokens, Paragraphs
from leporello.config import Pipeline
from leporello.core.protocols import Chunker
from leporello.engine.selection import select
from leporello.loaders.collection import load_collection
from leporello.retrievers import BM25
from leporello.retrievers.dense import SegmentedVectors, graph, products, search_graph

CHUNKERS: Mapping[str, Chunker] = {
    "Paragraphs": Paragraphs(size=100),
    "FixedTokens": FixedTokens(size=100),
}
QUESTIONS = ("Who was the boy that asked for more?", "What did the four sisters do in winter?")


def main() -> None:
    """Prints a line a step."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--megabytes", type=float, default=50)
    parser.add_argument("--text", type=Path, nargs="*", default=[])
    parser.add_argument("--vectors", type=int)
    parser.add_argument("--chunker", default="Paragraphs", choices=[*CHUNKERS])
    parser.add_argument("--step", nargs=2, metavar=("FOLDER", "NAME"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        step(Path(options.step[0]), options.step[1], CHUNKERS[options.chunker])
    elif options.vectors:
        neighbours(options.vectors)
    else:
        compare(options)


def compare(options: argparse.Namespace) -> None:
    """Runs each step over new files in a temporary folder."""
    with TemporaryDirectory() as folder:
        files = Path(folder, "files")
        files.mkdir()
        size = int(options.megabytes * 2**20 / options.files)
        for number in range(options.files):
            content = cut(options.text, number, size) if options.text else words(number, size)
            (files / f"{number:04}.txt").write_text(content, encoding="utf-8")
        for name in ("index", "ask", "one file changed", "ask"):
            if name == "one file changed":
                (files / "0007.txt").write_text(words(-1, size), encoding="utf-8")
            command = [sys.executable, "-m", "benchmarks.collections", "--step", folder, name]
            command += ["--chunker", options.chunker]
            subprocess.run(command, check=True)  # noqa: S603 -- this module


def cut(texts: list[Path], number: int, size: int) -> str:
    """Returns a stretch of texts, each from another place, with words of its own."""
    text = texts[number % len(texts)].read_text(encoding="utf-8")
    start = number * 7919 % len(text)
    return f"{words(number, size // 10)}\n\n{(text * 2)[start : start + size * 9 // 10]}"


def words(seed: int, size: int, vocabulary: int = 20_000) -> str:
    """Returns words with the frequencies of a natural text (Zipf), in paragraphs."""
    rng = np.random.default_rng(seed + 1)
    weights = 1 / np.arange(1, vocabulary + 1)
    drawn = rng.choice(vocabulary, size=size // 5 + 1, p=weights / weights.sum())
    return " ".join(f"w{word}\n\n" if word % 90 == 1 else f"w{word}" for word in drawn)[:size]


def step(folder: Path, name: str, chunker: Chunker) -> None:
    """Opens the collection, asks, and prints what that took."""
    cpu, wall = time.process_time(), time.perf_counter()
    document = load_collection([folder / "files"], cache=(cache := Cache(folder / "cache")))
    document.use_cache(cache)
    loaded = time.process_time() - cpu
    pipeline = Pipeline(chunker, BM25(k=12), None, None)
    select(pipeline, [Example("q", document, QUESTIONS[0])])
    took = time.process_time() - cpu
    size = sum(path.stat().st_size for path in (folder / "files").iterdir()) / 2**20
    print(
        f"{name}: {took:.2f} CPU s ({loaded:.2f} of them loading), {time.perf_counter() - wall:.2f}"
        f" s, {size / took:.1f} MB a CPU s, {rss():.0f} MB of memory"
    )
    before = time.process_time()
    select(pipeline, [Example("q", document, QUESTIONS[1])])
    print(
        f"  a second question: {time.process_time() - before:.3f} CPU s; {rss():.0f} MB of memory"
    )


def neighbours(count: int, questions: int = 200, dimensions: int = 384, rank: int = 40) -> None:
    """Prints what HNSW finds of the ten nearest, and what it costs; of vectors of a low rank."""
    rng = np.random.default_rng(0)
    mixed = rng.standard_normal((rank, dimensions)) / np.sqrt(rank)
    vectors = np.empty((count, dimensions), np.float32)
    for start in range(0, count, 10_000):
        some = vectors[start : start + 10_000]
        some[:] = rng.standard_normal((len(some), rank)) @ mixed
        some += 0.1 * rng.standard_normal(some.shape)
        some /= np.linalg.norm(some, axis=1, keepdims=True)
    near = 0.03 * rng.standard_normal((questions, dimensions))
    asked = vectors[rng.integers(0, count, questions)] + near.astype(np.float32)
    segments = SegmentedVectors(({"vectors": vectors, "first": np.arange(count)},))
    started = time.process_time()
    exact = np.concatenate([*products(segments.segments, asked, 8)])
    every, started = time.process_time() - started, time.process_time()
    index = graph(segments)
    made, started = time.process_time() - started, time.process_time()
    found = [[*best][:10] for best in search_graph(index, asked, 10)]
    took = time.process_time() - started
    nearest = np.argpartition(-exact, 10, axis=1)[:, :10].tolist()
    recall = np.mean([len({*a} & {*b}) / 10 for a, b in zip(found, nearest, strict=True)])
    print(
        f"{count:,} vectors: HNSW made in {made:.0f} CPU s, recall@10 {recall:.3f}, a question"
        f" {1000 * took / questions:.1f} CPU ms; all products {1000 * every / questions:.1f};"
        f" {rss():.0f} MB of memory"
    )


def rss() -> float:
    """Returns the most megabytes that this process has taken so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
