"""Verbs that fit a pipeline to data: `train`, `examples` and `tune`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from leporello.cli.options import (
    AsJson,
    Data,
    interruptible,
    out_option,
    print_json,
    print_plain,
    program,
    stdout,
    with_options,
)
from leporello.core.errors import counted
from leporello.jobs.options import FewShotOptions, TrainOptions, TuneOptions

if TYPE_CHECKING:
    from leporello.training import FittedCalibration, Trained
    from leporello.tuning import Tuned


@with_options(TrainOptions, pipeline=typer.Argument(), out=out_option())
def train(
    options: TrainOptions,
    *,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Calibrate the confidence of the answers in place of training the reader.",
        ),
    ] = False,
    data: Data = None,  # noqa: ARG001 -- its callback sets the tasks' data directory
    as_json: AsJson = False,
) -> None:
    """Train the reader of a pipeline on the inputs that it reads, and print how to use it."""
    from leporello.training import calibrate as fit_calibration
    from leporello.training import train_all

    with redirect_stdout(sys.stderr):  # output of plug-ins is not a result
        if calibrate:
            calibration = fit_calibration(**vars(options))
        else:
            all_trained = train_all(**vars(options))
    if calibrate:
        _print_calibration(calibration, as_json=as_json)
        return
    if as_json:
        for trained in all_trained:
            print_json(asdict(trained))
        return
    for trained in all_trained:
        for line in _summary(trained):
            typer.echo(line)
    typer.echo(shlex.join(_command(options, all_trained)))


def _command(options: TrainOptions, all_trained: Sequence[Trained]) -> list[str]:
    trained = all_trained[0]
    names = ["--suite", options.suite, trained.row] if options.suite else [trained.pipeline]
    task = [] if options.suite else ["--task", trained.task]
    files = [*options.config, *(result.config for result in all_trained)]
    configs = (word for file in files for word in ("--config", str(file)))
    return [*program(), "run", *names, *task, *configs]


def _print_calibration(fitted: FittedCalibration, *, as_json: bool) -> None:
    if as_json:
        print_json({**asdict(fitted), "file": str(fitted.file)})
        return
    typer.echo(
        f"fitted to {counted(fitted.answers, 'answer')} on"
        f" {counted(fitted.documents, 'document')}; expected calibration error on held-out"
        f" documents: {fitted.before:.3f} before, {fitted.after:.3f} after; to use it:"
    )
    typer.echo(shlex.join(["--set", f"reader.calibration={fitted.file}"]))


def _summary(trained: Trained) -> Iterator[str]:
    if trained.validated:
        scores = ", ".join(f"{name} {value:.2f}" for name, value in trained.scores.items())
        yield f"on {trained.validated}: {scores}"
    if trained.shared:
        shared = counted(trained.shared, "document")
        yield f"warning: {shared} used for both training and validation"
    skipped = f" ({trained.skipped:,} skipped: no references, or failed)" if trained.skipped else ""
    counts = f"{counted(trained.inputs, 'input')} of {counted(trained.examples, 'example')}"
    name = f"{trained.pipeline} was " if trained.row else ""
    yield f"{name}trained on {counts}{skipped}; to use it:"


@with_options(FewShotOptions, pipeline=typer.Argument(), out=out_option())
def examples(
    options: FewShotOptions,
    *,
    data: Data = None,  # noqa: ARG001 -- its callback sets the tasks' data directory
    as_json: AsJson = False,
) -> None:
    """Draw worked examples for few-shot readers, with the passages that the pipeline selects."""
    from leporello.training import few_shot_examples

    with redirect_stdout(sys.stderr):  # output of plug-ins is not a result
        sample = few_shot_examples(**vars(options))
    if as_json:
        print_json(asdict(sample))
        return
    skipped = f" ({sample.skipped:,} skipped: they failed, or their answer is not a choice)"
    count = f"{counted(sample.examples, 'worked example')}{skipped if sample.skipped else ''}"
    typer.echo(f"{count}; to show them to a reader:")
    typer.echo(shlex.join(["--set", f"reader.examples={sample.file}"]))


@with_options(TuneOptions, pipeline=typer.Argument(), out=out_option())
def tune(
    options: TuneOptions,
    *,
    data: Data = None,  # noqa: ARG001 -- its callback sets the tasks' data directory
    as_json: AsJson = False,
) -> None:
    """Search the parameters of a pipeline, and score the best values on held-out documents.

    The search covers the sweeps and ranges that are declared in the YAML, or by --set
    retriever.k=2,4,8 and --set 'retriever.k={range: [1, 64], log: true}'.
    Run the same command again to resume.
    """
    from leporello.cli.display import results
    from leporello.tuning import tune as search

    with interruptible(), redirect_stdout(sys.stderr):  # output of plug-ins is not a result
        tuned = search(**vars(options))
    if as_json:
        print_json(asdict(tuned))
        return
    console = stdout()
    results.tuned(console, tuned)
    for line in _tuned_lines(tuned):
        print_plain(console, line)
    files = [word for file in (*options.config, tuned.config) for word in ("--config", str(file))]
    typer.echo(shlex.join([*program(), "run", tuned.pipeline, *files]))


def _tuned_lines(tuned: Tuned) -> list[str]:
    chosen = ", ".join(f"{path}={value}" for path, value in tuned.chosen.items())
    how = (
        f"each held out from one of {tuned.searches - 1} searches"
        if tuned.searches > 1
        else "which the search did not use"
    )
    expected = f"expect {tuned.estimate.value:.2f}"
    if round(tuned.optimism, 2):
        before = tuned.estimate.value + tuned.optimism
        expected += f", not {before:.2f}: optimism {tuned.optimism:+.2f}"
    return [
        f"{counted(tuned.points, 'point')}, {tuned.stopped} of them stopped early"
        + (f"; {tuned.refused} refused by stages" if tuned.refused else ""),
        f"chosen: {chosen}" if chosen else "chosen: the original pipeline; no point was better",
        f"held out: {tuned.apart} documents, {how}; {expected}",
    ]
