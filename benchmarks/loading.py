"""Measures speed and memory of reading a benchmark's zip as a task, or files by several libraries.

    python -m benchmarks.loading                        # a zip of 200 MB
    python -m benchmarks.loading --megabytes 2048       # 2 GB; takes minutes, and 2 GB of disk
    python -m benchmarks.loading --files *.pdf          # files, by all installed libraries

Writes a zip in the format of SCROLLS' narrative_qa, with stories of about 350,000 characters, each
in 30 rows that are far apart. Another process checks it (the fingerprint), and then iterates over
it. Rates are bytes of JSON rows per second of CPU time, over both passes. The ratio is the median,
over paired runs, of this time to the time of decompressing once.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent
STORIES, QUESTIONS = 10, 30  # stories with interleaved rows; questions per story
CHARACTERS = 350_000
VOCABULARY = 30_000
ZIPF = list(itertools.accumulate(1 / (rank + 1) for rank in range(VOCABULARY)))

# Code that measures the time of each step, and the peak memory of its process.
MEASURED = """
import json, resource, sys, time, zipfile
from pathlib import Path

clock = time.process_time
data, what = Path(sys.argv[1]), sys.argv[2]
started = clock()
if what == "decompress":
    with zipfile.ZipFile(data / "scrolls/narrative_qa.zip") as archive:
        with archive.open("narrative_qa/train.jsonl") as rows:
            while rows.read(1 << 20):
                pass
    print(json.dumps({"seconds": clock() - started}))
else:
    from leporello.tasks import Scrolls

    task = Scrolls("narrative_qa", "train", data=data)
    started = clock()
    task.fingerprint()
    checked = clock() - started
    examples = sum(1 for _ in task.examples())
    seconds, peak = clock() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": seconds, "checked": checked, "peak": peak, "examples": examples}))
"""

# Code of other libraries by suffix, which reads `path` and counts its units in `count`.
PEERS = {
    ".pdf": {
        "pypdfium2, bare": """
import pypdfium2
with pypdfium2.PdfDocument(path) as file:
    for page in file:
        count += bool(page.get_textpage().get_text_range()) or 1
""",
        "pypdf": """
import pypdf
for page in pypdf.PdfReader(path).pages:
    count += bool(page.extract_text()) or 1
""",
        "pdfminer.six": """
import pdfminer.high_level
text = pdfminer.high_level.extract_text(path)
count = text.count("\\f")
""",
    },
}
# Code of this package, which counts places: pages, rows, chapters.
OURS = """
from leporello.loaders.files import load
count = max(1, len(load(Path(path)).places))
"""
TIMED = """
import json, logging, resource, sys, time
from pathlib import Path
path, count = sys.argv[1], 0
logging.disable()
try:
    exec(compile(sys.argv[2], "warm", "exec"))  # imports are not measured
    started, count = time.process_time(), 0
    exec(compile(sys.argv[2], "timed", "exec"))
    seconds = time.process_time() - started
