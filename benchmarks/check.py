"""How long `check` takes on a file of 50 pipelines, as a whole process.

python -m benchmarks.check
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PIPELINES = 50
ROUNDS = 5


def config() -> str:
    """Returns a file in which every pipeline has four stages, a nested one and a sweep."""
    lines = ["pipelines:"]
    for n in range(PIPELINES):
        lines += [
            f"  p{n}:",
            f"    chunker: {{class: FixedTokens, size: [{100 + n}, {200 + n}], overlap: 10}}",
            "    retriever: {class: Fusion, retrievers: [{class: TfIdf, k: 50}, {class: BM25}]}",
            "    reader: {class: Seq2Seq, model: google/flan-t5-base, num_beams: 4}",
            "    combiner: {class: ReadEach, keep: vote}",
        ]
    return "\n".join(lines)


def main() -> None:
    """Prints the median of several whole processes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fifty.yaml"
        path.write_text(config(), encoding="utf-8")
        command = [sys.executable, str(ROOT / "run_pipeline.py"), "check", "--config", str(path)]
        seconds = []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 -- our own command line
            seconds.append(time.perf_counter() - started)
    print(
        f"check, {PIPELINES} pipelines ({2 * PIPELINES} points): {statistics.median(seconds):.2f} s"
    )


if __name__ == "__main__":
    main()
