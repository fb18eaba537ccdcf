"""Verbs that run, or tell what would be run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from leporello.cli.options import (
    AsJson,
    ConfigFiles,
    Data,
    Overrides,
    Unsupervised,
    print_json,
    stderr,
    stdout,
    with_options,
)
from leporello.core.errors import UserError
from leporello.jobs.options import JobOptions, RunOptions

if TYPE_CHECKING:
    from rich.console import Console

    from leporello.config import PipelineSpec
    from leporello.runs.run import Run

_FAILED, _USERS_MISTAKE, _INTERRUPTED = 1, 2, 130
_FAILURES = 10  # told at the end of a run; all of them are in its files


@with_options(RunOptions, interrupts=None)
def run(
    options: RunOptions,
    *,
    data: Data = None,  # noqa: ARG001 -- its callback has told the tasks
    unsupervised: Unsupervised = False,  # noqa: ARG001 -- its callback has told
    show: Annotated[int, typer.Option("--show", min=0, help="Print this many answers.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Runs pipelines on tasks and scores them; the same command again resumes."""
    from leporello.runs.run import run as run_jobs

    # What a plug-in prints is no result, least of all among JSON.
    with _interruptible(), redirect_stdout(sys.stderr):
        done = run_jobs(**vars(options))
    if as_json:
        print_json(asdict(done))
    else:
        _print_results(stdout(), done, show)
    if done.stopped:
        stderr().print(f"ended early: {done.stopped}; the same command goes on from here")
    if done.stopped == "interrupted":
        raise typer.Exit(_INTERRUPTED)
    if done.failures or done.faults or done.cured or done.differing or done.stopped:
        raise typer.Exit(_FAILED)


@contextmanager
def _interruptible() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        stderr().print("interrupted; the same command goes on from here")
        raise typer.Exit(_INTERRUPTED) from None
    except SystemExit as error:
        raise UserError(f"code of a task or metric ended the run: {error}") from error


def _print_results(console: Console, done: Run, show: int) -> None:
    from leporello.cli.display import results

    results.scores(console, done.results)
    if show and done.results:
        _show_answers(console, done, show)
    _show_failures(console, done)
    results.verified(console, done.verified)
    results.where(console, done.directory)


def _show_answers(console: Console, done: Run, count: int) -> None:
    """Prints answers of the first pipeline and task, spread evenly over it."""
    from leporello.analysis.finished import FinishedRun
    from leporello.cli.display import results

    first = done.results[0]
    jobs = FinishedRun.at(done.directory).jobs
    job = next(job for job in jobs if (job.pipeline, job.task) == (first.pipeline, first.task))
    for example, prediction in job.answers(count):
        results.prediction(console, example, prediction)


def _show_failures(console: Console, done: Run) -> None:
    """Prints the first failures, and how many there are of each kind."""
    from leporello.cli.display import results

    failed = [failure for r in done.results for failure in done.failed(r.pipeline, r.task)]
    for failure in failed[:_FAILURES]:
        text = f"failed: {failure.example_id} at the {failure.stage}: {failure.error}"
        console.print(text, style="red", markup=False, highlight=False, soft_wrap=True)
    if failed:
        results.failures(console, failed, sum(result.examples for result in done.results))


def check(
    config: ConfigFiles = None,
    pipelines: Annotated[
        list[str] | None,
        typer.Argument(help="To be shown in full, or tried; --set is for these."),
    ] = None,
    overrides: Overrides = None,
    try_out: Annotated[
        bool,
        typer.Option(
            "--try",
            help="Run all stages of the pipelines, else of those of your files, on a tiny document:"
            " models are loaded, and an endpoint is asked, which may cost a fraction of a cent.",
        ),
    ] = False,
) -> None:
    """Reports all faults of a config at once; named pipelines are shown in full.

    Without arguments it checks all that Leporello declares; with --config your files and what they
    extend; with names these pipelines.

    With --try, a pipeline that lacks a model, a key or a file, or whose stages fail, is told in a
    line, and makes the exit status 2.
    """
    from leporello.config import load_config
    from leporello.config.loading import check_files
    from leporello.core.yaml.tree import read_tree
    from leporello.core.yaml.writing import as_yaml

    loaded = load_config(config or (), overrides or (), pipelines or ())
    chosen = loaded.select(pipelines or ()) if pipelines or overrides else []
    if not (config or pipelines or overrides):
        loaded.check_all()
    if loaded.suites.ready:
        from leporello.suites import check_published

        check_published(loaded.suites.ready)
    if try_out:
        trees = [read_tree(file).items.get("pipelines") for file in config or ()]
        own = [name for tree in trees if tree for name in tree.items]
        _try_out(chosen if pipelines else loaded.select(own) if own else [])
        return
    points = [point for group in loaded.pipelines.ready.values() for point in group]
    check_files(points)
    if pipelines:
        typer.echo(as_yaml({"pipelines": {point.name: point.resolved() for point in chosen}}))
    typer.echo(f"no faults: {len(points)} pipelines, {len(loaded.tasks.ready)} tasks")


def _try_out(pipelines: Sequence[PipelineSpec]) -> None:
    """Prints a line a pipeline; a fault is the user's."""
    from leporello.runs.trial import trials

    if not pipelines:
        raise UserError(
            "there is nothing to try: name pipelines (`check --try PIPELINE`), or a file of your"
            " own that has some (`--config FILE`)"
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
    data: Data = None,
    ladder: Annotated[
        bool,
        typer.Option(
            "--ladder", help="Print the command that runs it with oracles as its retriever too."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tells what a run would do, and what an earlier one has done."""
    from leporello.cli.display.plan import print_oracle_command, show_plan
    from leporello.jobs.jobs import prepare
    from leporello.runs.plan import plan as plan_jobs
    from leporello.storage.runs import view

    if ladder:
        print_oracle_command(options, data, as_json=as_json)
        return
    planned = plan_jobs(prepare(options), view(options.out) if options.out else None, options.limit)
    if as_json:
        print_json(asdict(planned))
    else:
        show_plan(stdout(), planned)
