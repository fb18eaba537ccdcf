"""Something that a plug-in's results depend on is changed between two runs.

With the cache of the first run, the second gives the results of one with an empty cache, and the
first run's directory is refused. A change that nobody declared is not noticed: one line warns.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random

from tests.attack.command import Done, Started, wrong
from tests.attack.ways import WAYS, Way

WORDS = ("red", "tan")  # of one length, as a change can be
_SITE = f"base/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages/"
_WARNING = "plug.py:Says does not declare depends_on"
_PLUG_IN = """
import importlib, os
from dataclasses import dataclass
from pathlib import Path
from leporello import Hit, Output, Span

HERE = Path(__file__).parent
{before}

@dataclass(frozen=True)
class Says{base}:
    {declares}

    source: Path = Path("none")
    named: str = ""

    def word(self):
        return {word}

{methods}
"""
_METHODS = {
    "reader": """
    def read(self, inputs):
        return [Output(self.word()) for _ in inputs]
    def count(self, texts):
        return [len(text) for text in texts]
""",
    "combiner": """
    def combine(self, example, hits):
        return self.word()
""",
    "chunker": """
    def chunk(self, document):
        at = 3 + sum(map(ord, self.word())) % 50
        return [Span(0, at), Span(at, len(document.text))]
""",
    "retriever": """
    def retrieve(self, questions, chunks):
        at = sum(map(ord, self.word())) % len(chunks)
        return [[Hit(chunks[at], 1.0)] for _ in questions]
""",
    "index of a retriever": """
    def index(self, chunks):
        return {"at": sum(map(ord, self.word())) % len(chunks)}
    def search(self, index, questions, chunks):
        return [[Hit(chunks[index["at"]], 1.0)] for _ in questions]
    def retrieve(self, questions, chunks):
        return self.search(self.index(chunks), questions, chunks)
""",
}
_STAGES = {"chunker": "Paragraphs", "retriever": "BM25", "reader": "BestSentence"}


@dataclass(frozen=True)
class Dependency:
    """A plug-in whose results depend on a word.

    Attributes:
        way: Name of the way to the word.
        kind: Stage that it is.
        options: Options of the command.
    """

    way: str
    kind: str = "reader"
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """In a line."""
        return f"{self.way}, {self.kind} {' '.join(self.options)}".strip()

    @property
    def command(self) -> str:
        """On the folder after the change."""
        return (
            f"PYTHONUSERBASE=$PWD/base PYTHONPATH=$PYTHONPATH:$PWD/{_SITE} WORDS=tan SECOND=tan"
            f" LEPORELLO_CACHE=$PWD/cache leporello {' '.join(self._line('again', WORDS[1]))}"
        )

    def run(self, folder: Path) -> str | None:
        """Runs it before and after the change."""
        self._project(folder)
        with _server() as server:
            (folder / "port").write_text(str(server.server_port))
            return self._judged(folder, WAYS[self.way])

    def _judged(self, folder: Path, way: Way) -> str | None:
        before = self._result(folder, self._done(folder, "one", WORDS[0]), "one")
        done = self._done(folder, "two", WORDS[1])
        again = self._result(folder, done, "two")
        fresh = self._result(folder, self._done(folder, "new", WORDS[1], cache="other"), "new")
        same = self._done(folder, "one", WORDS[1])
        for each in (done, same):
            if fault := wrong(each, 0, 2 if each is same else 0):
                return fault
        if before is None or fresh is None or before == fresh:
            return "the change changes nothing: the case is at fault"
        if way.is_reused:
            warned = all(each.stderr.count(_WARNING) == 1 for each in (done, same))
            kept = self.kind == "combiner" or again == before  # no combiner is cached
            return None if kept and (warned or self.kind == "combiner") else "no line warns"
        if again != fresh:
            return "taken from the cache" if again == before else "another result"
        return "the finished run is gone on with" if way.is_seen and same.status != 2 else None

    def _done(self, folder: Path, out: str, word: str, cache: str = "cache") -> Done:
        """Runs it with a word."""
        _Server.word = word
        for path, text in WAYS[self.way].files.items():
            _write(folder / path.replace("site/", _SITE), text, word)
        own = {
            "PYTHONUSERBASE": str(folder / "base"),
            "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(folder / _SITE)]),
            "WORDS": word,
            "SERVER": f"http://127.0.0.1:{(folder / 'port').read_text()}/",
            "LEPORELLO_CACHE": str(folder / cache),
            **({"SECOND": word} if word != WORDS[0] else {}),
        }
        return Started(folder, *self._line(out, word), **own).end()

    def _result(self, folder: Path, done: Done, out: str) -> bytes | None:
        """Returns the predictions of a run, None if it failed."""
        path = folder / out / "mine/rows/predictions.jsonl"
        return path.read_bytes() if done.status == 0 else None

    def _line(self, out: str, word: str) -> list[str]:
        named = ["--set", f"{self._stage}.named={word}"] if WAYS[self.way].named else []
        return ["run", "mine", "--config", "mine.yaml", "--out", out, *named, *self.options]

    @property
    def _stage(self) -> str:
        return self.kind.rpartition(" ")[2]

    def _project(self, folder: Path) -> None:
        """Writes the plug-in, its pipeline, a document and a question."""
        way = WAYS[self.way]
        text = _PLUG_IN
        values = {
            "before": way.before, "word": way.word, "declares": way.declares,
            "base": "(Base)" if "Base" in way.before else "", "methods": _METHODS[self.kind],
        }  # fmt: skip
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", value)
        (folder / "plug.py").write_text(text)
        stages: dict[str, object] = {key: {"class": name} for key, name in _STAGES.items()}
        source = {"source": way.source} if way.source else {}
        stages[self._stage] = {"class": "./plug.py:Says", **source}
        tasks = {"rows": {"class": "JsonLines", "path": "rows.jsonl"}}
        config = {"pipelines": {"mine": {**stages, "tasks": ["rows"]}}, "tasks": tasks}
        (folder / "mine.yaml").write_text(json.dumps(config))
        said = "\n\n".join(f"In house {n} the rain falls on lamp {n * n}." for n in range(30))
        row = {"id": "a", "document": said, "question": "Where does the rain fall?"}
        (folder / "rows.jsonl").write_text(json.dumps(row))


def _write(path: Path, text: str, word: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    version = "1.0" if word == WORDS[0] else "2.0"
    if path.suffix == ".link":
        path.unlink(missing_ok=True)
        path.with_name(word).write_text(word)
        path.symlink_to(word)
    elif "{late}" in text:
        if word != WORDS[0]:
            path.write_text(f'WORD = "{word}"\n')
    else:
        path.write_text(text.replace("{word}", word).replace("{version}", version))
        os.utime(path, (1e9, 1e9))  # nor does its time tell


class _Server(BaseHTTPRequestHandler):
    word = ""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.word.encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def case(random: Random, number: int) -> Dependency:
    """Each way once in `len(WAYS)` cases, at first as a reader."""
    way = [*WAYS][number % len(WAYS)]
    options = random.choice(((), ("--workers", "0", "--unsupervised"), ("--workers", "2")))
    kind = "reader" if number < len(WAYS) else random.choice([*_METHODS])
    return Dependency(way, kind, options)
