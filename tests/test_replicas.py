"""Readers in several processes: the same answers, whatever becomes of a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import command, leporello, read_lines
from deadly import Deadly
from tiny_models import STORY, save

from leporello.errors import UserError
from leporello.executors.hands import LocalHands, LostError
from leporello.executors.sending import dump
from leporello.records import Read
from readers import CausalLM, Seq2Seq
from readers.replicas import Replicas

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a tiny T5 and a tiny Llama."""
    folder = tmp_path_factory.mktemp("models")
    for name in ("t5", "chat"):
        save(name, folder / name)
    return folder


def inputs() -> list[Read]:
    """Returns inputs of many lengths, some with choices, some twice."""
    texts = [STORY[: 10 + 9 * n] for n in range(12)]
    plain = [Read((text,), question="Who?") for text in texts]
    chosen = [Read((text,), question="Who?", choices=("cat", "mill")) for text in texts[:5]]
    return [*plain, *chosen, plain[3]]


def reader(models: Path, kind: str) -> Any:
    """Returns a reader whose micro-batches are small, so that there are many."""
    if kind == "t5":
        return Seq2Seq(str(models / "t5"), max_new_tokens=8, batch_tokens=300, device="cpu")
    model = str(models / "chat")
    return CausalLM(model, max_new_tokens=8, batch_tokens=300, device="cpu")


@pytest.fixture(scope="module")
def two(models: Path) -> Any:
    """Returns a T5 reader in two processes, which end with these tests."""
    made = reader(models, "t5")
    made.replicate(2)
    yield made
    made._replicas.close()


def processes(made: Any) -> list[int]:
    """Returns the numbers of a reader's processes."""
    return [replica.hand._beside._process.pid for replica in made._replicas._replicas]


def test_several_processes_say_what_one_says(models: Path, two: Any) -> None:
    """To the last digit: the same micro-batches are read, wherever they are; no model is here."""
    alone = reader(models, "t5")
    assert two.read(inputs()) == alone.read(inputs())
    assert len(set(processes(two))) == 2
    assert two.read(inputs()[:2]) == alone.read(inputs()[:2])
    assert "_model" not in two.__dict__


def test_a_chat_model_is_replicated_too(models: Path) -> None:
    """With its template."""
    alone, other = reader(models, "chat"), reader(models, "chat")
    other.replicate(1)
    assert other.read(inputs()) == alone.read(inputs())
    other._replicas.close()


def test_a_process_that_dies_is_replaced(models: Path, two: Any) -> None:
    """What it was at is read again, and nobody notices."""
    expected = reader(models, "t5").read(inputs())
    two.load()
    first, second = processes(two)
    os.kill(first, signal.SIGKILL)
    assert two.read(inputs()) == expected
    assert second in processes(two)
    assert first not in processes(two)


def test_a_batch_that_always_kills_is_given_up() -> None:
    """After three processes; the error says how they ended, and later batches are read."""
    replicas: Any = Replicas(Deadly(), 1)
    with pytest.raises(RuntimeError, match="ended with status 7 each time"):
        replicas.answers([["a"], ["die"], ["b"]])
    assert replicas.answers([["a"], ["b"]]) == [["A"], ["B"]]
    replicas.close()


def test_what_a_reader_raises_is_raised_here() -> None:
    """In the same words where it cannot be sent as it is."""
    replicas: Any = Replicas(Deadly(), 1)
    with pytest.raises(UserError, match="told"):
        replicas.answers([["fail"]])
    with pytest.raises(RuntimeError, match="OddError: one and two"):
        replicas.answers([["odd"]])
    replicas.close()


def test_batches_shrink_where_a_process_has_too_little_memory() -> None:
    """What did not fit is told, and what was not begun; a prompt that fails alone is an error."""
    replicas: Any = Replicas(Deadly(), 1)
    assert replicas.answers([["a"], ["i", "j"], ["b"]]) == [["A"], None, None]
    with pytest.raises(RuntimeError, match="CUDA out of memory"):
        replicas.answers([["i"]])
    assert replicas.budget() == 10
    replicas.close()


