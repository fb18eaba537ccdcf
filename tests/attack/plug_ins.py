"""Attacks of plug-ins on the worker, its clocks, its files and its driver.

Each run ends soon with status 0, 1 or 2, without a traceback, with all examples that the plug-in
leaves alone, and without a process.
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

from command_line import write_files

from tests.attack.command import leporello, slowness, wrong

_SECONDS = 20  # of a run; times `slowness`
_PLUG_IN = """
import builtins, ctypes, faulthandler, gc, json, os, select, selectors, signal, socket, subprocess
import sys, threading, time
from dataclasses import dataclass
from leporello import Hit, Output, Passage, Read, Span
from leporello.core.errors import Interrupted, Stopped, UserError

class Odd(Exception):
    def __str__(self):
        raise SystemExit(0)

def forever():
    while True:
        try:
            while True: sum(range(9))
        except BaseException:
            pass

def endless():
    while True: yield []

def fds():
    return [int(name) for name in os.listdir("/proc/self/fd")]

def sockets():
    for number in fds():
        try:
            if os.readlink(f"/proc/self/fd/{number}").startswith("socket:"): yield number
        except OSError:
            pass

def junk(content):
    for number in sockets(): os.write(number, content)

def daemon(again):
    subprocess.Popen(["sleep", "600"], start_new_session=again)

def constant(*modules):
    for module, names in modules:
        for name in names: setattr(module, name, lambda *_, **__: 0.0)

def hang(*modules):
    for module, names in modules:
        for name in names: setattr(module, name, lambda *_, **__: forever())

def raises(error):
    raise error

WAYS = {
WAYS_HERE
}

def attack(how, text):
    if how and "bad" in text:
        return WAYS[how]()

@dataclass(frozen=True)
class Chunker:
    depends_on = ()
    how: str = ""

    def chunk(self, document):
        if (odd := attack(self.how, document.text)) is not None: return odd
        return [Span(0, len(document.text))]

@dataclass(frozen=True)
class Enricher:
    depends_on = ()
    how: str = ""

    def enrich(self, document, chunks):
        if (odd := attack(self.how, document.text)) is not None: return odd
        return [*chunks]

@dataclass(frozen=True)
class Retriever:
    depends_on = ()
    how: str = ""

    def retrieve(self, questions, chunks):
        if (odd := attack(self.how, " ".join(questions))) is not None: return odd
        return [[Hit(chunk, 1.0) for chunk in chunks] for _ in questions]

@dataclass(frozen=True)
class Reader:
    depends_on = ()
    how: str = ""

    def read(self, inputs):
        if (odd := attack(self.how, " ".join(read.question for read in inputs))) is not None:
            return odd
        return [Output(read.question.upper()) for read in inputs]

    def count(self, texts):
        return [0 for _ in texts]

@dataclass(frozen=True)
class Slotted(Reader):
    depends_on_batch = False
    slots = 2

@dataclass(frozen=True)
class Combiner:
    depends_on = ()
    how: str = ""

    def combine(self, example, hits):
        if (odd := attack(self.how, example.question)) is not None: return odd
        return self.plain(example, hits)

    def plain(self, example, hits):
        [output] = yield [Read((hits[0].chunk,), example.question)]
        return output.text

@dataclass(frozen=True)
class Later(Combiner):
    def combine(self, example, hits):
        [output] = yield [Read((hits[0].chunk,), example.question)]
        odd = attack(self.how, example.question)
        return output.text if odd is None else odd

@dataclass(frozen=True)
class Metric:
    depends_on = ()
    how: str = ""

    def statistics(self, prediction, example):
        odd = attack(self.how, example.question)
        return [1.0] if odd is None else odd

    def aggregate(self, statistics):
        return {"mine": 1.0}
