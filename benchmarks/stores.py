"""Measures the size of a run's files, in bytes per example with ten short reads.

    python -m benchmarks.stores FILE...

The texts are split into documents of 100,000 characters with one question each. TF-IDF selects 10
chunks of 200 words, each of which `BestSentence` reads separately; `ReadEach` returns the best
answer, or joins all ten.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.scale import documents, write
from leporello.api import run

EXAMPLES = 64
PIPELINE = """
pipelines:
  scale:
    tasks: [rows]
    chunker: {{class: FixedTokens, size: 200}}
    retriever: {{class: TfIdf, k: 10}}
    reader: {{class: BestSentence}}
    combiner: {{class: ReadEach, keep: {keep}}}
tasks:
  rows: {{class: JsonLines, path: rows.jsonl}}
"""


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", help="texts to split into documents")
    options = parser.parse_args()
    print("| `keep` | file | bytes per example |\n|---|---|---|")
    texts = documents(options.files)[:EXAMPLES]
    for keep in ("best", "join"):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), texts, pipeline=PIPELINE.format(keep=keep))
            for name, size in sizes(Path(folder)):
                print(f"| {keep} | {name} | {size / EXAMPLES:,.0f} |")


def sizes(place: Path) -> Iterator[tuple[str, int]]:
    """Yields the size in bytes of each kind of file."""
    out = place / "run"
    run(["scale"], config=[place / "scale.yaml"], out=out, cached=False, workers=0)
    stores = (out / "journal").rglob("*.sqlite")
    yield "store", sum(path.stat().st_size for path in stores)
    for name in ("calls", "predictions", "statistics"):
        yield name, (out / "scale" / "rows" / f"{name}.jsonl").stat().st_size


if __name__ == "__main__":
    main()
