"""Verbs that fit a pipeline to data: train its reader, draw examples, tune its parameters."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from leporello.cli.options import (
    AsJson,
    Data,
    out_option,
    print_json,
    stderr,
    stdout,
    with_options,
)
from leporello.core.errors import UserError
from leporello.jobs.options import FewShotOptions, TrainOptions, TuneOptions

if TYPE_CHECKING:
    from leporello.training import FittedCalibration, Trained
    from leporello.tuning import Tuned

_INTERRUPTED = 130


@with_options(TrainOptions, pipeline=typer.Argument(), out=out_option())
def train(
    options: TrainOptions,
    *,
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
    data: Data = None,  # noqa: ARG001 -- its callback has told the tasks
    as_json: AsJson = False,
) -> None:
    """Trains a pipeline's reader on what the pipeline has it read; tells how to use it."""
    from leporello.models.distributed import is_main_process
    from leporello.training import calibrate as fit_calibration
    from leporello.training import train as train_reader

    if suite:
        options = replace(options, pipeline=_of_row(suite, options))
    with redirect_stdout(sys.stderr):  # what a plug-in prints is no result
        if calibrate:
            calibrated = fit_calibration(**vars(options), method=calibrate)
        else:
            done = train_reader(**vars(options))
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
    files = [part for file in (*options.config, done.config) for part in ("--config", str(file))]
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


def _of_row(suite: str, options: TrainOptions) -> str:
    """Returns the pipeline that a row of a suite has for a task."""
    from leporello.config.suites import suite_named

    row, task = options.pipeline, options.task
    found = suite_named(suite, options.config)
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


@with_options(FewShotOptions, pipeline=typer.Argument(), out=out_option())
def examples(
    options: FewShotOptions,
    *,
    data: Data = None,  # noqa: ARG001 -- its callback has told the tasks
    as_json: AsJson = False,
) -> None:
    """Draws worked examples for few-shot readers, as the pipeline reads them."""
    from leporello.training import few_shot_examples

    with redirect_stdout(sys.stderr):  # what a plug-in prints is no result
        done = few_shot_examples(**vars(options))
    if as_json:
        print_json(asdict(done))
        return
    skipped = f" ({done.skipped:,} skipped: they failed, or their answer is no choice)"
    drawn = f"{done.examples:,} worked examples{skipped if done.skipped else ''}"
    typer.echo(f"{drawn}; to show them to a reader:")
    typer.echo(shlex.join(["--set", f"reader.examples={done.file}"]))


@with_options(TuneOptions, pipeline=typer.Argument(), out=out_option())
def tune(
    options: TuneOptions,
    *,
    data: Data = None,  # noqa: ARG001 -- its callback has told the tasks
    as_json: AsJson = False,
) -> None:
    """Chooses a pipeline's parameters, and says what they are worth on documents kept apart.

    What may be chosen are sweeps and ranges: in the YAML, by --set retriever.k=2,4,8 or
    --set 'retriever.k={range: [1, 64], log: true}', or in a file. The same command goes on.
    """
    from leporello.tuning import tune as search

    try:
        with redirect_stdout(sys.stderr):  # what a plug-in prints is no result
            found = search(**vars(options))
    except KeyboardInterrupt:
        stderr().print("interrupted; the same command goes on from here")
        raise typer.Exit(_INTERRUPTED) from None
    if as_json:
        print_json(asdict(found))
        return
    _show_tuned(found)
    files = [part for file in (*options.config, found.config) for part in ("--config", str(file))]
    typer.echo(shlex.join(["run", found.pipeline, *files]))


def _show_tuned(found: Tuned) -> None:
    from leporello.cli.display import tables

    console = stdout()
    tables.tuned(console, found)
    for line in _tuned_lines(found):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _tuned_lines(found: Tuned) -> list[str]:
    chosen = ", ".join(f"{path}={value}" for path, value in found.chosen.items())
    how = (
        f"each document apart from one of {found.searches - 1} searches"
        if found.searches > 1
        else "which the search never looked at"
    )
    easier = "harder" if found.harder > 0 else "easier"
    return [
        f"{found.points} points, {found.stopped} of them stopped early"
        + (f"; {found.refused} refused by stages" if found.refused else ""),
        f"chosen: {chosen}" if chosen else "chosen: the pipeline as it is; nothing was better",
        f"kept apart: {found.apart} documents, {how}; expect {found.estimate.value:.2f},"
        f" not {found.estimate.value + found.optimism:.2f}: optimism {found.optimism:+.2f},"
        f" of which {found.harder:+.2f} since those documents are {easier} for it as it is, too",
    ]
