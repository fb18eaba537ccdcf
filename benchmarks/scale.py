"""Measures the cost and gain of workers: this process, one and two workers, local and on Ray.

    python -m benchmarks.scale FILE... [--parts selecting overhead memory] [--rounds 5]
                              [--questions 1]

The files are split into documents of 100,000 characters with some questions each, for which TF-IDF
selects 10 chunks of 200 tokens. All ways are measured in each round. Printed are medians over
rounds, and medians of ratios within a round. Starting is measured separately, and ends with the
selection of the first document. `overhead` and `memory` use small documents and a reader without a
model: they measure the additional time per document, and the driver's peak memory.

    python -m benchmarks.scale --model [--select S] [--read R] [--driver D] [--load L] ...

prints the results of a simulated cluster for given times per document; see benchmarks/cluster.py.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median

from benchmarks.cluster import Cluster, table
from leporello.api import run

CHARACTERS, DOCUMENTS = 100_000, 600
SMALL = (2_000, 10_000)
LARGE = (10_000, 100_000)
GPUS = (1, 2, 8, 64, 256, 1000)
PIPELINE = """
pipelines:
  scale:
    tasks: [rows]
    chunker: {class: FixedTokens, size: 200}
    retriever: {class: TfIdf, k: 10}
    reader: {class: Lead}
    combiner: {class: Stuff}
tasks:
  rows: {class: JsonLines, path: rows.jsonl}
"""


@dataclass(frozen=True)
class Way:
    """Placement of a run."""

    executor: str
    workers: int

    @property
    def name(self) -> str:
        """Name in tables."""
        return f"{self.executor}, {self.workers} workers"


WAYS = [Way("local", 0), Way("local", 1), Way("local", 2), Way("ray", 1), Way("ray", 2)]


def main() -> None:
    """Prints tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="*", help="texts to split into documents")
    parts = ["selecting", "overhead", "memory"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--questions", type=int, default=1, help="number of questions per document")
    parser.add_argument("--model", action="store_true", help="simulate a cluster instead")
    parser.add_argument(
        "--workers", type=int, nargs="+", default=GPUS, help="numbers of simulated workers"
    )
    times = {field.name for field in fields(Cluster)} - {"workers", "tail"}
    for name, value in vars(Cluster(1)).items():
        if name in times:
            parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.model:
        cluster = Cluster(1, **{name: getattr(options, name) for name in times})
        table(cluster, options.workers)
    elif options.peak:
        peak(Path(options.peak[0]), options.peak[1])
    else:
        measure(options.files, options.parts, options.rounds, options.questions)


def measure(files: Sequence[Path], parts: Sequence[str], rounds: int, questions: int) -> None:
    """Measures each part."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if "selecting" in parts:
            write(place, documents(files), questions)
            selecting(place, rounds)
        if "overhead" in parts:
            overhead(place, rounds)
        if "memory" in parts:
            memory(place)


def documents(files: Sequence[Path]) -> list[str]:
    """Returns documents of equal length from the concatenated files, repeated if necessary."""
    text = "\n\n".join(file.read_text(encoding="utf-8") for file in files)
    starts = range(0, len(text) - CHARACTERS, CHARACTERS)
    cut = [text[start : start + CHARACTERS] for start in starts]
    return (cut * (DOCUMENTS // len(cut) + 1))[:DOCUMENTS]


def small(count: int) -> Iterator[str]:
    """Yields documents of 30 words."""
    rng = random.Random(0)
    for number in range(count):
        yield f"Document {number}: " + " ".join(f"w{rng.randrange(5000)}" for _ in range(30))


def write(place: Path, texts: Iterable[str], questions: int = 1, pipeline: str = PIPELINE) -> None:
    """Writes a task, and a pipeline whose reader has no model."""
    rng = random.Random(1)
    with (place / "rows.jsonl").open("w", encoding="utf-8") as file:
        for number, text in enumerate(texts):
            words = text.split()
            for q in range(questions):
                row = {"id": f"{number}-{q}", "document_id": str(number)}
                row |= {"question": " ".join(rng.choices(words, k=6))}
                row |= {} if q else {"document": f"{number} {text}"}
                file.write(json.dumps(row) + "\n")
    (place / "scale.yaml").write_text(pipeline)


def placed(place: Path, way: Way, limit: int | None = None) -> Mapping[str, float]:
    """Runs once, without the cache; returns the elapsed seconds, and CPU seconds of selecting."""
    with tempfile.TemporaryDirectory() as out:
        executor = "ray" if way.executor == "ray" else "local"
        options = {"executor": executor, "workers": way.workers, "limit": limit}
        finished = run(
            ["scale"],
            config=[place / "scale.yaml"],
            out=Path(out) / "run",
            cached=False,
            **options,  # type: ignore[arg-type]  # of several types
        )
        timings = json.loads((finished.directory / "scale" / "rows" / "timings.json").read_text())
    clock: dict[str, float] = timings["clock"]
    return {**clock, "selecting": timings["selecting"]["seconds"]}


def selecting(place: Path, rounds: int) -> None:
    """Prints the times of starting, and of dividing and selecting, for each way."""
    times = [{way.name: placed(place, way) for way in WAYS} for _ in range(rounds)]
    print("| | starting, s | working, s | selecting, CPU s |\n|---|---|---|---|")
    for way in WAYS:
        row = [median(round_[way.name][k] for round_ in times) for k in times[0][way.name]]
        print(f"| {way.name} | " + " | ".join(f"{seconds:.2f}" for seconds in row) + " |")
    working = [{name: t["working"] for name, t in round_.items()} for round_ in times]
    here, local_1, local_2, ray_1, ray_2 = (way.name for way in WAYS)
    gain = median(seconds[ray_1] / seconds[ray_2] for seconds in working)
    print(f"\ntwo workers on Ray: {gain:.2f} x as fast as one (goal 1.6)")
    print(f"as fast as local: {median(s[local_2] / s[ray_2] for s in working):.2f} x (goal 0.95)")
    print(f"one worker: {median(s[here] / s[local_1] for s in working):.2f} x as fast as none")
    share = median(seconds[local_1] / seconds[local_2] for seconds in working)
    print(f"local, two workers: {share:.2f} x as fast as one (goal 1.7)\n")


def overhead(place: Path, rounds: int) -> None:
    """Prints the time per small document for each way."""
    write(place, small(SMALL[1]))
    times: list[dict[str, float]] = []
    for _ in range(rounds):
        by_way = {}
        for way in WAYS:
            few, many = (placed(place, way, limit)["working"] for limit in SMALL)
            by_way[way.name] = (many - few) / (SMALL[1] - SMALL[0]) * 1000
        times.append(by_way)
    print("| | ms per small document |\n|---|---|")
    for name in times[0]:
        print(f"| {name} | {median(round_[name] for round_ in times):.2f} |")
    print()


def memory(place: Path) -> None:
    """Prints the driver's peak memory for few and for many documents."""
    print("| documents | driver's peak, MiB | s |\n|---|---|---|")
    for count in LARGE:
        write(place, small(count))
        command = [sys.executable, "-m", "benchmarks.scale", "--peak", str(place), "local"]
        process = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 -- this module
        print(f"| {count:,} | {process.stdout.strip()} |")


def peak(place: Path, executor: str) -> None:
    """Runs once, and prints the peak memory of this process in MiB, and the seconds."""
    times = placed(place, Way(executor, 1))
    mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{mebibytes:,} | {times['working']:.0f}")


if __name__ == "__main__":
    main()
