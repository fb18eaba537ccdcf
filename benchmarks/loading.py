"""How fast a benchmark's zip is read as a task, and files beside libraries; in how much memory.

    python -m benchmarks.loading                        # a zip of 200 MB
    python -m benchmarks.loading --megabytes 2048       # of 2 GB; minutes, and 2 GB of disk
    python -m benchmarks.loading --files *.pdf          # files, by us and by what else is installed

Writes a zip like that of SCROLLS' narrative_qa: stories of some 350,000 characters, each under 30
questions that stand apart from each other, and reads it in a process of its own: checked (the
fingerprint), then iterated. Rates are of rows as JSON, over both passes together, by CPU time; a
ratio is the median over paired runs of that time by the time of nothing but decompressing once.
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
STORIES, QUESTIONS = 10, 30  # stories whose rows are mixed; questions on each
CHARACTERS = 350_000
VOCABULARY = 30_000
ZIPF = list(itertools.accumulate(1 / (rank + 1) for rank in range(VOCABULARY)))

# Times each step, and tells the peak memory of a process that did nothing else.
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

# How others read a file, by suffix: code that counts its units in `count`, from `path`.
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
# Ours counts places: pages, rows, chapters.
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
    """Prints for each kind of file how much of it a CPU second reads, by us and by others."""
    for suffix in sorted({path.suffix.lower() for path in paths}):
        files = [path for path in paths if path.suffix.lower() == suffix]
        for name, code in {"leporello": OURS, **PEERS.get(suffix, {})}.items():
            runs = [[timed(file, code) for file in files] for _ in range(rounds)]
            if not all(run["seconds"] for run in runs[0]):
                print(f"{suffix:8} {name:20} not installed")
                continue
            count = sum(run["count"] for run in runs[0])
            rate = statistics.median(count / sum(run["seconds"] for run in each) for each in runs)
            peak = max(run["peak"] for each in runs for run in each) / 1024
            print(f"{suffix:8} {name:20} {count:7,} units {rate:8,.0f} a second {peak:5.0f} MiB")


def timed(file: Path, code: str) -> dict[str, Any]:
    """Returns what a process of its own measures of reading a file, the first time not counted."""
    command = [sys.executable, "-c", TIMED, str(file.absolute()), code]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)  # noqa: S603 -- this project's own code
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=200, help="size of the zip")
    parser.add_argument("--rounds", type=int, default=3, help="paired runs")
    parser.add_argument("--files", type=Path, nargs="+", help="files that are read, not a zip")
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
    print(f"the check alone: {checked / seconds:.0%} of it")
    print(f"by decompressing once: {ratio:.2f}")
    print(f"peak memory: {peak:.0f} MiB")


def run(data: Path, what: str) -> dict[str, Any]:
    """Returns what a process of its own measures."""
    command = [sys.executable, "-c", MEASURED, str(data), what]
    with tempfile.TemporaryDirectory() as cache:  # what is kept between runs is not measured here
        environment = os.environ | {"LEPORELLO_CACHE": cache}
        done = subprocess.run(  # noqa: S603 -- this project's own code
            command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment
        )
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def write(path: Path, most: int) -> int:
    """Writes rows until the zip has as many bytes; returns the bytes of the rows."""
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
    """Writes the questions on some stories in turns; returns the bytes."""
    size = 0
    for question in range(QUESTIONS):
        for place, text in enumerate(stories, number):
            name = f"{place}-{question}"
            asked = f"Who does what in chapter {question} of story {place}?\n\n{text}"
            row = {"id": name, "pid": f"{name}_0", "input": asked, "output": f"somebody {question}"}
            size += rows.write(json.dumps(row).encode() + b"\n")
    return size


def word(choose: random.Random) -> str:
    """Returns a made-up word of English letters, as often as in English."""
    return "".join(
        choose.choices("etaoinshrdlucmfwypvbgk", range(22, 0, -1), k=choose.randint(2, 9))
    )


def story(choose: random.Random, words: list[str]) -> str:
    """Returns talk by Zipf's law, with the quotes, dashes and line breaks that JSON escapes."""
    paragraphs: list[str] = []
    length = 0
    while length < CHARACTERS:
        spoken = " ".join(choose.choices(words, cum_weights=ZIPF, k=60))
        paragraphs.append(f'"{spoken}," he said \u2014 it wasn\u2019t so.')
        length += len(paragraphs[-1])
    return "\n".join(paragraphs)


if __name__ == "__main__":
    main()
