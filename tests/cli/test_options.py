"""Classes of options define the parameters of commands and the arguments of functions."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest
import typer
from typer.testing import CliRunner

from leporello.cli.options import with_options
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
def test_a_command_builds_its_options_from_its_words(
    words: list[str], expected: RunOptions
) -> None:
    """An absent option has the default of the class."""
    built: list[RunOptions] = []

    @with_options(RunOptions, interrupts=None)
    def command(options: RunOptions) -> None:
        built.append(options)

    app = typer.Typer()
    app.command()(command)
    assert CliRunner().invoke(app, words).exit_code == 0
    assert built == [expected]


def test_a_function_takes_the_fields_of_its_options() -> None:
    """The signature and the docstring contain every field."""
    names = [field.name for field in fields(RunOptions)]
    assert {*inspect.signature(run).parameters} == {*names}
    assert all(f"    {name}: " in (run.__doc__ or "") for name in names)
