"""Options of commands, which are the arguments of the API functions with the same names.

A class below is the only declaration of its options. `takes` derives a function's arguments and
their documentation from it, `leporello.cli.options` the parameters of a command.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

from leporello.core.annotations import docstring
from leporello.core.errors import check_list
from leporello.engine.limits import Limits
from leporello.jobs.interrupts import Interrupts
from leporello.storage import to_path

_Parameters = ParamSpec("_Parameters")
_Options = TypeVar("_Options")
_Returned = TypeVar("_Returned")
_PLACEMENT = ("executor", "address", "workers", "selectors", "worker_gpus", "threads")


@dataclass(frozen=True, kw_only=True)
class ConfigOptions:
    """Options of every command that builds pipelines.

    Attributes:
        model: Read with this model: a path, a Hugging Face id, openai:MODEL, ollama:MODEL,
            http://HOST/v1, …
        config: Extend the built-in config with this YAML file.
        overrides: Change or sweep a parameter: retriever.k=5,10.
        cached: Read and write the cache.
    """

    model: str = ""
    config: Sequence[Path | Mapping[str, Any]] = ()
    overrides: Sequence[str] = ()
    cached: bool = True

    def __post_init__(self) -> None:
        for option in fields(self):
            if option.default == ():
                check_list(option.name, getattr(self, option.name))

    @property
    def settings(self) -> list[str]:
        """Overrides, preceded by one for the model if it is set."""
        return [*([f"model={json.dumps(self.model)}"] if self.model else []), *self.overrides]


@dataclass(frozen=True)
class AskOptions(ConfigOptions):
    """Options of commands that ask your own files.

    Attributes:
        pipeline: Answer with this pipeline. [default: the default pipeline]
        overrides: Change a parameter: retriever.k=5.
        loader: Load the files with this class, written as YAML: '{class: Text, encoding: cp1252}'.
    """

    pipeline: str = ""
    _: KW_ONLY
    loader: str = ""


@dataclass(frozen=True)
class JobOptions(ConfigOptions):
    """Options that choose pipelines and tasks.

    Attributes:
        pipelines: Names of pipelines or of points of a sweep, or '*' patterns. [default: the
            default pipeline]
        tasks: Run on this task. [default: the tasks of each pipeline,
            or the default task]
        suite: Run a paper's table: all its rows, only the rows that PIPELINES names, or PIPELINES
            that are not in the table on all its tasks. Jobs that another run in the folder of
            --out has finished are skipped. [default of --out: runs/SUITE]
        split: Use this split of every task.
        metrics: Score with this metric in place of the task's metrics: a name, ./FILE.py:CLASS, or
            a YAML mapping with `class`.
        limit: Run at most this many examples per task.
        out: Plan the run in this directory. [default: runs/NAME]
    """

    pipelines: Sequence[str] = ()
    tasks: Sequence[str] = ()
    _: KW_ONLY
    suite: str = ""
    split: str = ""
    metrics: Sequence[str] = ()
    limit: int | None = None
    out: Path | None = None

    @property
    def directory(self) -> Path | None:
        """Directory of the run; None to name it after the pipelines and tasks."""
        of_suite = Path("runs") / "-".join(filter(None, (self.suite, self.split)))
        return to_path(self.out) if self.out else of_suite if self.suite else None

    @property
    def placement(self) -> Mapping[str, Any]:
        """Values that replace those in the `placement` of every pipeline; None keeps a value."""
        return {name: getattr(self, name, None) for name in _PLACEMENT}


@dataclass(frozen=True, kw_only=True)
class RunOptions(JobOptions):
    """Options of a run.

    Attributes:
        out: Write the run to this directory. [default: runs/NAME]
        update: Recompute results that an earlier run computed with another config, source, model or
            data.
        executor: Run in processes of this machine or on a Ray cluster, in place of the pipeline's
            `placement`.
        address: Use the Ray cluster at this address. [default: start Ray on this machine]
        workers: Start this many processes, each with a copy of the model; 0 runs in this process,
            and `auto` starts one per GPU, or the number that the CPU cores and the memory allow.
        selectors: Start this many further processes per worker, which chunk and retrieve for the
            next examples while the worker reads.
        worker_gpus: Reserve this many GPUs per worker on Ray; below 1, several workers share one.
        threads: Use this many CPU threads per worker; results may depend on the number.
        limits: Sizes of batches and shards, and the time that an example may take.
        max_failures: End the run after more failures than this number or share of the examples.
        interrupts: Signals that end the run. [default: signals of this process]
    """

    update: bool = False
    executor: Literal["local", "ray"] | None = None
    address: str | None = None
    workers: int | Literal["auto"] | None = None
    selectors: int | None = None
    worker_gpus: float | None = None
    threads: int | None = None
    limits: Limits = Limits()  # noqa: RUF009 -- frozen
    max_failures: float | None = None
    interrupts: Interrupts | None = None


@dataclass(frozen=True)
class OneJobOptions(ConfigOptions):
    """Options of commands that take one pipeline and one task.

    Attributes:
        pipeline: Use this pipeline, or this point of a sweep. [default: the default pipeline]
        task: Use the examples of this task. [default: the task of the pipeline]
        split: Use this split of the task. [default: train, if the task has splits]
        out: Write the results to this path.
        update: Overwrite the results that this command wrote earlier.
    """

    pipeline: str = ""
    task: str = ""
    _: KW_ONLY
    split: str = ""
    out: Path | None = None
    update: bool = False


@dataclass(frozen=True)
class TrainOptions(OneJobOptions):
    """Options of commands that fit a model to a task.

    Attributes:
        split: Learn from this split of the task. [default: train; with --calibrate, the split of
            the task]
        out: Write the model to this directory. [default: models/NAME]
        update: Replace the results of an earlier training, finished or not.
        limit: Use at most this many examples for training, and at most as many for validation.
        suite: Train the readers of a row of this paper's table: PIPELINE is the row, and --task one
            of its tasks. [default of --task: all tasks of the row, one after the other]
    """

    _: KW_ONLY
    limit: int | None = None
    suite: str = ""


@dataclass(frozen=True)
class FewShotOptions(OneJobOptions):
    """Options for drawing examples for prompts.

    Attributes:
        count: Draw this many examples; a larger number draws the same examples and further ones.
        seed: Draw with this random seed. [default: 0]
        out: Write the examples to this JSON Lines file. [default: examples/NAME.jsonl]
    """

    _: KW_ONLY
    count: int = 8
    seed: int = 0


@dataclass(frozen=True)
class TuneOptions(ConfigOptions):
    """Options of a search for parameters.

    Attributes:
        pipeline: Tune this pipeline, which declares choices. [default: the default pipeline]
        tasks: Score on this task; all tasks have the same weight. [default: the tasks of the
            pipeline]
        budget: Stop after a time, a cost, or a number of points: 30m, $2 or 200 runs.
        metric: Choose by this metric. [default: the first metric of each task]
        cost: Search for cheap parameters too, and report the best score at each cost, in this unit.
        split: Use this split of every task.
        limit: Use at most this many examples per task.
        out: Write the tuned config to this file. [default: tuned/PIPELINE.yaml]
        seed: Order documents and propose points with this random seed. [default: 0]
    """

    pipeline: str = ""
    tasks: Sequence[str] = ()
    _: KW_ONLY
    budget: str = "30m"
    metric: str = ""
    cost: Literal["characters", "tokens", "dollars"] | None = None
    split: str = ""
    limit: int | None = None
    out: Path | None = None
    seed: int = 0


def takes(
    options: Callable[_Parameters, _Options],
) -> Callable[[Callable[[_Options], _Returned]], Callable[_Parameters, _Returned]]:
    """Returns a decorator: the function takes the fields of the options as its arguments."""

    def decorate(function: Callable[[_Options], _Returned]) -> Callable[_Parameters, _Returned]:
        @wraps(function)
        def call(*args: _Parameters.args, **named: _Parameters.kwargs) -> _Returned:
            return function(options(*args, **named))

        signature = inspect.signature(options)
        helps = docstring(options)[1]  # type: ignore[arg-type]  # a class
        arguments = "".join(f"\n    {name}: {helps[name]}" for name in signature.parameters)
        call.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\nArgs:{arguments}\n"
        call.__signature__ = signature.replace(  # type: ignore[attr-defined]  # `inspect` reads it
            return_annotation=inspect.signature(function).return_annotation
        )
        return call

    return decorate
