"""The prompt of `ask`: its commands, follow-ups, history, signals and exit statuses."""

import io
import json
import os
import pty
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from command_line import command, leporello

from leporello import Document, Output, Read
from leporello.chunkers import Paragraphs
from leporello.cli.prompt import Prompt
from leporello.combiners import Stuff
from leporello.config import Pipeline
from leporello.readers import Lead
from leporello.retrievers import BM25
from leporello.runs.ask import AskSettings, Session

TEXT = "Ann Dunning found the fax. Her brother Ned lost it.\n\nThe ferry runs since 1871."


@dataclass(frozen=True)
class Writer:
    """A reader that generates text; it rewrites every follow-up to the same question."""

    rewritten: str = ""
    generates: bool = True

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        follow_ups = [bool(read.question.startswith("Rewrite")) for read in inputs]
        return [Output(self.rewritten if follow_up else "Ann Dunning") for follow_up in follow_ups]

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


def session(reader: object) -> Session:
    stages = Pipeline(Paragraphs(), BM25(k=2), reader, Stuff())
    return Session(Document("fax.txt", TEXT), AskSettings(cached=False), stages)


def run_prompt(
    monkeypatch: pytest.MonkeyPatch, lines: str | Mock, reader: object, *, as_json: bool = False
) -> tuple[int, str]:
    from rich.console import Console

    monkeypatch.setattr("sys.stdin", io.StringIO(lines) if isinstance(lines, str) else lines)
    console = Console(file=io.StringIO(), width=200)
    status = Prompt(session(reader), console, as_json=as_json).run()
    return status, console.file.getvalue()  # type: ignore[attr-defined]  # it is a StringIO


def test_each_line_is_a_question_or_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "Who found the fax?\n\n:passages\n:help\n:quit\nnever asked\n"
    status, shown = run_prompt(monkeypatch, lines, Lead())
    assert status == 0
    assert "(passage 1, score" in shown
    assert ":model" in shown
    assert "never asked" not in shown


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (":passages", "nothing has been asked"),
        (":wy", "no such command"),
        (":model", "needs a name: a path"),
    ],
)
def test_a_mistake_is_reported_and_the_prompt_continues(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], lines: str, error: str
) -> None:
    status, shown = run_prompt(monkeypatch, f"{lines}\nWho found the fax?", Lead())
    assert status == 1
    assert error in capsys.readouterr().err
    assert "characters: " in shown


@pytest.mark.parametrize(
    ("rewritten", "question"),
    [
        ("Who is the brother of Ann Dunning?\nMore.", "Who is the brother of Ann Dunning?"),
        ("Who is the brother of", "And her brother?"),  # cut
        ("", "And her brother?"),
        ("Is it so that " + "x" * 300 + "?", "And her brother?"),
    ],
    ids=["understood", "cut", "empty", "long"],
)
def test_a_follow_up_is_rewritten_by_the_model(
    monkeypatch: pytest.MonkeyPatch, rewritten: str, question: str
) -> None:
    lines = "Who found the fax?\nAnd her brother?"
    _, shown = run_prompt(monkeypatch, lines, Writer(rewritten))
    assert (f"\nasked: {question}" in shown) is (question != "And her brother?")
    refused = "the model could not rewrite" in shown
    assert refused is (question == "And her brother?")


def test_json_has_one_line_per_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _ = run_prompt(monkeypatch, "Who found the fax?\n:nothing\n", Lead(), as_json=True)
    answer, error = map(json.loads, capsys.readouterr().out.splitlines())
    assert status == 1
    assert answer["passages"][0]["place"].startswith("fax.txt characters 0–")
    assert ":nothing" in error["error"]


def test_control_c_discards_a_line_or_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers: dict[int, Any] = {}
    monkeypatch.setattr("signal.signal", handlers.__setitem__)
    monkeypatch.setattr("builtins.input", Mock(side_effect=[KeyboardInterrupt, "Who?", EOFError]))
    monkeypatch.setattr(Session, "ask", Mock(side_effect=KeyboardInterrupt))
    status, shown = run_prompt(monkeypatch, Mock(isatty=lambda: True), Lead())
    assert status == 0
    assert shown.count("quit with :quit or Ctrl-D") == 2
    with pytest.raises(SystemExit, match="143"):
        handlers[signal.SIGTERM](signal.SIGTERM, None)


def test_lines_can_be_edited_and_control_d_quits(tmp_path: Path) -> None:
    path = tmp_path / "fax.txt"
    path.write_text(TEXT, encoding="utf-8")
    child, terminal = pty.fork()
    if not child:  # the child process controls the terminal, as a shell's command does
        environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "TERM": "dumb"}
        os.execve(sys.executable, command("ask", path), environment)  # noqa: S606 -- the test's command
    shown = ""
    for keys in (b"Who fund\x1b[D\x1b[D\x1b[Do\x05 the fax?\r", b"\x04", b""):
        while not shown.endswith("\n? "):
            try:
                shown += os.read(terminal, 4096).decode()
            except OSError:  # the other end is closed
                break
        shown += " "
        os.write(terminal, keys)
    assert os.waitpid(child, 0)[1] == 0
    assert "cannot refer to earlier questions" in shown
    history = tmp_path / "leporello" / "questions"
    assert history.read_text(encoding="utf-8").splitlines() == ["Who found the fax?"]
    assert history.stat().st_mode & 0o077 == 0


def test_files_are_distinguished_from_the_question(tmp_path: Path) -> None:
    path, second = tmp_path / "fax.txt", tmp_path / "boat.txt"
    path.write_text(TEXT, encoding="utf-8")
    second.write_text("Ned has a boat.", encoding="utf-8")
    shown = leporello("ask", path, second, "Who has a boat?").stdout
    assert shown.startswith("Ned\n")
    assert "\nboat.txt characters 0–3" in shown
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 no more")
    shown = leporello("ask", tmp_path, "Who has a boat?", status=1).stdout
    assert shown.startswith("Ned\n")
    assert "1 × unreadable file (broken.pdf)" in shown
    assert "no such file" in leporello("ask", path, "fox.txt", status=2).stderr
    assert "fox.txt" in leporello("ask", tmp_path / "fox.txt", status=2).stderr
