"""Broken plug-ins of all kinds: each failure has a message that names the fault."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import leporello, read_lines, until, write_files

from leporello.engine import failures, requests

PLUG_IN = """
import faulthandler, os, signal, stat, subprocess, sys, threading, time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
import numpy as np
from leporello import Document, Example, Hit, Output, Read, Span
from leporello.core.records import DocumentRows, Place
from leporello.engine import failures, requests
from leporello.engine.store import Store

failures._GRACE = 0.3  # so that tests need not wait
requests._MOST_ROUNDS = 200
OTHER = Document("other", "bad words")

@dataclass(frozen=True)
class Chunker:
    how: str = ""

    def chunk(self, document):
        yield Span(0, len(document.text))
        if "bad" in document.text:
            match self.how:
                case "reversed": yield Span(5, 2)
                case "outside": yield Span(0, 1000)
                case "floats": yield Span(0.0, 2.5)
                case "texts": yield "bad"
                case "endless":
                    while True: yield Span(0, 1)
                case "title": object.__setattr__(document, "title", "mine")

@dataclass(frozen=True)
class Retriever:
    how: str = ""

    def index(self, chunks):
        return {"places": np.arange(len(chunks))}

    def retrieve(self, questions, chunks):
        return self.search(self.index(chunks), questions, chunks)

    def search(self, index, questions, chunks):
        hits = [[Hit(chunk, 1.0) for chunk in chunks] for _ in questions]
        if not any("bad" in question for question in questions):
            return hits
        match self.how:
            case "generator": return (one for one in hits)
            case "writes": index["places"][0] = 7
            case "generator exit": raise GeneratorExit
            case "interrupt": raise KeyboardInterrupt
            case "sys.exit": sys.exit(0)
            case "os._exit": os._exit(0)
            case "hangs": time.sleep(600)
        return hits

class UntoldError(Exception):
    def __str__(self):
        raise ValueError("no text")

class InterruptedError(Exception):
    def __str__(self):
        raise KeyboardInterrupt

@dataclass(frozen=True)
class Reader:
    how: str = ""

    def read(self, inputs):
        outputs = [Output(read.question.upper()) for read in inputs]
        if len(inputs) > 1 and self.how == "flaky": raise ConnectionError("gone for a moment")
        if len(inputs) > 1 and self.how == "memory": raise MemoryError
        if not any("bad" in read.question for read in inputs):
            return outputs
        match self.how:
            case "none": return None
            case "generator": return iter(outputs)
            case "few": return outputs[1:]
            case "pops": inputs.pop()
            case "untold": raise UntoldError
            case "interrupting text": raise InterruptedError
            case "halves": raise ValueError("half " + chr(0xD800))
            case "long": raise ValueError("long " * 10**6)
            case "forks": os.fork()
            case "drops":
                finish = Store.finish
                Store.finish = lambda store, one: one.number == 2 or finish(store, one)
            case "leaves":
                session = sys.platform == "linux"  # of its own, where it is found all the same
                process = subprocess.Popen(["sleep", "600"], start_new_session=session)
                Path("left").write_text(str(process.pid))
            case "hangs": time.sleep(600)
        return outputs

    def count(self, texts):
        return [0 for _ in texts]

@dataclass(frozen=True)
class Sliding(Reader):
    depends_on_batch = False
    slots = 2

def forever():
    while True:
        try:
            while True: time.sleep(0.01)
        except BaseException:
            pass

@dataclass(frozen=True)
class Combiner:
    how: str = ""

    def combine(self, example, hits):
        [output] = yield [Read((hits[0].chunk,), example.question)]
        if "bad" not in example.question:
            return output.text
        match self.how:
            case "output": return output
            case "object": return {"answer": object()}
            case "not a number": return float("nan")
            case "yields": yield ["bad"]
            case "title": yield [Read((hits[0].chunk,), "bad?", title=Path("x"))]
            case "foreign": yield [Read((OTHER.chunk(0, 3),), "what?")]
            case "asks nothing":
                while True: yield []
            case "asks on":
                while True: [output] = yield [Read(("on",), "on?")]
            case "text": object.__setattr__(example.document, "text", "mine")
            case "loops": forever()
            case "clocks": time.monotonic = time.time = lambda: 0.0
            case "junk" if not Path("wrote").exists():
                Path("wrote").touch()
                for number in range(256):
                    with suppress(OSError):
                        if stat.S_ISSOCK(os.fstat(number).st_mode): os.write(number, b"junk")
            case "stops": os.kill(os.getpid(), signal.SIGSTOP)
            case "calls off":
                faulthandler.cancel_dump_traceback_later()
                forever()
            case "waits":
                thread = threading.Thread(target=forever, daemon=True)
                thread.start()
                thread.join()
        return output.text

