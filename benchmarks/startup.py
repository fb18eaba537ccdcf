"""Measures CPU seconds of commands, as multiples of importing typer, rich, pydantic and yaml.

    python -m benchmarks.startup [--samples 5] [--text FILE]

The multiples are comparable between machines. Each sample is a process, without a warm cache except
for the second `ask`; the table has medians. `--text` is the document of that `ask` (default: 0.9 MB
of the sample task's story). The last row counts the modules of Leporello in which a cached `ask`
enters a function.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "leporello" / "tasks" / "sample"
START = str(ROOT / "run_pipeline.py")
IMPORTS = ("-c", "import typer, rich.console, pydantic, yaml")
MEGABYTES = 0.9
ROW = {
    "id": "0",
    "document": "The river ran past the old mill. The code of K0 is V0. People spoke of trade.",
    "question": "What is the code of K0?",
    "references": ["V0"],
}
CONFIG = """pipelines:
  p: {chunker: {class: FixedTokens}, retriever: {class: BM25, k: 1}, reader: {class: BestSentence}}
tasks:
  toy: {class: JsonLines, path: rows.jsonl, metrics: [f1, exact_match]}
"""
ENTERED = f"""
import os, sys
from leporello.cli import main
root, files = {str(ROOT)!r} + os.sep, set()
def enter(frame, event, argument):
    if event == "call" and frame.f_code.co_name != "<module>":
        files.add(os.path.realpath(frame.f_code.co_filename))
def ask():
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
ask()
sys.setprofile(enter)
ask()
sys.setprofile(None)
print("MODULES", sum(f.startswith(root) and f.endswith(".py") for f in files))
"""


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=5, help="number of processes per row")
    parser.add_argument("--text", type=Path, help="document of the second `ask`")
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rows.jsonl").write_text(json.dumps(ROW) + "\n", encoding="utf-8")
        (folder / "mine.yaml").write_text(CONFIG, encoding="utf-8")
        text = options.text.resolve() if options.text else long_text(folder / "story.txt")
        environment = {**os.environ, "LEPORELLO_CACHE": f"{folder}/cache", "OMP_NUM_THREADS": "1"}
        base = median(IMPORTS, options.samples, environment)
        print(f"| CPU seconds in multiples of the imports ({base:.2f} s) | |\n|---|---|")
        for row, arguments in commands(folder, text).items():
            if row == "second ask":
                cpu_seconds((START, *arguments), environment)
            seconds = median((START, *arguments), options.samples, environment)
            print(f"| {row} | {seconds / base:.1f} |", flush=True)
        print(f"| modules entered by ask, cached | {modules_entered(environment)} |")


def commands(folder: Path, text: Path) -> Mapping[str, Sequence[str]]:
    """Returns the arguments of each row; `{n}` is the number of the sample."""
    config = str(folder / "mine.yaml")
    run = ["run", "p", "--task", "toy", "--config", config, "--no-cache", "--workers", "0"]
    return {
        "--help": ["--help"],
        "list pipelines": ["list", "pipelines"],
        "check --config FILE": ["check", "--config", config],
        "schema": ["schema"],
        "first example of a run": [*run, "--out", f"{folder}/run{{n}}"],
        "second ask": ["ask", str(text), "--pipeline", "best-sentence", "Who?"],
    }


def long_text(path: Path) -> Path:
    """Writes the sample task's story repeatedly, and returns the file."""
    story = (SAMPLE / "story.txt").read_text(encoding="utf-8")
    path.write_text(story * round(MEGABYTES * 1e6 / len(story)), encoding="utf-8")
    return path


def median(arguments: Sequence[str], samples: int, environment: Mapping[str, str]) -> float:
    """Returns the median CPU seconds of some processes."""
    return statistics.median(
        cpu_seconds([argument.replace("{n}", str(n)) for argument in arguments], environment)
        for n in range(samples)
    )


def cpu_seconds(arguments: Sequence[str], environment: Mapping[str, str]) -> float:
    """Returns the CPU seconds of a process and its child processes."""
    process = subprocess.Popen(  # noqa: S603 -- the command line of this project
        [sys.executable, *arguments], env=environment, cwd=ROOT,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(arguments)} failed")
    return usage.ru_utime + usage.ru_stime


def modules_entered(environment: Mapping[str, str]) -> int:
    """Returns the number of Leporello's modules that a cached `ask` enters."""
    question = "Who addressed a memorandum to the Works Committee?"
    process = subprocess.run(  # noqa: S603 -- the command line of this project
        [sys.executable, "-c", ENTERED, "ask", str(SAMPLE / "report.md"), question],
        env=environment, cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(process.stdout.rpartition("MODULES")[2])


if __name__ == "__main__":
    main()