except ImportError:
    seconds = 0.0
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": seconds, "count": count, "peak": peak}))
"""


def compare(paths: list[Path], rounds: int) -> None:
    """Prints for each suffix and library the number of units per CPU second."""
    for suffix in sorted({path.suffix.lower() for path in paths}):
        files = [path for path in paths if path.suffix.lower() == suffix]
        for name, code in {"leporello": OURS, **PEERS.get(suffix, {})}.items():
            runs = [[timed(file, code) for file in files] for _ in range(rounds)]
            if not all(run["seconds"] for run in runs[0]):
                print(f"{suffix:8} {name:20} not installed")
                continue
            count = sum(run["count"] for run in runs[0])
            totals = [sum(run["seconds"] for run in round_) for round_ in runs]
            rate = statistics.median(count / total for total in totals)
            peak = max(run["peak"] for round_ in runs for run in round_) / 1024
            print(f"{suffix:8} {name:20} {count:7,} units {rate:8,.0f} per second {peak:5.0f} MiB")


def timed(file: Path, code: str) -> dict[str, Any]:
    """Returns measurements of reading a file in another process, without the first time."""
    command = [sys.executable, "-c", TIMED, str(file.absolute()), code]
    process = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)  # noqa: S603 -- code of this project
    measurements: dict[str, Any] = json.loads(process.stdout)
    return measurements


def main() -> None:
    """Prints the measurements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=200, help="size of the zip")
    parser.add_argument("--rounds", type=int, default=3, help="paired runs")
    parser.add_argument("--files", type=Path, nargs="+", help="files to read instead of a zip")
    options = parser.parse_args()
    if options.files:
        compare(options.files, options.rounds)
        return
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        size = write(data / "scrolls" / "narrative_qa.zip", options.megabytes * 2**20)
        packed = (data / "scrolls" / "narrative_qa.zip").stat().st_size
        pairs = [(run(data, "decompress"), run(data, "task")) for _ in range(options.rounds)]
    seconds = statistics.median(task["seconds"] for _, task in pairs)
    checked = statistics.median(task["checked"] for _, task in pairs)
    ratio = statistics.median(task["seconds"] / raw["seconds"] for raw, task in pairs)
    peak = max(task["peak"] for _, task in pairs) / 1024
    rates = [amount / 1e6 / seconds for amount in (size, packed)]
    examples = pairs[0][1]["examples"]
    print(f"zip of {packed / 1e6:,.0f} MB, {size / 1e6:,.0f} MB of rows, {examples:,} examples")
    print(f"checked and iterated: {rates[0]:.0f} MB/s of rows, {rates[1]:.0f} MB/s of zip")
    print(f"share of the check: {checked / seconds:.0%}")
    print(f"ratio to decompressing once: {ratio:.2f}")
    print(f"peak memory: {peak:.0f} MiB")


def run(data: Path, what: str) -> dict[str, Any]:
    """Returns the measurements of another process."""
    command = [sys.executable, "-c", MEASURED, str(data), what]
    with tempfile.TemporaryDirectory() as cache:  # an empty cache, which is not measured here
        environment = os.environ | {"LEPORELLO_CACHE": cache}
        process = subprocess.run(  # noqa: S603 -- code of this project
            command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment
        )
    measurements: dict[str, Any] = json.loads(process.stdout)
    return measurements


def write(path: Path, most: int) -> int:
    """Writes rows until the zip has `most` bytes; returns the number of bytes of the rows."""
    path.parent.mkdir(parents=True)
    choose = random.Random(0)
    words = [word(choose) for _ in range(VOCABULARY)]
    size = number = 0
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("narrative_qa/train.jsonl", "w", force_zip64=True) as rows,
    ):
        while path.stat().st_size < most:
            stories = [story(choose, words) for _ in range(STORIES)]
            size += write_block(rows, number, stories)
            number += STORIES
    return size


def write_block(rows: IO[bytes], number: int, stories: list[str]) -> int:
    """Writes questions on some stories in turn; returns the number of bytes."""
    size = 0
    for question in range(QUESTIONS):
        for place, text in enumerate(stories, number):
            name = f"{place}-{question}"
            prompt = f"Who does what in chapter {question} of story {place}?\n\n{text}"
            row = {"id": name, "pid": f"{name}_0", "input": prompt}
            row["output"] = f"somebody {question}"
            size += rows.write(json.dumps(row).encode() + b"\n")
    return size


def word(choose: random.Random) -> str:
    """Returns an invented word with the letter frequencies of English."""
    return "".join(
        choose.choices("etaoinshrdlucmfwypvbgk", range(22, 0, -1), k=choose.randint(2, 9))
    )


def story(choose: random.Random, words: list[str]) -> str:
    """Returns dialogue by Zipf's law, with quotes, dashes and line breaks that JSON escapes."""
    paragraphs: list[str] = []
    length = 0
    while length < CHARACTERS:
        speech = " ".join(choose.choices(words, cum_weights=ZIPF, k=60))
        paragraphs.append(f'"{speech}," he said \u2014 it wasn\u2019t so.')
        length += len(paragraphs[-1])
    return "\n".join(paragraphs)


if __name__ == "__main__":
    main()