@dataclass(frozen=True)
class Loader:
    how: str

    def load(self, path):
        text = path.read_text()
        match self.how if "bad" in text else "":
            case "text": return text
            case "place": return Document("d", text, places=(Place("p. 1", 0, 900),))
            case "raises": raise ValueError("no such page")
            case "sys.exit": sys.exit(0)
        return Document("d", text)

@dataclass(frozen=True)
class Task:
    how: str
    metrics = ("f1",)

    def fingerprint(self):
        return "1"

    def layout(self):
        if self.how == "os._exit": os._exit(0)
        for number in range(4): yield DocumentRows(1, 10, number)

    def examples_of(self, documents, first):
        for rows in documents:
            id_ = rows.rows % (3 if self.how == "far ids" else 9)
            if self.how != "fewer" or rows.rows < 3:
                yield Example(f"q{id_}", Document(f"d{rows.rows}", "Some words."), "who?")

    def examples(self):
        yield from self.examples_of(list(self.layout()), 0)
"""

# Faults of plug-ins by kind, and messages of the failures.
RAISED = {
    "chunker": {
        "reversed": "a span needs 0 <= start <= end, got (5, 2)",
        "outside": "Chunker.chunk yielded (0, 1000), outside document 'd1' of",
        "floats": "Chunker.chunk yielded (0.0, 2.5); a span has whole numbers",
        "texts": "Chunker.chunk yielded 'bad'; it must yield Span(start, end)",
        "endless": "Chunker.chunk yielded more than 1,",
        "title": "Chunker.chunk changed the title of document 'd1'",
    },
    "retriever": {
        "generator": "Retriever.search returned a generator; it must return one list of Hit",
        "writes": "ValueError: assignment destination is read-only",
        "generator exit": "Retriever.search raised GeneratorExit",
        "interrupt": "KeyboardInterrupt: ",
        "sys.exit": "SystemExit: 0",
        "os._exit": "SystemExit: os._exit(0) was called",
    },
    "reader": {
        "none": "Reader.read returned None for 1 input",
        "generator": "Reader.read returned a list_iterator for 1 input",
        "few": "WrongCountError: Reader.read returned 0 for 1 input",
        "pops": "Reader.read changed the list of inputs that it was given",
        "untold": "UntoldError: (its text is not available: ValueError)",
        "interrupting text": "InterruptedError: (its text is not available: KeyboardInterrupt)",
        "halves": "ValueError: half \N{REPLACEMENT CHARACTER}",
        "long": "ValueError: long long",
    },
    "combiner": {
        "output": "did you mean its .text?",
        "object": "a combiner must return text or another JSON value, got {'answer': <object",
        "not a number": "Out of range float values are not JSON compliant",
        "title": "TypeError: a Read's title must be text, got PosixPath('x')",
        "yields": "a combiner must yield a list of Read, Search, Fit or Generates, got ['bad']",
        "foreign": "a passage must be text or a chunk of the example's own document",
        "asks nothing": "yielded 200 times without returning",
        "text": "Combiner.combine changed the text of document 'd1'",
    },
    "loader": {
        "text": "Loader.load returned 'Some bad words.'; it must return a Document",
        "place": "among its places, which is outside its text of 15 characters",
        "raises": "Loader.load failed: ",
        "sys.exit": "Loader.load failed: SystemExit: 0",
    },
}  # fmt: skip
# Faults that need a worker process, which is used in spite of --workers 0.
ENDED = {
    "retriever": {"hangs": "TimeoutError: took longer than 0.5 s"},
    "reader": {"hangs": "TimeoutError: took longer than "},
    "combiner": {
        "loops": "exceeded its time limit by far, and could not be interrupted",
        "stops": "exceeded its time limit by far, and could not be interrupted",
        "calls off": "exceeded its time limit by far, and could not be interrupted",
        "waits": "TimeoutError: took longer than 0.5 s",
        "asks on": "yielded 200 times without returning",
    },
    "sliding": {"hangs": "TimeoutError: took longer than 0.5 s"},
}
REFUSED = {
    "far ids": "task 'own-far-ids' yields an id twice",
    "fewer": "examples belong to other documents than when they were counted",
    "os._exit": "os._exit(0) was called",
}
CASES = [(kind, how) for group in (RAISED, ENDED) for kind, hows in group.items() for how in hows]


def _name(kind: str, how: str) -> str:
    return f"{kind}-{how}".replace(" ", "-").replace(".", "-")


def _config(folder: Path) -> Path:
    """Writes three questions, of which the second triggers the faults, and all pipelines."""
    words = ("good", "bad", "fine")
    rows = [
        {"id": f"q{n}", "document_id": f"d{n}", "document_path": f"d{n}.txt", "question": f"{w}?"}
        for n, w in enumerate(words)
    ]
    texts = {f"d{n}.txt": f"Some {words[n]} words." for n in range(3)}
    write_files(folder, {**texts, "rows.jsonl": rows, "plug.py": PLUG_IN})
    stages = {
        k: {"class": f"./plug.py:{k.title()}"}
        for k in ("chunker", "retriever", "reader", "combiner")
    }
    pipelines: dict[str, Any] = {"good": {"tasks": ["rows"], **stages}}
    rows_task = {"class": "JsonLines", "path": "rows.jsonl"}
    tasks: dict[str, Any] = {"rows": rows_task}
    for kind, how in [
        *CASES,
        *(("reader", how) for how in ("flaky", "memory", "forks", "leaves", "drops")),
        *(("combiner", how) for how in ("clocks", "junk")),
    ]:
        broken = {"class": f"./plug.py:{kind.title()}", "how": how}
        if kind == "loader":
            tasks[_name(kind, how)] = {**rows_task, "loader": broken}
        key = "reader" if kind == "sliding" else kind
        pipelines[_name(kind, how)] = {
            "extends": "good",
            **({} if kind == "loader" else {key: broken}),
        }
    for how in REFUSED:
        tasks[_name("own", how)] = {"class": "./plug.py:Task", "how": how}
    (folder / "mine.yaml").write_text(
        json.dumps({"pipelines": pipelines, "tasks": tasks}, indent=1)
    )
    return folder / "mine.yaml"


@pytest.fixture(scope="module", autouse=True)
def restored_limits() -> Iterator[None]:
    """Restores the limits that the plug-in shortens in the process that loads it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failures, "_GRACE", failures._GRACE)
        patch.setattr(requests, "_MOST_ROUNDS", requests._MOST_ROUNDS)
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs all pipelines; uses a worker process for those that would end this one."""
    folder = tmp_path_factory.mktemp("broken")
    line = ("--config", _config(folder), "--workers", "0", "--no-cache")
    raising = [
        _name(kind, how) for kind, hows in RAISED.items() for how in hows if kind != "loader"
    ]
    ended = [_name(kind, how) for kind, hows in ENDED.items() for how in hows]
    loaders = [part for how in RAISED["loader"] for part in ("--task", _name("loader", how))]
    in_process = (*line, "--window", "1", "--unsupervised")
    leporello("run", *raising, *in_process, "--out", folder / "out", status=1)
    leporello("run", "good", *loaders, *in_process, "--out", folder / "loaded", status=1)
    timed = ("--example-timeout", "0.5", "--out", folder / "ended")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LEPORELLO_UNSUPERVISED")
        process = leporello("run", *ended, *line, *timed, status=1)
    assert "is not a class of Leporello: using a worker process" in process.stderr
    return folder


@pytest.mark.parametrize(("kind", "how"), CASES)
def test_a_broken_stage_fails_its_example_with_a_message(runs: Path, kind: str, how: str) -> None:
    job = Path("good", _name(kind, how)) if kind == "loader" else Path(_name(kind, how), "rows")
    message = RAISED.get(kind, {}).get(how) or ENDED[kind][how]
    out = next(p for run in ("out", "loaded", "ended") if (p := runs / run / job).exists())
    [failure] = read_lines(out / "failures.jsonl")
    stage = {"sliding": "reader", "loader": "task"}.get(kind, kind)
    assert (failure["id"], failure["stage"]) == ("q1", stage)
    assert message in failure["error"]
    answers = {row["id"]: row["prediction"] for row in read_lines(out / "predictions.jsonl")}
    assert answers == {"q0": "GOOD?", "q2": "FINE?"}


def test_files_with_errors_of_stages_are_short_and_utf_8(runs: Path) -> None:
    files = [path for path in (runs / "out").rglob("*.*") if path.suffix != ".sqlite"]
    files = [path for path in files if path.is_file()]
    assert all(path.read_bytes().decode() is not None for path in files)
    assert max(path.stat().st_size for path in files) < 300_000


def test_processes_of_stages_end_with_the_run(tmp_path: Path) -> None:
    options = ("--config", _config(tmp_path), "--no-cache", "--out", tmp_path / "out")
    leporello("run", "reader-forks", "reader-leaves", *options, folder=tmp_path)
    for name in ("reader-forks", "reader-leaves"):
        assert len(read_lines(tmp_path / "out" / name / "rows" / "predictions.jsonl")) == 3
    pid = int((tmp_path / "left").read_text())
    status = Path(f"/proc/{pid}/stat")
    until(lambda: not status.exists() or "Z" in status.read_text())


@pytest.mark.parametrize("how", ["clocks", "junk"])
def test_a_plug_in_that_disturbs_its_worker_does_not_stop_the_run(tmp_path: Path, how: str) -> None:
    """It replaces clocks, or writes into the socket, so that the worker is started again."""
    options = ("--config", _config(tmp_path), "--no-cache", "--out", tmp_path / "out")
    leporello("run", f"combiner-{how}", *options, folder=tmp_path)
    rows = tmp_path / "out" / f"combiner-{how}" / "rows"
    assert len(read_lines(rows / "predictions.jsonl")) == 3
    attempts = [row["outcome"] for row in read_lines(tmp_path / "out" / "workers.jsonl")]
    assert attempts == (["died", "finished"] if how == "junk" else ["finished"])


def test_a_run_with_a_missing_example_has_status_1(tmp_path: Path) -> None:
    options = ("--config", _config(tmp_path), "--no-cache", "--out", tmp_path / "out")
    process = leporello("run", "reader-drops", *options, status=1)
    assert "examples have neither a prediction nor a failure; run the same" in process.stderr


@pytest.mark.parametrize("how", REFUSED)
def test_a_broken_task_is_refused_with_a_message(tmp_path: Path, how: str) -> None:
    line = ("--config", _config(tmp_path), "--workers", "0", "--no-cache", "--unsupervised")
    task = ("--task", _name("own", how), "--out", tmp_path / "out", "--shard-examples", "2")
    assert REFUSED[how] in leporello("run", "good", *line, *task, status=2).stderr


@pytest.mark.parametrize(
    ("how", "status", "note"),
    [
        ("flaky", 1, "failed in a batch, but not alone (reader: ConnectionError: gone for a"),
        ("memory", 0, "was processed in smaller batches, since memory ran out (reader: Memory"),
    ],
)
def test_failures_of_batches_are_reported(tmp_path: Path, how: str, status: int, note: str) -> None:
    """With the examples, in the summary and by the status; lack of memory is not a fault."""
    line = ("--config", _config(tmp_path), "--workers", "0", "--no-cache", "--unsupervised")
    process = leporello("run", f"reader-{how}", *line, "--out", tmp_path / "out", status=status)
    assert f"3x {note}" in process.stdout
    rows = read_lines(tmp_path / "out" / f"reader-{how}" / "rows" / "statistics.jsonl")
    assert all(row["notes"][0].startswith(note) for row in rows)


@pytest.mark.parametrize(
    ("kind", "how"), [("retriever", "os._exit"), ("combiner", "object"), ("loader", "text")]
)
def test_ask_reports_the_fault_of_a_plug_in(tmp_path: Path, kind: str, how: str) -> None:
    line = ("ask", tmp_path / "d1.txt", "bad words?", "--config", _config(tmp_path), "--no-cache")
    loader = json.dumps({"class": str(tmp_path / "plug.py") + ":Loader", "how": how})
    options: tuple[str, ...] = ("--pipeline", _name(kind, how))
    if kind == "loader":
        options = ("--loader", loader, "--pipeline", "good")
    assert RAISED[kind][how] in leporello(*line, *options, status=2).stderr
