"""Attacks with odd numbers and files at all places where a command reads one from outside.

Each command does its work, or refuses with a reason.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from command_line import write_files
from endpoint_server import running

from tests.attack.command import leporello, wrong

_LONG, _LONGER = "9" * 400, "9" * 5_000
_NUMBERS = (
    _LONG, _LONGER, "1e400", "-1e400", "1e308", "9" * 20, f"-{'9' * 20}", "-1", "0", "1e-320",
    f"0.{_LONG}", "NaN", "nan", "inf", "Infinity", ".inf", f"0x{'f' * 390}", "1_0", "true", "٣",
    "2147483648", "9007199254740993", "1e18", "1e7", "[]", '""',
)  # fmt: skip
_FILES = (
    "/dev/zero", "/dev/full", "/dev/stdin", "/dev/fd/0", "/proc/kmsg", "/proc/kcore", "fifo", ".",
    "/proc/self/mem", "sparse", "nothing", "link", "\\udcff", "~nobody", "x" * 300, "/dev/null",
)  # fmt: skip
_OPTIONS = (
    "--example-timeout", "--limit", "--threads", "--window", "--max-active", "--shard-examples",
    "--shard-bytes", "--max-failures", "--worker-gpus", "--show", "--selectors", "--workers",
)  # fmt: skip
_CONFIG = """
pipelines:
  mine:
    tasks: [rows]
    chunker: {class: FixedTokens, size: SIZE}
    retriever: {class: BM25, k: K}
    reader: READER
    budget: {seconds: BUDGET}
tasks:
  rows: {class: JsonLines, path: PATH, max_row_bytes: BYTES}
"""
_PLAIN = {"SIZE": "20", "K": "2", "READER": "BestSentence", "BUDGET": "60", "PATH": "rows.jsonl",
          "BYTES": "100000"}  # fmt: skip
_ROW = '{"id": "1", "document": "Lamp 3 hangs.", "question": "How many?", "references": ["3"]%s}\n'
_FIELDS = (
    '"metadata": {"n": %s}', '"evidence": [[0, %s]]', '"answer": {"type": "number", "minimum": %s}',
    '"answer": {"type": "integer", "maximum": %s}', '"answer": {"type": "list", "maxItems": %s}',
    '"id": %s', '"group": %s',
)  # fmt: skip
_SCORED = (
    '{"id": "1", "prediction": "3", "hits": [{"start": %s, "end": 3, "score": 1}]}',
    '{"id": "1", "prediction": "3", "confidence": %s}', '{"id": %s, "prediction": "3"}', "%s",
)  # fmt: skip
_RUN = ("run", "mine", "--config", "mine.yaml", "--out", "out", "--unsupervised", "--workers")
_COUNTS = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "Retry-After")


@dataclass(frozen=True)
class Odd:
    """A number or file at one place."""

    place: str  # name of the place
    value: str  # the number or file

    def run(self, folder: Path) -> str | None:
        """Runs the command; returns a line on the fault, or None."""
        os.mkfifo(folder / "fifo")
        (folder / "link").symlink_to("link")
        (folder / "sparse").touch()
        os.truncate(folder / "sparse", 2**40)
        row = f", {self.place % self.value}" if self.place in _FIELDS else ""
        scored = self.place % self.value if self.place in _SCORED else ""
        files = {"doc.txt": "Lamp 3 hangs.", "rows.jsonl": _ROW % row}
        write_files(folder, {**files, "scored.jsonl": f"{scored}\n"})
        with running(self._reply) as server:
            address = f"base_url: {server.base_url}, model: m"
            reader = f"{{class: Endpoint, {address}, retries: 1, patience: 1}}"
            replaced = dict(_PLAIN)
            if self.place in _COUNTS or self.place == "answer":
                replaced["READER"] = reader
            if self.place in _PLAIN:
                replaced[self.place] = self.value
            text = _CONFIG
            for key, value in replaced.items():
                text = text.replace(key, value)
            (folder / "mine.yaml").write_text(text, "utf-8")
            return wrong(leporello(folder, *self._words()), 0, 1, 2)

    def _words(self) -> tuple[str, ...]:
        value = os.fsdecode(
            self.value.replace("\\udcff", "\udcff").encode(errors="surrogateescape")
        )
        if self.place in _OPTIONS:
            return (*_RUN, "0", f"{self.place}={value}")
        if self.place in _VERBS:
            return _VERBS[self.place](value)
        if self.place in _SCORED:
            return _score("scored.jsonl")
        return (*_RUN, "0")

    def _reply(self, request: object) -> None:
        text = self.value if self.place == "answer" else "3"
        usage = {"prompt_tokens": 1, "completion_tokens": 1}
        content = json.dumps({
            "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
            "usage": {
                **usage,
                **({self.place: "ODD"} if self.place in usage else {}),
                "prompt_tokens_details": {self.place: "ODD"},
                "completion_tokens_details": {self.place: "ODD"},
            },
        }).replace('"ODD"', self.value)  # fmt: skip
        is_header = self.place == "Retry-After"
        request.send(  # type: ignore[attr-defined]
            content.encode(), 429 if is_header else 200,
            **({"Retry_After": self.value} if is_header and self.value.isascii() else {}),
        )  # fmt: skip


def _score(file: str) -> tuple[str, ...]:
    return ("score", file, "--config", "mine.yaml", "--task", "rows")


_VERBS: Mapping[str, Callable[[str], tuple[str, ...]]] = {
    "ask": lambda file: ("ask", file, "How many?"),
    "ask --config": lambda file: ("ask", "doc.txt", "How many?", "--config", file),
    "ask --schema": lambda file: ("ask", "doc.txt", "How many?", "--schema", file),
    "ask --model": lambda file: ("ask", "doc.txt", "How many?", "--model", file),
    "score": _score,
    "compare": lambda file: ("compare", file),
    "run --out": lambda file: (*_RUN, "0", "--out", file),
    "run --data": lambda file: (*_RUN, "0", "--data", file),
    "run --metric": lambda file: (*_RUN, "0", "--metric", f"{file}:Metric"),
    "extract --out": lambda file: (
        "extract", "doc.txt", "--schema", "mine.yaml", "--out", f"{file}/t.csv",
    ),
}  # fmt: skip
_PLACES = (*_OPTIONS, "SIZE", "K", "BUDGET", "BYTES", *_FIELDS, *_SCORED, *_COUNTS, "answer")
_FILE_PLACES = ("PATH", *_VERBS)


def case(random: Random, number: int) -> Odd:
    """Returns a case; every third one is a file."""
    if number % 3 == 2:
        return Odd(random.choice(_FILE_PLACES), random.choice(_FILES))
    return Odd(_PLACES[number % len(_PLACES)] if number else "prompt_tokens", random.choice(
        _NUMBERS) if number else _LONG)  # fmt: skip
