"""The verbs that train, or draw examples for prompts."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from leporello.cli.options import (
    AsJson,
    ConfigFiles,
    Data,
    Limit,
    NoCache,
    Overrides,
    out_option,
    print_json,
)
from leporello.core.errors import UserError

if TYPE_CHECKING:
    from leporello.training import FittedCalibration, Trained


def train(
    *,
    pipeline: Annotated[
        str,
        typer.Argument(help="A pipeline whose reader can learn. [default: the default one]"),
    ] = "",
    suite: Annotated[
        str,
        typer.Option(
            "--suite", metavar="NAME", help="A paper's table; PIPELINE is a row of it, by --task."
        ),
    ] = "",
    calibrate: Annotated[
        Literal["platt", "isotonic"] | None,
        typer.Option(
            "--calibrate",
            help="Fit how likely answers are right, rather than the reader: two numbers, or a"
            " curve for hundreds of answers.",
            show_default=False,
        ),
    ] = None,
    task: Annotated[str, typer.Option("--task", help="What to learn from.")] = "",
    config: ConfigFiles = None,
    overrides: Overrides = None,
    split: Annotated[
        str,
        typer.Option(
            "--split",
            help="Of the task. [default: train; with --calibrate, the task's]",
            show_default=False,
        ),
    ] = "",
    data: Data = None,  # noqa: ARG001 -- its callback has told the tasks
    limit: Limit = None,
    out: Annotated[
        Path | None,
        out_option("The model's directory. [default: models/NAME]"),
    ] = None,
    update: Annotated[
        bool,
        typer.Option("--update", help="Replace what an earlier training left, finished or not."),
    ] = False,
    no_cache: NoCache = False,
    as_json: AsJson = False,
) -> None:
    """Trains a pipeline's reader on what the pipeline has it read; tells how to use it."""
    from leporello.models.distributed import is_main_process
    from leporello.training import calibrate as fit_calibration
    from leporello.training import train as train_reader

    if suite:
        pipeline = _of_row(suite, pipeline, task, config or ())
    given: dict[str, Any] = {
        "config": config or (),
        "overrides": overrides or (),
        "split": split,
        "limit": limit,
        "out": out,
        "update": update,
        "cached": not no_cache,
    }
    with redirect_stdout(sys.stderr):  # what a plug-in prints is no result
        if calibrate:
            calibrated = fit_calibration(pipeline, task, calibrate, **given)
        else:
            done = train_reader(pipeline, task, **given)
    if calibrate:
        _tell_calibration(calibrated, as_json=as_json)
        return
    if not is_main_process():  # one of several tells
        return
    if as_json:
        print_json(asdict(done))
        return
    for line in _summary(done):
        typer.echo(line)
    files = [part for file in (*(config or ()), done.config) for part in ("--config", str(file))]
    typer.echo(shlex.join(["run", done.pipeline, "--task", done.task, *files]))


def _tell_calibration(done: FittedCalibration, *, as_json: bool) -> None:
    if as_json:
        print_json({**asdict(done), "file": str(done.file)})
        return
    typer.echo(
        f"fitted to {done.answers:,} answers on {done.documents:,} documents; expected calibration"
        f" error {done.before:.3f}, {done.after:.3f} on documents not fitted to; to use it:"
    )
    typer.echo(shlex.join(["--set", f"reader.calibration={done.file}"]))


def _of_row(suite: str, row: str, task: str, config: Sequence[Path]) -> str:
    """Returns the pipeline that a row of a suite has for a task."""
    from leporello.config.suites import suite_named

    found = suite_named(suite, config)
    jobs = found.jobs([row] if row else (), [task] if task else (), ())
    named = dict.fromkeys(pipeline for pipeline, _, _ in jobs)
    if not row or not task or len(named) > 1:
        choices = ", ".join(
            f"{row or 'ROW'} --task {t}" for t in dict.fromkeys(t for _, t, _ in jobs)
        )
        raise UserError(f"name a row of {suite!r} ({', '.join(found.rows)}) and a task: {choices}")
    return next(iter(named))


def _summary(done: Trained) -> Iterator[str]:
    if done.validated:
        scores = ", ".join(f"{name} {value:.2f}" for name, value in done.scores.items())
        yield f"on {done.validated}: {scores}"
    if done.shared:
        yield f"beware: {done.shared:,} documents are both learnt from and validated on"
    skipped = f" ({done.skipped:,} skipped: no references, or failed)" if done.skipped else ""
    learnt = f"learnt from {done.inputs:,} inputs of {done.examples:,} examples"
    yield f"{learnt}{skipped}; to use it:"


def examples(
    *,
    pipeline: Annotated[
        str, typer.Argument(help="Whose inputs they are. [default: the default one]")
    ] = "",
    task: Annotated[str, typer.Option("--task", help="What they are drawn from.")] = "",
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="How many are drawn.")] = 8,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the draw.")] = 0,
    config: ConfigFiles = None,
    overrides: Overrides = None,
    split: Annotated[
        str, typer.Option("--split", help="Of the task. [default: train]", show_default=False)
    ] = "",
    data: Data = None,  # noqa: ARG001 -- its callback has told the tasks
    out: Annotated[
        Path | None,
        out_option("A JSON Lines file. [default: examples/NAME.jsonl]"),
    ] = None,
    update: Annotated[bool, typer.Option("--update", help="Replace what lies there.")] = False,
    no_cache: NoCache = False,
    as_json: AsJson = False,
) -> None:
    """Draws worked examples for few-shot readers, as the pipeline reads them."""
    from leporello.training import few_shot_examples

    with redirect_stdout(sys.stderr):  # what a plug-in prints is no result
        done = few_shot_examples(
            pipeline,
            task,
            count=count,
            seed=seed,
            config=config or (),
            overrides=overrides or (),
            split=split,
            out=out,
            update=update,
            cached=not no_cache,
        )
    if as_json:
        print_json(asdict(done))
        return
    skipped = f" ({done.skipped:,} skipped: they failed, or their answer is no choice)"
    drawn = f"{done.examples:,} worked examples{skipped if done.skipped else ''}"
    typer.echo(f"{drawn}; to show them to a reader:")
    typer.echo(shlex.join(["--set", f"reader.examples={done.file}"]))