def test_a_model_that_cannot_be_loaded_is_told_as_ever(models: Path) -> None:
    """The processes' mistakes of the user's are the user's."""
    missing = replace(reader(models, "t5"), model=str(models / "nowhere"))
    missing.replicate(1)
    with pytest.raises(UserError, match="nowhere"):
        missing.load()


def test_a_process_that_never_loads_is_given_up() -> None:
    """After three; no batch is to blame."""
    replicas: Any = Replicas(SimpleNamespace(load=partial(os._exit, 3)), 1)
    with pytest.raises(UserError, match="to read ended with status 3 while it loaded"):
        replicas.answers([["a"]])
    assert replicas._replicas == []


def test_gpus_are_dealt_out_to_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that replaces another has its GPU, rather than one that is taken."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    hands, asks = LocalHands(), dump(os.getenv)
    started = [hands.start(asks) for _ in range(2)]
    assert [gpu_of(hand) for hand in started] == ["4", "7"]
    started[0].end()
    with pytest.raises(LostError, match="was killed by signal 9"):
        gpu_of(started[0])
    replacing = hands.start(asks)
    assert gpu_of(replacing) == "4"
    assert [hands.sharing(count) for count in (1, 2, 3)] == [1, 1, 2]
    for hand in (started[1], replacing):
        hand.end()


def gpu_of(hand: Any) -> Any:
    """Returns the GPU that a process sees, of which it is asked."""
    hand.send("CUDA_VISIBLE_DEVICES")
    return hand.receive()


CONFIG = """
pipelines:
  mine:
    chunker: {{class: FixedTokens, size: 6}}
    reader: {{class: Seq2Seq, model: {model}, max_new_tokens: 6, batch_tokens: 200, device: cpu}}
    combiner: {{class: ReadEach}}
tasks:
  rows: {{class: JsonLines, path: rows.jsonl}}
"""


@pytest.fixture
def config(models: Path, tmp_path: Path) -> Path:
    """Returns a config with a pipeline of many small reads."""
    path = tmp_path / "mine.yaml"
    path.write_text(CONFIG.format(model=models / "t5"))
    rows = [{"id": str(n), "document": STORY, "question": f"Who {n}?"} for n in range(5)]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_a_run_with_replicas_has_the_same_bytes(config: Path, tmp_path: Path) -> None:
    """And goes on where a run without left off."""
    given: list[str | Path] = ["--task", "rows", "--config", config, "--no-cache"]
    leporello("run", "mine", *given, "--limit", "4", "--out", tmp_path / "one")
    leporello("run", "mine", *given, "--limit", "4", "--out", tmp_path / "two", "--replicas", "2")
    one, two = (tmp_path / name / "mine/rows/predictions.jsonl" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    assert len(read_lines(one)) == 4
    leporello("run", "mine", *given, "--limit", "5", "--out", tmp_path / "one", "--replicas", "2")
    assert len(read_lines(one)) == 5


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("best-sentence", "--replicas", "2"), "BestSentence reads in this process alone"),
        (("best-sentence", "--replicas", "many"), "--reader-replicas takes a number or 'auto'"),
        (("best-sentence", "--replicas", "0"), "reader_replicas: input should be greater than 0"),
    ],
)
def test_what_cannot_be_replicated_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    """Before anything is read."""
    done = leporello("run", *arguments, "--out", tmp_path / "run", status=2)
    assert told in done.stderr


def test_replicas_end_with_the_process_that_asks(config: Path, tmp_path: Path) -> None:
    """Also when that is killed."""
    given: list[str | Path] = [
        "--task",
        "rows",
        "--config",
        config,
        "--no-cache",
        "--replicas",
        "2",
    ]
    run = subprocess.Popen(
        command("run", "mine", *given, "--out", tmp_path / "run"), stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while not (started := beside(run.pid)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert started
    run.kill()
    run.wait()
    while any(map(is_alive, started)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(is_alive, started))


def beside(parent: int) -> list[int]:
    """Returns the reading processes that a process has started."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            try:
                words = (place / "stat").read_text().rpartition(")")[2].split()
                line = (place / "cmdline").read_bytes()
            except OSError:
                continue
            if int(words[1]) == parent and b"leporello.executors.hands" in line:
                found.append(int(place.name))
    return found


def is_alive(process: int) -> bool:
    """Says whether a process still runs."""
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
