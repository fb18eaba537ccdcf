"""Compares the speed of lexical retrieval, for all questions of a document, with other libraries.

    OMP_NUM_THREADS=1 python -m benchmarks.retrieval [--text FILE] [--questions 30] [--rounds 7]
    OMP_NUM_THREADS=1 python -m benchmarks.retrieval --memory --questions 5000

Each round measures every way once, in CPU seconds, including indexing and tokenising. Printed are
medians over rounds of the ratios within a round, which a busy machine does not change. bm25s and
tantivy are measured if they are installed, each with its tokenizer. `--memory` searches once, and
prints the peak memory of the process.
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from leporello import Chunk, Document, Hit
from leporello.core.environment.extras import is_installed
from leporello.retrievers import BM25, TfIdf
from leporello.text.tokens import Words, terms

Ways = Mapping[str, Callable[[], Sequence[Any]]]
CHUNK_WORDS = 200
QUESTION_WORDS = 12
PEERS = ("rank_bm25", "bm25s", "tantivy")


def main() -> None:
    """Prints the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, help="text file; default: a generated text")
    parser.add_argument("--questions", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--memory", action="store_true")
    options = parser.parse_args()
    text = options.text.read_text(encoding="utf-8") if options.text else generated()
    document = Document("benchmark", text)
    chunks = chunked(document)
    questions = random_questions(document, options.questions)
    if options.memory:
        search_once(questions, chunks)
        return
    print(f"{len(text):,} characters, {len(chunks):,} chunks, {len(questions)} questions")
    report([measure(ways(questions, chunks)) for _ in range(options.rounds)])


def generated(words: int = 200_000, vocabulary: int = 20_000) -> str:
    """Returns about 1 MB of words with the frequencies of a natural text (Zipf)."""
    rng = np.random.default_rng(0)
    weights = 1 / np.arange(1, vocabulary + 1)
    numbers = rng.choice(vocabulary, size=words, p=weights / weights.sum())
    return " ".join(f"w{number}" for number in numbers)


def chunked(document: Document) -> list[Chunk]:
    """Returns chunks of 200 words of the document."""
    words = document.tokens(Words())
    runs = [words[i : i + CHUNK_WORDS] for i in range(0, len(words), CHUNK_WORDS)]
    return [document.chunk(int(run[0, 0]), int(run[-1, 1])) for run in runs]


def random_questions(document: Document, count: int) -> list[str]:
    """Returns questions, which are random sequences of words of the text."""
    words = document.tokens(Words())
    rng = random.Random(0)
    firsts = [rng.randrange(max(1, len(words) - QUESTION_WORDS)) for _ in range(count)]
    runs = [words[first : first + QUESTION_WORDS] for first in firsts]
    return [document.text[run[0, 0] : run[-1, 1]] for run in runs]


def ways(questions: Sequence[str], chunks: Sequence[Chunk]) -> Ways:
    """Returns the functions to compare, by name."""
    texts = [chunk.text for chunk in chunks]
    functions: dict[str, Callable[[], Sequence[Any]]] = {
        "TfIdf": lambda: TfIdf().retrieve(questions, chunks),
        "BM25": lambda: BM25().retrieve(questions, chunks),
        "scikit-learn": lambda: by_scikit_learn(questions, texts),
        "rank_bm25": lambda: by_rank_bm25(questions, chunks),
        "bm25s": lambda: by_bm25s(questions, texts),
        "tantivy": lambda: by_tantivy(questions, texts),
    }
    return {n: way for n, way in functions.items() if n not in PEERS or is_installed(n)}


def by_scikit_learn(questions: Sequence[str], texts: Sequence[str], k: int = 10) -> Sequence[Any]:
    """Returns the best chunks by TfidfVectorizer, fitted once."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer()
    weights = vectorizer.fit_transform(texts)
    scores = (vectorizer.transform(questions) @ weights.T).toarray()
    return [np.argsort(-row, kind="stable")[:k] for row in scores]


def by_bm25s(questions: Sequence[str], texts: Sequence[str], k: int = 10) -> Sequence[Any]:
    """Returns the best chunks by bm25s, with all words as terms."""
    import bm25s

    options = {"stopwords": None, "token_pattern": r"(?u)\w+", "show_progress": False}
    index = bm25s.BM25(k1=1.5, b=0.75)
    index.index(bm25s.tokenize([*texts], **options), show_progress=False)
    queries = bm25s.tokenize([*questions], **options)
    documents: Sequence[Any] = index.retrieve(queries, k=k, show_progress=False).documents
    return documents


def by_tantivy(questions: Sequence[str], texts: Sequence[str], k: int = 10) -> Sequence[Any]:
    """Returns the best chunks by tantivy, in memory, with one thread."""
    import tantivy

    schema = tantivy.SchemaBuilder().add_text_field("text").build()
    index = tantivy.Index(schema)
    writer = index.writer(heap_size=100_000_000, num_threads=1)
    for text in texts:
        writer.add_document(tantivy.Document(text=[text]))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    queries = [" ".join(terms(question)) for question in questions]
    return [searcher.search(index.parse_query(query, ["text"]), k).hits for query in queries]


def by_rank_bm25(questions: Sequence[str], chunks: Sequence[Chunk], k: int = 10) -> list[list[Hit]]:
    """Returns the hits of rank_bm25, indexed once and searched question by question."""
    from rank_bm25 import BM25Okapi

    index = BM25Okapi([terms(chunk.text) for chunk in chunks])
    rankings = []
    for question in questions:
        scores = index.get_scores(terms(question))
        best = np.argsort(-scores, kind="stable")[:k]
        rankings.append([Hit(chunks[i], float(scores[i])) for i in best])
    return rankings


def search_once(questions: Sequence[str], chunks: Sequence[Chunk]) -> None:
    """Prints the peak memory of the process before and after searches."""
    for retriever in (BM25(), TfIdf()):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        retriever.retrieve(questions, chunks)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"{type(retriever).__name__}: at most {before >> 10} MiB before, {after >> 10} after")


def measure(compared: Ways) -> dict[str, float]:
    """Returns the CPU seconds of each way."""
    seconds = {}
    for name, way in compared.items():
        start = time.process_time()
        way()
        seconds[name] = time.process_time() - start
    return seconds


def report(rounds: Sequence[Mapping[str, float]]) -> None:
    """Prints the median time of each way, and the speed of this package's retrievers."""
    for name in rounds[0]:
        print(f"{median(r[name] for r in rounds):8.3f} s  {name}")
    for retriever, libraries in {"TfIdf": ["scikit-learn"], "BM25": PEERS}.items():
        for library in (name for name in libraries if name in rounds[0]):
            ratio = median(r[library] / r[retriever] for r in rounds)
            print(f"{ratio:8.2f} x  as fast: {retriever}, compared with {library}")


if __name__ == "__main__":
    main()
