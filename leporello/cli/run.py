"""Verbs that run pipelines, check configs and plan runs: `run`, `check` and `plan`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from leporello.cli.options import (
    INTERRUPTED,
    AsJson,
    ConfigFiles,
    Data,
    Overrides,
    Unsupervised,
    interruptible,
    print_json,
    stderr,
    stdout,
    with_options,
)
from leporello.core.errors import ConfigError, UserError, build_all, counted
from leporello.jobs.options import JobOptions, RunOptions

if TYPE_CHECKING:
    from rich.console import Console

    from leporello.config import PipelineSpec, TaskSpec
    from leporello.runs.run import Run

_FAILED, _USERS_MISTAKE = 1, 2


@with_options(RunOptions, interrupts=None)
def run(
    options: RunOptions,
    *,
    data: Data = None,  # noqa: ARG001 -- its callback sets the tasks' data directory
    unsupervised: Unsupervised = False,  # noqa: ARG001 -- its callback sets a variable
    show: Annotated[int, typer.Option("--show", min=0, help="Print this many answers.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Run pipelines on tasks and score them; run the same command again to resume."""
    from leporello.runs.run import run as run_jobs

    # Output of plug-ins goes to standard error, so that standard output has only results.
    with interruptible(), redirect_stdout(sys.stderr):
        finished = run_jobs(**vars(options))
    if as_json:
        print_json(asdict(finished))
    else:
        _print_results(stdout(), finished, show)
    if finished.stopped:
        stderr().print(f"ended early: {finished.stopped}; run the same command again to resume")
    if finished.stopped == "interrupted":
        raise typer.Exit(INTERRUPTED)
    problems = (finished.failures, finished.faults, finished.cured)
    if finished.stopped or any(problems):
        raise typer.Exit(_FAILED)


def _print_results(console: Console, finished: Run, show: int) -> None:
    from leporello.cli.display import results

    results.scores(console, finished.results)
    if show and finished.results:
        results.answers(console, finished, show)
    results.failures(console, finished)
    where = f"results in {finished.directory}"
    console.print(where, soft_wrap=True, no_wrap=True, highlight=False)


def check(
    config: ConfigFiles = None,
    pipelines: Annotated[
        list[str] | None,
        typer.Argument(help="Print these pipelines in full; --set and --try apply to them."),
    ] = None,
    overrides: Overrides = None,
    try_out: Annotated[
        bool,
        typer.Option(
            "--try",
            help="Run the named pipelines, or all pipelines of --config, on a tiny document. This"
            " loads models and calls endpoints, which may cost a fraction of a cent.",
        ),
    ] = False,
) -> None:
    """Report all errors of a config at once; print named pipelines in full.

    Without arguments, check the built-in config; with --config, check your files and the pipelines
    that they extend; with names, check these pipelines.

    With --try, print one line per pipeline. If one lacks a model, a key or a file, or if a stage
    fails, the exit status is 2.
    """
    from leporello.config import load_config
    from leporello.config.loading import check_files, valid_tasks
    from leporello.core.yaml.scalars import as_yaml
    from leporello.core.yaml.tree import read_tree

    try:
        loaded = load_config(config or (), overrides or (), pipelines or ())
    except ConfigError as error:
        try:  # a missing file is reported together with the other errors
            _check_tasks(valid_tasks(config or ()))
        except UserError as more:
            # A file that cannot be parsed has the same faults again.
            faults = dict.fromkeys(f"{error}\n{more}".splitlines())
            raise UserError("\n".join(faults)) from None
        raise
    chosen = loaded.select(pipelines or ()) if pipelines or overrides else []
    if not (config or pipelines or overrides):
        loaded.check_all()
    if loaded.suites.ready:
        from leporello.suites import check_published

        check_published(loaded.suites.ready)
    if try_out:
        names = [name for file in config or () for name in read_tree(file).at("pipelines").items]
        _try_out(chosen if pipelines else loaded.select(names) if names else [])
        return
    _check_tasks(valid_tasks(config or ()))
    points = [point for group in loaded.pipelines.ready.values() for point in group]
    check_files(points)
    if pipelines:
        typer.echo(as_yaml({"pipelines": {point.name: point.resolved() for point in chosen}}))
    counts = {"pipeline": len(points), "task": len(loaded.tasks.ready)}
    texts = [counted(count, name) for name, count in counts.items()]
    typer.echo(f"no errors: {', '.join(texts)}")


def _check_tasks(tasks: Sequence[TaskSpec]) -> None:
    """Reads the rows and documents' files of tasks."""
    if not tasks:
        return
    from leporello.tasks.json_lines import JsonLines

    sources = [task.spec.build() for task in tasks]
    rows = [source for source in sources if isinstance(source, JsonLines)]
    build_all(rows, JsonLines.check_documents)


def _try_out(pipelines: Sequence[PipelineSpec]) -> None:
    from leporello.engine.shard_rows import trials

    if not pipelines:
        raise UserError(
            "there is nothing to try: name pipelines (`check --try PIPELINE`), or a config that"
            " declares some (`--config FILE`)"
        )
    faults = 0
    for name, problem in trials(pipelines):
        typer.echo(f"{name}: {problem or 'ok'}")
        faults += bool(problem)
    if faults:
        raise typer.Exit(_USERS_MISTAKE)


@with_options(JobOptions, cached=None)
def plan(
    options: JobOptions,
    *,
    data: Data = None,  # noqa: ARG001 -- its callback sets the tasks' data directory
    as_json: AsJson = False,
) -> None:
    """Print the work that a run would do, and the work that an earlier run has finished."""
    from leporello.cli.display.plan import show_plan
    from leporello.jobs.jobs import prepare
    from leporello.runs.plan import plan as plan_jobs
    from leporello.storage.runs import view

    planned = plan_jobs(prepare(options), view(options.out) if options.out else None, options.limit)
    if as_json:
        print_json({"jobs": [*map(asdict, planned)]})
    else:
        show_plan(stdout(), planned)
