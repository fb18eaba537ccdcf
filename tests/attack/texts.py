"""Attacks with texts that control terminals or spreadsheets, at all places that a command shows.

No output contains a control character or a bidirectional override, and no cell of a table a
formula. Output of `--json` is JSON.
"""

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from random import Random

from endpoint_server import Request, running

from tests.attack.command import leporello, wrong

_ODD = (
    "\x1b]52;c;aGk=\x07", "\x1b[2J\x1b[1A", "\x9b2J", "\x1b]0;title\x1b\\", "\r", "\x08\x08",
    "\x00", "\u202e", "\u2066", "\x7f", "\x1bP+q\x1b\\", "\x85", "[bold]", "\\x1b", "=1+1", "-5",
    "@SUM(1)", "\t=1", "\u2028", "\ud83d",
)  # fmt: skip
_SHOWN = frozenset("\n\t")
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
_PLACES = ("text", "reply", "error", "file", "question", "id", "key", "title")
_CONFIG = """
pipelines:
  mine:
    tasks: [rows]
    reader: {class: Endpoint, base_url: ADDRESS, model: m, retries: 0, patience: 1}
tasks:
  rows: {class: JsonLines, path: rows.jsonl}
"""
_COMMANDS = (
    ("ask", "FILE", "QUESTION", "--model", "ADDRESS"), ("ask", "FILE", "QUESTION"),
    ("ask", "FILE", "QUESTION", "--json"), ("run", "mine", "--config", "mine.yaml", "--show", "3"),
    ("extract", "FILE", "--schema", "fields.yaml", "--out", "table.csv"),
    ("score", "rows.jsonl", "--config", "mine.yaml", "--task", "rows"),
    ("check", "--config", "mine.yaml"),
)  # fmt: skip


@dataclass(frozen=True)
class Odd:
    """An odd text at one place, which a command shows."""

    command: tuple[str, ...]  # verb and arguments
    place: str  # name of the place
    text: str  # the text

    def run(self, folder: Path) -> str | None:
        """Runs the command; returns a line on the fault, or None."""
        file = folder / _argument(f"{self._at('file')}doc.md")
        title, text = self._at("title"), self._at("text")
        content = f"# The lamp {title}\n\nThe lamp {text} hangs from hook {text}5 {text}.\n"
        file.write_bytes(content.encode(errors="replace"))
        question = f"Where {self._at('question')} hangs the lamp?"
        row = {
            "id": f"a{self._at('id')}", "document": content, self._at("key") or "note": 1,
            "question": question, "references": ["hook"],
        }  # fmt: skip
        (folder / "rows.jsonl").write_text(json.dumps(row), "utf-8")
        fields = "fields: {hook: {description: Where does the lamp hang?}}"
        (folder / "fields.yaml").write_text(fields, "utf-8")
        with running(self._reply) as server:
            config = _CONFIG.replace("ADDRESS", server.base_url)
            (folder / "mine.yaml").write_text(config, "utf-8")
            values = {
                "FILE": file.name,
                "QUESTION": _argument(question),
                "ADDRESS": server.base_url,
            }
            words = (values.get(word, word) for word in self.command)
            ended = leporello(folder, *words)
        if fault := wrong(ended, 0, 1, 2):
            return fault
        shown = {*ended.stdout, *ended.stderr} - _SHOWN
        controls = {c for c in shown if ord(c) < 32 or 127 <= ord(c) < 160 or c in _BIDI}
        if "--json" in self.command:
            json.loads(ended.stdout or "{}")
        if controls:
            return f"shows {sorted(controls)}"
        table = folder / "table.csv"
        cells = [*csv.reader(table.open(newline="", encoding="utf-8"))] if table.exists() else []
        formulas = [c for r in cells for c in r if c.startswith(_FORMULAS) and not _is_number(c)]
        return f"the table has the formula {formulas[0]!r}" if formulas else None

    def _at(self, place: str) -> str:
        return self.text if self.place == place else ""

    def _reply(self, request: Request) -> None:
        if self.place == "error":
            request.fail(400, {"message": self.text})
        message = {"content": f"the hook {self._at('reply')}"}
        choice = {"message": message, "finish_reason": "stop"}
        request.send(json.dumps({"choices": [choice]}).encode())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def case(random: Random, number: int) -> Odd:
    """Returns a case; each command meets each text in turn."""
    command = _COMMANDS[number % len(_COMMANDS)]
    return Odd(command, _PLACES[number % len(_PLACES)], random.choice(_ODD) if number else _ODD[0])


def _argument(text: str) -> str:
    """Returns a text without what no name of a file and no argument can contain."""
    return text.replace("\0", "").encode(errors="ignore").decode()
