"""Classes of options define the parameters of commands and the arguments of functions."""

from __future__ import annotations

import inspect
import io
import sys
import threading
from dataclasses import fields

import pytest
import typer
from typer.testing import CliRunner

from leporello.cli import options
from leporello.cli.options import waiting, with_options
from leporello.engine.limits import Limits
from leporello.jobs.options import RunOptions
from leporello.runs.run import run

WORDS = ["a", "b", "--task", "t", "--set", "k=1", "--no-cache", "--limit", "2", "--workers", "auto"]
OPTIONS = RunOptions(
    ["a", "b"], ["t"], overrides=["k=1"], cached=False, limit=2, workers="auto",
    limits=Limits(window=4, example_timeout=0.5), max_failures=0.05,
)  # fmt: skip


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], RunOptions()),
        ([*WORDS, "--window", "4", "--example-timeout", "0.5", "--max-failures", "5%"], OPTIONS),
    ],
)
def test_a_commands_words_become_options(words: list[str], expected: RunOptions) -> None:
    built: list[RunOptions] = []

    @with_options(RunOptions, interrupts=None)
    def command(options: RunOptions) -> None:
        built.append(options)

    app = typer.Typer()
    app.command()(command)
    assert CliRunner().invoke(app, words).exit_code == 0
    assert built == [expected]


def test_a_function_takes_the_fields_of_its_options() -> None:
    names = [field.name for field in fields(RunOptions)]
    assert {*inspect.signature(run).parameters} == {*names}
    assert all(f"    {name}: " in (run.__doc__ or "") for name in names)


class _Terminal(io.StringIO):
    """Terminal that sets an event when it shows a text."""

    def __init__(self) -> None:
        super().__init__()
        self.shows = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        count = super().write(text)
        self.shows.set()
        return count


def test_a_long_wait_is_explained_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with waiting("reading a.pdf"):
        pass
    assert not terminal.getvalue()
    monkeypatch.setattr(options, "_WAIT", 0.0)
    with waiting("reading a.pdf"):
        assert terminal.shows.wait(60)
    assert terminal.getvalue() == "reading a.pdf …\r\x1b[2K"
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with waiting("reading a.pdf"):
        assert not pipe.getvalue()
