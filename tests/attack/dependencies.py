"""What a plug-in's results rest on is changed between two runs.

With the cache of the first run, the second makes what it makes with an empty one; the first run's
directory is refused, or made anew.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random

from tests.attack.command import Started, wrong
from tests.attack.ways import MADE, WAYS

NAME = "dependencies"
WORDS = ("red", "tan")  # of one length, as a change can be
_SITE = f"base/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages/"
_PLUG_IN = """
import functools, importlib, os, threading
from dataclasses import dataclass
from pathlib import Path
from leporello import Hit, Output, Span

HERE = Path(__file__).parent
P = HERE / "words.txt"
{before}

{moment}

@dataclass(frozen=True)
class Says{base}:
{constructor}
    def word(self):
        return {inside}

{methods}
"""
# When it comes by the word: lines at the top, the constructor, the expression in the method.
_MOMENTS = {
    "at work": ("", "", "{word}"),
    "when imported": ("W = {word}", "", "W"),
    "once a process": ("@functools.cache\ndef once():\n    return {word}", "", "once()"),
    "as a default": ("def default(w={word}):\n    return w", "", "default()"),
    "in a thread": (
        "def threaded(said):\n    said.append({word})\n"
        "def waited():\n    said = []\n"
        "    thread = threading.Thread(target=threaded, args=[said])\n"
        "    thread.start()\n    thread.join()\n    return said[0]",
        "",
        "waited()",
    ),
    "in the constructor": (
        "",
        "    def __post_init__(self):\n        object.__setattr__(self, 'w', {word})\n",
        "self.w",
    ),
}
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
    """A plug-in that comes by a word.

    Attributes:
        way: Name of the way.
        moment: When.
        kind: Stage that it is.
        options: Of the command.
    """

    way: str
    moment: str = "at work"
    kind: str = "reader"
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """In a line."""
        return f"{self.way}, {self.moment}, {self.kind} {' '.join(self.options)}".strip()

    @property
    def command(self) -> str:
        """On the folder as it is after the change."""
        return (
            f"PYTHONUSERBASE=$PWD/base PYTHONPATH=$PYTHONPATH:$PWD/{_SITE} WORDS=tan SECOND=1"
            f" LEPORELLO_CACHE=$PWD/cache leporello {' '.join(self._line('again'))}"
        )

    def run(self, folder: Path) -> str | None:
        """Runs it before and after the change."""
        way = WAYS[self.way]
        self._project(folder)
        with _server() as server:
            (folder / "port").write_text(str(server.server_port))
            before, _ = self._ended(folder, "one", WORDS[0])
            again, _ = self._ended(folder, "two", WORDS[1])
            fresh, told = self._ended(folder, "fresh", WORDS[1], cache="other")
            if told or not fresh:
                return told
            if before == again:
                return "taken from the cache"
            if before == fresh:
                return "the change changes nothing: the case is at fault"
            if again != fresh and way.is_repeated:
                return "another result than with an empty cache"
            one, told = self._ended(folder, "one", WORDS[1])
            stale = way.is_seen and one not in (None, fresh)
            return told or ("the finished run is gone on with" if stale else None)

    def _ended(
        self, folder: Path, out: str, word: str, cache: str = "cache"
    ) -> tuple[bytes | None, str | None]:
        """Runs it; returns its predictions, none if it is refused, and what is wrong."""
        _Server.word = word
        for path, text in WAYS[self.way].files.items():
            _write(folder / path.replace("site/", _SITE), text, word)
        own = {
            "PYTHONUSERBASE": str(folder / "base"),
            "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(folder / _SITE)]),
            "WORDS": word,
            "SERVER": f"http://127.0.0.1:{(folder / 'port').read_text()}/",
            "LEPORELLO_CACHE": str(folder / cache),
            **({"SECOND": "1"} if word != WORDS[0] else {}),
        }
        done = Started(folder, *self._line(out), **own).end()
        if (told := wrong(done, 0, 2 if out == "one" else 0)) or done.status:
            return None, told
        return (folder / out / "mine/rows/predictions.jsonl").read_bytes(), None

    def _line(self, out: str) -> list[str]:
        return ["run", "mine", "--config", "mine.yaml", "--out", out, *self.options]

    def _project(self, folder: Path) -> None:
        """Writes the plug-in, its pipeline, a document and a question."""
        way, kind = WAYS[self.way], self.kind.rpartition(" ")[2]
        moment, constructor, inside = (
            text.replace("{word}", way.word) for text in _MOMENTS[self.moment]
        )
        base = "(Base)" if "Base" in way.before else ""
        values = {
            "before": way.before, "moment": moment, "base": base, "constructor": constructor,
            "inside": inside, "methods": _METHODS[self.kind],
        }  # fmt: skip
        text = _PLUG_IN
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", value)
        (folder / "plug.py").write_text(text)
        stages = {key: {"class": name} for key, name in _STAGES.items()}
        stages[kind] = {"class": "./plug.py:Says"}
        tasks = {"rows": {"class": "JsonLines", "path": "rows.jsonl"}}
        config = {"pipelines": {"mine": {**stages, "tasks": ["rows"]}}, "tasks": tasks}
        (folder / "mine.yaml").write_text(json.dumps(config))
        said = "\n\n".join(f"In house {n} the rain falls on lamp {n * n}." for n in range(30))
        row = {"id": "a", "document": said, "question": "Where does the rain fall?"}
        (folder / "rows.jsonl").write_text(json.dumps(row))

    def smaller(self) -> Iterator[Dependency]:
        """Yields it at work, as a reader, in this process."""
        for usual in ({"moment": "at work"}, {"kind": "reader"}, {"options": ()}):
            if (smaller := replace(self, **usual)) != self:
                yield smaller


def _write(path: Path, text: str, word: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    suffix = next((suffix for suffix in MADE if str(path).endswith(suffix)), "")
    if suffix and not text:
        MADE[suffix](path, word)
    elif "{late}" in text:
        if word != WORDS[0]:
            path.write_text(f'WORD = "{word}"\n')
    else:
        path.write_text(text.replace("{word}", word).replace("{{", "{").replace("}}", "}"))
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
    """Each way once in `len(WAYS)` cases; at work and as a reader at first."""
    way = [*WAYS][number % len(WAYS)]
    options = random.choice(((), ("--workers", "0", "--unsupervised"), ("--workers", "2")))
    if number < len(WAYS):
        return Dependency(way, options=options)
    is_method = "self." in WAYS[way].word
    moment = "at work" if is_method else random.choice([*_MOMENTS])
    return Dependency(way, moment, random.choice([*_METHODS]), options)
