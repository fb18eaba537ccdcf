"""Attacks that change input files during a run, with their size and modification time kept.

A run whose files have other bytes at its end refuses; one whose files have the same bytes does not.
"""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from random import Random

from command_line import write_files

from tests.attack.command import leporello, wrong

# The reader makes the change with its first read, so that it comes between two reads of the file.
_PLUG_IN = """
import os, shutil
from dataclasses import dataclass
from pathlib import Path
from leporello import Output

def change(path, how, other):
    before, kept = path.stat(), path.read_bytes()
    new = other.read_bytes() if how.startswith("other bytes") else kept
    if how.endswith("another file"):
        beside = path.with_name("beside")
        beside.write_bytes(new)
        beside.replace(path)
    elif how.endswith("link"):
        path.with_name("link").write_bytes(new)
        path.unlink()
        path.symlink_to("link")
    else:
        path.write_bytes(new)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    if how.endswith("mode"):
        path.chmod(0o600)

@dataclass(frozen=True)
class Reader:
    depends_on = ()
    file: str
    how: str

    def read(self, inputs):
        path = Path(self.file)
        other = path.with_name("other")
        if other.exists():
            change(path, self.how, other)
            other.unlink()
        return [Output(read.question) for read in inputs]

    def count(self, texts):
        return [0 for _ in texts]
"""
_FILES = ("rows.jsonl", "rows.jsonl.gz", "d3.txt")
_WAYS = ("other bytes", "same bytes", "other bytes in another file", "same bytes in another file",
         "other bytes behind a link", "same bytes and another mode")  # fmt: skip
_EXAMPLES = 12


@dataclass(frozen=True)
class Exchange:
    """A change of an input file."""

    file: str  # name of the file
    way: str  # kind of change
    workers: int  # number of workers

    def run(self, folder: Path) -> str | None:
        """Runs the command; returns a line on the fault, or None."""
        documents = {"document_path": "d3.txt"} if self.file == "d3.txt" else {"document": "Lamp"}
        rows, others = (
            [{"id": f"q{n}", "question": f"{letter}{n}?", **documents} for n in range(_EXAMPLES)]
            for letter in "ab"
        )
        data = "rows.jsonl" if self.file == "d3.txt" else self.file
        reader = {"class": "./plug.py:Reader", "file": str(folder / self.file), "how": self.way}
        config = {
            "pipelines": {"mine": {"tasks": ["rows"], "reader": reader}},
            "tasks": {"rows": {"class": "JsonLines", "path": data}},
        }
        files = {"d3.txt": "lamp", "plug.py": _PLUG_IN, "mine.yaml": json.dumps(config)}
        write_files(folder, {**files, "rows.jsonl": rows, "other": others})
        if self.file == "rows.jsonl.gz":
            for name, to in (("rows.jsonl", self.file), ("other", "other")):
                content = (folder / name).read_bytes()
                (folder / to).write_bytes(gzip.compress(content, 0, mtime=0))
        elif self.file == "d3.txt":
            (folder / "other").write_text("rain", "utf-8")
        result = leporello(folder, *self._words())
        differs = self.way.startswith("other")
        if fault := wrong(result, 2 if differs else 0):
            return fault
        if differs and "changed while the run was reading" not in result.stderr:
            return f"refused for another reason: {result.stderr}"
        return None

    def _words(self) -> tuple[str, ...]:
        options = ("--workers", str(self.workers), *(() if self.workers else ("--unsupervised",)))
        return ("run", "mine", "--config", "mine.yaml", "--out", "out", "--window", "2",
                "--shard-examples", "4", *options)  # fmt: skip


def case(random: Random, number: int) -> Exchange:
    """Returns a case; all files meet all ways in turn."""
    way = _WAYS[number % len(_WAYS)]
    return Exchange(_FILES[number // len(_WAYS) % len(_FILES)], way, random.choice((0, 0, 2)))
