"""Plug-ins that misbehave at one example: it fails or is answered, and so are all others.

The status tells the truth, what is written is whole and UTF-8, and nothing outlives its deadline.
"""
# ruff: noqa: E501 -- tables

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.attack.command import leporello, wrong

NAME = "plugins"
_EXAMPLES = 6
_TOP = """
import atexit, ctypes, gc, itertools, math, os, re, signal, subprocess, sys, threading, time
from dataclasses import dataclass
from leporello import Hit, Output, Read, Span

class Mute(Exception):
    def __str__(self): raise RuntimeError("no text")
    __repr__ = __str__

class Odd(BaseException): pass

def swallows():
    while True:
        try:
            time.sleep(1)
        except BaseException:
            pass

def deep(n=0): return deep(n + 1)

@dataclass(frozen=True)
class Mine:
"""
# What is done before the stage does its work.
DEEDS: Mapping[str, tuple[str, ...]] = {
    "ends": (
        "os._exit(0)", "os._exit(3)", "sys.exit(0)", "sys.exit('bye')", "os.abort()",
        "ctypes.string_at(0)", "os.kill(os.getpid(), signal.SIGKILL)",
        "os.kill(os.getpid(), signal.SIGTERM)", "os.kill(os.getpid(), signal.SIGINT)",
        "os.kill(os.getpid(), signal.SIGSTOP)", "os.kill(os.getpid(), signal.SIGALRM)",
    ),
    "raises": (
        "raise KeyboardInterrupt", "raise GeneratorExit", "raise StopIteration", "raise MemoryError",
        "raise Mute", "raise Odd", "raise ValueError('\\udc80')", "raise ValueError('x' * 10**7)",
        "raise ValueError('\\0')", "raise BaseExceptionGroup('both', [Odd(), ValueError()])",
        "raise UnicodeDecodeError('utf-8', b'', 0, 1, '\\udc80')", "deep()", "bytearray(1 << 50)",
        "sys.setrecursionlimit(10**9); deep()", "raise TimeoutError", "raise BrokenPipeError",
    ),
    "lasts": (
        "time.sleep(3600)", "swallows()", "re.match('(a+)+$', 'a' * 60 + 'b')", "10 ** 10**9",
        "threading.Lock().acquire() and (lock := threading.Lock()).acquire() and lock.acquire()",
        "[None for _ in itertools.count()] if 0 else any(False for _ in itertools.count())",
        "signal.signal(signal.SIGALRM, signal.SIG_IGN); time.sleep(3600)",
    ),
    "leaves": (
        "threading.Thread(target=time.sleep, args=[3600]).start()", "os.close(1); os.close(2)",
        "os.closerange(3, 256)", "os.chdir('/')", "os.umask(0o777)", "os.environ.clear()",
        "sys.stdout = sys.stderr = None", "print('\\udc80' * 10**5)", "print('x' * 10**7)",
        "atexit.register(lambda: 1 / 0)", "sys.modules.clear()", "sys.settrace(lambda *_: 1 / 0)",
        "threading.excepthook = None; threading.Thread(target=deep).start()", "gc.disable()",
    ),
}  # fmt: skip
# What is returned.
RETURNS: Mapping[str, tuple[str, ...]] = {
    "reader": (
        "None", "[]", "outputs[1:]", "outputs * 2", "iter(outputs)", "'text'", "[None for _ in outputs]",
        "[Output('\\udc80') for _ in outputs]", "[Output('\\0') for _ in outputs]",
        "[Output(3) for _ in outputs]", "[Output(o.text, score=math.nan) for o in outputs]",
        "[Output('x' * 10**7) for _ in outputs]", "[Output('x', scores=(math.inf,)) for _ in outputs]",
        "[Output('x', input_tokens=-1) for _ in outputs]", "[Output('x', probability=2) for _ in outputs]",
        "inputs.clear() or outputs", "[Output('x', read=(Span(0, 10**9),)) for _ in outputs]",
    ),
    "combiner": (
        "None", "math.nan", "b'bytes'", "{1: 2}", "{1, 2}", "object()", "'\\udc80'", "10 ** 5000",
        "(endless := []).append(endless) or endless", "'x' * 10**7", "lambda: 1", "float('inf')",
        "(x for x in itertools.repeat([Read((), 'why?')]))", "(x for x in [None])", "(x for x in [[3]])",
        "(x for x in itertools.repeat([]))", "(x for x in [[Read((), 'why?')] * 10**5])",
    ),
    "chunker": (
        "None", "[]", "[Span(0, 10**9)]", "[Span(-5, 3)]", "[(0, 3)]", "[Span(3, 3)]", "'text'", "[None]",
        "spans[::-1]", "spans * 2", "(Span(0, 1) for _ in itertools.count())", "[Span(0.5, 2)]",
        "object.__setattr__(document, 'text', 'x') or spans",
    ),
    "retriever": (
        "None", "[]", "[[]] * 9", "[[Hit(chunks[0], math.nan)] for _ in questions]", "[[None]]",
        "[[3] for _ in questions]", "[[Hit(c, 1.0) for c in chunks] * 1000 for _ in questions]",
        "[[Hit('text', 1.0)] for _ in questions]", "chunks.clear()", "iter([])",
        "[(Hit(chunks[0], 1.0) for _ in itertools.count()) for _ in questions]",
    ),
}  # fmt: skip
_METHODS = {
    "reader": ("read(self, inputs)", "any('3?' in i.question for i in inputs)",
               "outputs = [Output(i.question) for i in inputs]", "outputs"),
    "combiner": ("combine(self, example, hits)", "'3?' in example.question", "pass", "'it rains'"),
    "chunker": ("chunk(self, document)", "document.id == 'd3'",
                "spans = [Span(0, 5), Span(5, len(document.text))]", "spans"),
    "retriever": ("retrieve(self, questions, chunks)", "any('3?' in q for q in questions)", "pass",
                  "[[Hit(chunks[0], 1.0)] for _ in questions]"),
}  # fmt: skip
CASES = [
    (kind, f"{deed}; return {_METHODS[kind][3]}")
    for deeds in DEEDS.values() for deed in deeds for kind in _METHODS
] + [(kind, f"return {value}") for kind, values in RETURNS.items() for value in values]  # fmt: skip


