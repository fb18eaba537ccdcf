"""Verbs that run, or tell what would be run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from leporello.cli.options import (
    Address,
    AsJson,
    ConfigFiles,
    Data,
    Executor,
    Limit,
    Metrics,
    Model,
    NoCache,
    Out,
    Overrides,
    Pipelines,
    Selectors,
    Split,
    SuiteName,
    Tasks,
    Threads,
    Unsupervised,
    WorkerGpus,
    Workers,
    print_json,
    stderr,
    stdout,
    with_model,
)
from leporello.core.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

    from leporello.config import PipelineSpec
    from leporello.runs.run import Run

_FAILED, _USERS_MISTAKE, _INTERRUPTED = 1, 2, 130
_FAILURES = 10  # told at the end of a run; all of them are in its files


def run(
    *,
    pipelines: Pipelines = None,
    task: Tasks = None,
    suite: SuiteName = "",
    model: Model = "",
    config: ConfigFiles = None,
    overrides: Overrides = None,
    split: Split = "",
    metric: Metrics = None,
    data: Data = None,  # noqa: ARG001 -- its callback has told the tasks
    limit: Limit = None,
    out: Out = None,
    update: Annotated[
        bool, typer.Option("--update", help="Do again what was made with something else.")
    ] = False,
    executor: Executor = None,
    address: Address = None,
    workers: Workers = None,
    selectors: Selectors = None,
    worker_gpus: WorkerGpus = None,
    threads: Threads = None,
    unsupervised: Unsupervised = False,  # noqa: ARG001 -- its callback has told
    example_timeout: Annotated[
        float | None,
        typer.Option(
            "--example-timeout", min=0.001, metavar="SECONDS", help="Fail what takes longer."
        ),
    ] = None,
    window: Annotated[
        int,
        typer.Option("--window", min=1, help="Inputs read together; readers may ask for more."),
    ] = 32,
    max_active: Annotated[
        int,
        typer.Option(
            "--max-active", min=1, help="Examples of a shard whose documents are in memory at once."
        ),
    ] = 128,
    shard_examples: Annotated[
        int, typer.Option("--shard-examples", min=1, help="Examples that make a shard.")
    ] = 128,
    shard_bytes: Annotated[
        int, typer.Option("--shard-bytes", min=1, help="Bytes of rows that make a shard.")
    ] = 32_000_000,
    max_failures: Annotated[
        str, typer.Option("--max-failures", metavar="N|SHARE", help="More of them end the run.")
    ] = "",
    verify: Annotated[
        bool, typer.Option("--verify", help="Run a random 5 % again, and compare.")
    ] = False,
    no_cache: NoCache = False,
    show: Annotated[int, typer.Option("--show", min=0, help="Print as many answers.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Runs pipelines on tasks and scores them; the same command again resumes."""
    from leporello.engine.limits import Limits
    from leporello.runs.run import run as run_jobs

    # What a plug-in prints is no result, least of all among JSON.
    with _interruptible(), redirect_stdout(sys.stderr):
        done = run_jobs(
            pipelines or (),
            task or (),
            config=config or (),
            overrides=with_model(overrides, model),
            split=split,
            metrics=metric or (),
            limit=limit,
            out=out,
            update=update,
            limits=Limits(
                max_active,
                window,
                shard_examples,
                shard_bytes,
                example_timeout,
            ),
            executor=executor,
            address=address,
            workers=_count(workers, "--workers"),
            selectors=selectors,
            worker_gpus=worker_gpus,
            threads=threads,
            max_failures=_bound(max_failures),
            cached=not no_cache,
            verify=verify,
            suite=suite,
        )
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


def _count(text: str | None, option: str) -> int | Literal["auto"] | None:
    """Returns what an option says that takes a number or `auto`."""
    if text is None:
        return None
    if text == "auto":
        return "auto"
    if not text.isdecimal():
        raise UserError(f"{option} takes a number or 'auto', got {text!r}")
    return int(text)


def _bound(text: str) -> float | None:
    """Returns what --max-failures says: a whole number, or a share below 1."""
    if not text:
        return None
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not share >= 0 or (share >= 1 and (text.endswith("%") or share % 1)):
        raise UserError(
            f"--max-failures {text}: must be a number of examples, as 10, or a share, as 0.05 or 5%"
        )
    return share


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
    from leporello.cli.display import results
    from leporello.runs.answers import answers

    first = done.results[0]
    for example, prediction in answers(done.directory, first.pipeline, first.task, count):
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


def plan(
    *,
    pipelines: Pipelines = None,
    task: Tasks = None,
    suite: SuiteName = "",
    model: Model = "",
    config: ConfigFiles = None,
    overrides: Overrides = None,
    split: Split = "",
    data: Data = None,
    limit: Limit = None,
    out: Out = None,
    ladder: Annotated[
        bool,
        typer.Option(
            "--ladder", help="Print the command that runs it with oracles as its retriever too."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tells what a run would do, and what an earlier one has done."""
    from leporello.cli.display.plan import show_plan
    from leporello.jobs.jobs import prepare
    from leporello.runs.plan import plan as plan_jobs
    from leporello.storage.runs import view

    overrides = with_model(overrides, model)
    if ladder:
        from leporello.cli.display.plan import print_oracle_command

        print_oracle_command(
            pipelines or (),
            task or (),
            config=config or (),
            overrides=overrides,
            split=split,
            data=data,
            limit=limit,
            out=out,
            as_json=as_json,
        )
        return
    jobs = prepare(
        pipelines or (),
        task or (),
        config=config or (),
        overrides=overrides,
        split=split,
        suite=suite,
    )
    planned = plan_jobs(jobs, view(out) if out else None, limit)
    if as_json:
        print_json(asdict(planned))
    else:
        show_plan(stdout(), planned)
