"""What a run leaves behind: bytes an example of ten short reads, file by file.

    python -m benchmarks.stores FILE...

The texts are cut into documents of 100,000 characters, a question on each. TF-IDF selects 10 chunks
of 200 words, each of which `BestSentence` reads on its own; `ReadEach` keeps the best answer, or
joins all ten.
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
    parser.add_argument("files", type=Path, nargs="+", help="texts that documents are cut from")
    given = parser.parse_args()
    print("| `keep` | file | bytes an example |\n|---|---|---|")
    texts = documents(given.files)[:EXAMPLES]
    for keep in ("best", "join"):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), texts, pipeline=PIPELINE.format(keep=keep))
            for name, size in sizes(Path(folder)):
                print(f"| {keep} | {name} | {size / EXAMPLES:,.0f} |")


def sizes(place: Path) -> Iterator[tuple[str, int]]:
    """Yields what is written of each kind, in bytes."""
    out = place / "run"
    run(["scale"], config=[place / "scale.yaml"], out=out, cached=False, workers=0)
    stores = (out / "journal").rglob("*.sqlite")
    yield "store", sum(path.stat().st_size for path in stores)
    for name in ("calls", "predictions", "statistics"):
        yield name, (out / "scale" / "rows" / f"{name}.jsonl").stat().st_size


if __name__ == "__main__":
    main()