@dataclass(frozen=True)
class Misdeed:
    """A stage that misbehaves at the fourth of six examples.

    Attributes:
        kind: Stage that it is.
        deed: What it does there.
        workers: Worker processes.
    """

    kind: str
    deed: str
    workers: int

    @property
    def name(self) -> str:
        """In a line."""
        return f"{self.kind}: {self.deed[:70]} (workers {self.workers})"

    @property
    def command(self) -> str:
        """With a cache of its own."""
        return f"rm -rf out && LEPORELLO_CACHE=$PWD/cache leporello {' '.join(self._line)}"

    @property
    def _line(self) -> tuple[str, ...]:
        return ("run", "mine", "--config", "mine.yaml", "--out", "out",
                "--example-timeout", "2", "--workers", str(self.workers))  # fmt: skip

    def run(self, folder: Path) -> str | None:
        """Runs it, and counts what is told of the examples."""
        head, condition, before, after = _METHODS[self.kind]
        body = [f"def {head}:", f"    {before}", f"    if {condition}:",
                f"        {self.deed}", f"    return {after}",
                "def count(self, texts): return [1 for _ in texts]"]  # fmt: skip
        (folder / "plug.py").write_text(_TOP + "".join(f"    {line}\n" for line in body))
        stages = {"chunker": "Paragraphs", "retriever": "BM25", "reader": "BestSentence"}
        tasks = {"rows": {"class": "JsonLines", "path": "rows.jsonl"}}
        pipeline = {**stages, self.kind: {"class": "./plug.py:Mine"}, "tasks": ["rows"]}
        (folder / "mine.yaml").write_text(
            json.dumps({"pipelines": {"mine": pipeline}, "tasks": tasks})
        )
        rows = (
            {"id": f"q{n}", "document_id": f"d{n}", "question": f"Where is house {n}?",
             "document": f"House {n} is in the rain.\n\nLamp {n} is not."}
            for n in range(_EXAMPLES)
        )  # fmt: skip
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        done = leporello(folder, *self._line, seconds=90)
        return wrong(done, 0, 1) or _counted(folder / "out/mine/rows", done.status)


def _counted(results: Path, status: int | None) -> str | None:
    """Returns what is wrong with the files of results."""
    try:
        predictions, failures = (
            [json.loads(line)["id"] for line in (results / name).read_text("utf-8").splitlines()]
            for name in ("predictions.jsonl", "failures.jsonl")
        )
    except (OSError, ValueError) as error:
        return f"results: {error}"
    if sorted([*predictions, *failures]) != [f"q{n}" for n in range(_EXAMPLES)]:
        return f"predictions {predictions}, failures {failures}"
    if {*failures} - {"q3"}:
        return f"others failed too: {failures}"
    return None if bool(failures) == bool(status) else f"status {status}, failures {failures}"


def case(random: Random, number: int) -> Misdeed:
    """Each of `CASES` once, the ways of ending first."""
    return Misdeed(*CASES[number % len(CASES)], random.choice((0, 1)))