"""
_WAYS = {
    "swallows": "forever",
    "seven": "lambda: 7",
    "nothing": "lambda: iter(())",
    "endless": "endless",
    "text": "lambda: 'text'",
    "exits": "lambda: os._exit(0)",
    "exits in C": "lambda: ctypes.CDLL(None)._exit(0)",
    "kills itself": "lambda: os.kill(os.getpid(), signal.SIGKILL)",
    "suspends itself": "lambda: os.kill(os.getpid(), signal.SIGSTOP)",
    "sys.exit": "lambda: sys.exit(0)",
    "forks": "lambda: os.fork() and None",
    "stopped": "lambda: raises(Stopped('stop'))",
    "interrupted": "lambda: raises(Interrupted())",
    "keyboard": "lambda: raises(KeyboardInterrupt())",
    "generator exit": "lambda: raises(GeneratorExit())",
    "odd error": "lambda: raises(Odd())",
    "group": "lambda: raises(BaseExceptionGroup('g', [SystemExit(0), KeyboardInterrupt()]))",
    "deep": "lambda: (lambda f: f(f))(lambda f: f(f))",
    "junk": "lambda: junk(b'\\xde\\xad\\xbe\\xef')",
    "short junk": "lambda: junk(b'\\0\\0\\0\\x10')",
    "much junk": "lambda: junk(b'\\x7f' * 10**6)",
    "large header": "lambda: junk(b'\\xf0LEP\\xff\\xff\\xff\\xff')",
    "half header": "lambda: junk(b'\\xf0LEP\\0\\0\\x10\\0')",
    "closes": "lambda: os.closerange(0, 256)",
    "closes sockets": "lambda: [os.close(number) for number in [*sockets()]] and None",
    "reads the socket": "lambda: threading.Thread(target=lambda: [os.read(n, 10**6) for n in"
                        " sockets()], daemon=True).start()",
    "floods output": "lambda: os.write(1, b'x' * 10**6) and os.write(2, b'x' * 10**6) and None",
    "daemon": "lambda: daemon(False)",
    "daemon in a session": "lambda: daemon(True)",
    "constant clock": "lambda: constant((time, ('monotonic', 'time', 'perf_counter', 'sleep')))",
    "hanging clock": "lambda: hang((time, ('monotonic', 'time', 'perf_counter', 'sleep')))",
    "no alarm": "lambda: constant((signal, ('signal', 'setitimer', 'alarm', 'getsignal'))) or"
                " forever()",
    "blocks signals": "lambda: signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64)) and"
                      " forever()",
    "no faulthandler": "lambda: faulthandler.cancel_dump_traceback_later() or forever()",
    "hanging json": "lambda: hang((json, ('loads', 'dumps')))",
    "hanging os": "lambda: hang((os, ('read', 'write', 'open', 'fsync', 'replace', 'getpid')))",
    "hanging selectors": "lambda: hang((selectors, ('DefaultSelector', 'PollSelector'))"
                         ", (select, ('select', 'poll', 'epoll')))",
    "constant exits": "lambda: constant((sys, ('exit',)), (os, ('_exit', 'kill'))) or forever()",
    "no traces": "lambda: sys.setrecursionlimit(60)",
    "thread": "lambda: threading.Thread(target=forever).start()",
    "waits": "lambda: threading.Event().wait()",
    "sleeps": "lambda: time.sleep(600)",
    "no modules": "lambda: sys.modules.clear()",
    "no builtins": "lambda: hang((builtins, ('open', 'print')))",
}  # fmt: skip
_STAGES = ("chunker", "enricher", "retriever", "reader", "slotted", "combiner", "later", "metric")
_OPTIONS: tuple[tuple[str, ...], ...] = (
    ("--workers", "1"), ("--workers", "0"), ("--workers", "2"),
    ("--workers", "1", "--selectors", "1"),
)  # fmt: skip


@dataclass(frozen=True)
class Hostile:
    """A plug-in that does one thing at one stage."""

    way: str  # the thing
    stage: str  # the stage
    options: tuple[str, ...]  # options of the run

    def run(self, folder: Path) -> str | None:
        """Runs the command; returns a line on the fault, or None."""
        ways = "\n".join(f"    {name!r}: {code}," for name, code in _WAYS.items())
        rows = [
            {"id": f"q{n}", "document": f"{word} {n}", "question": f"{word}?"}
            for n, word in enumerate(("good", "bad", "fine"))
        ]
        odd = {"class": f"./plug.py:{self.stage.title()}", "how": self.way}
        stages = {k: {"class": f"./plug.py:{k.title()}"} for k in ("reader", "combiner")}
        key = {"slotted": "reader", "later": "combiner"}.get(self.stage, self.stage)
        task: dict[str, object] = {"class": "JsonLines", "path": "rows.jsonl"}
        if key == "metric":
            task["metrics"] = [odd]
        else:
            stages[key] = odd
        mine = {"tasks": ["rows"], "chunker": "Whole", "retriever": "All", **stages}
        config = {"pipelines": {"mine": mine}, "tasks": {"rows": task}}
        plug_in = _PLUG_IN.replace("WAYS_HERE", ways)
        files = {"plug.py": plug_in, "mine.yaml": json.dumps(config)}
        write_files(folder, {**files, "rows.jsonl": rows})
        shell = f'export ATTACK="{folder}"; exec "$@"'
        start = time.monotonic()
        result = leporello(folder, *self._words(), shell=shell, seconds=3 * _SECONDS)
        if (took := time.monotonic() - start) > _SECONDS * slowness():
            return f"took {took:.0f} s, slowness {slowness():.1f}, status {result.status}"
        return wrong(result, 0, 1, 2) or self._lost(folder, result.status) or _left(folder)

    def _lost(self, folder: Path, status: int | None) -> str | None:
        """Returns a line on a lost example, and on failures with status 0."""
        rows = folder / "out" / "mine" / "rows"
        if not rows.exists() or status == 2:
            return None
        ids, failed = (
            {json.loads(line)["id"] for line in (rows / name).read_text("utf-8").splitlines()}
            for name in ("predictions.jsonl", "failures.jsonl")
        )
        lost = {"q0", "q1", "q2"} - ids - failed
        if lost and not status:
            return f"lost {lost}"
        return "has failures, but status 0" if failed and not status else None

    def _words(self) -> tuple[str, ...]:
        return ("run", "mine", "--config", "mine.yaml", "--out", "out", "--no-cache",
                "--example-timeout", "1", *self.options)  # fmt: skip


def _left(folder: Path) -> str | None:
    """Returns a line on a process that the run has left, or None."""
    end = time.monotonic() + 3  # killed processes end soon
    running = [Path()]
    while running and time.monotonic() < end:
        running = [process for process in Path("/proc").iterdir() if _is_of(process, folder)]
    return f"leaves process {running[0].name}" if running else None


def _is_of(process: Path, folder: Path) -> bool:
    try:
        variables = (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return f"ATTACK={folder}".encode() in variables


def case(random: Random, number: int) -> Hostile:
    """Returns a case: a random one, of which the first ones differ in way and stage."""
    ways = [*_WAYS]
    way = ways[number % len(ways)]
    stage = _STAGES[(number + number // len(ways)) % len(_STAGES)]
    return Hostile(way, stage, _OPTIONS[0] if number < 2 else random.choice(_OPTIONS))
