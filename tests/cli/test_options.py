"""Classes of options define the parameters of commands and the arguments of functions."""

import inspect
import io
import sys
from dataclasses import fields

import pytest
import typer
from typer.testing import CliRunner

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


def test_a_wait_is_explained_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_terminal, shown in ((True, "reading a.pdf …\r\x1b[2K"), (False, "")):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda is_terminal=is_terminal: is_terminal)
        monkeypatch.setattr(sys, "stderr", stream)
        with waiting("reading a.pdf"):
            pass
        assert stream.getvalue() == shown
