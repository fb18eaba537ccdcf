"""Display of `plan` (shared work, what remains, ladders) and of `watch` (how far a run is)."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from leporello.analysis.oracle_baselines import oracle_sweep
from leporello.cli.options import print_json, stderr
from leporello.core.errors import UserError
from leporello.jobs.options import JobOptions
from leporello.runs.plan import PlannedJob, RunPlan, StagePlan
from leporello.runs.watch import JobProgress

_BAR = 20  # letters
_HEADERS = (
    "pipeline on task", "", "finished", "failed", "shards", "a second", "left", "scores so far"
)  # fmt: skip
_NUMBERS = ("finished", "failed", "shards", "a second", "left")


def show_plan(console: Console, plan: RunPlan) -> None:
    """Prints what a run would do."""
    for task in dict.fromkeys(job.task for job in plan.jobs):
        console.print(_tree(task, [job for job in plan.jobs if job.task == task], plan.steps))
    for job in plan.jobs:
        for text in job.changed:
            message = f"{job.pipeline} on {job.task} was made with something else: {text}"
            console.print(message, style="yellow", markup=False, highlight=False, soft_wrap=True)
    if any(job.changed for job in plan.jobs):
        console.print("such a run is refused; with --update it does what is told above")
    console.print(_time(plan.jobs), highlight=False, soft_wrap=True)
    for where in _places(plan.jobs):
        console.print(where, markup=False, highlight=False, soft_wrap=True)
    console.print(f"the run lies in {plan.jobs[0].directory}", soft_wrap=True, highlight=False)


def _tree(task: str, jobs: Sequence[PlannedJob], steps: Sequence[StagePlan]) -> Tree:
    """Returns task -> chunker -> indexes -> pipelines, what is shared standing once."""
    tree = Tree(f"[bold]{escape(task)}[/bold]: {jobs[0].examples:,} examples")
    branches: dict[tuple[int, ...], Tree] = {(): tree}
    for job in jobs:
        for depth in range(len(job.steps)):
            path = job.steps[: depth + 1]
            if path not in branches:
                branches[path] = branches[path[:-1]].add(_step(steps[path[-1]]))
        leaf = branches[job.steps].add(_job(job))
        leaf.add(f"[dim]{escape(' → '.join(job.stages[1:]))}[/dim]", highlight=False)
    return tree


def _step(step: StagePlan) -> str:
    left = step.needed - step.kept
    return (
        f"{step.kind} by {escape(step.stage)}: {step.needed:,} documents,"
        f" {step.kept:,} kept, {left:,} to make"
    )


def _job(job: PlannedJob) -> str:
    name = f"[bold]{escape(job.pipeline)}[/bold]"
    left = job.examples - job.done
    failed = f" ({job.failed:,} of them failed)" if job.failed else ""
    counts = f"{name}: {job.done:,} done{failed}, {left:,} to do on {job.documents:,} documents"
    if not left:
        return counts
    sign = "at least " if job.at_least else "about "
    tokens = f" of {job.tokens:,} tokens" if job.tokens else ""
    return f"{counts}; {sign}{job.calls:,} reads{tokens}"


def _places(jobs: Sequence[PlannedJob]) -> Iterator[str]:
    """Yields where the pipelines would run: one line if that is one place."""
    placements = list(dict.fromkeys(job.placement for job in jobs))
    for placement in placements:
        pipelines = dict.fromkeys(job.pipeline for job in jobs if job.placement == placement)
        yield f"{', '.join(pipelines) if len(placements) > 1 else 'it'} would run on {placement}"


def _time(jobs: Sequence[PlannedJob]) -> str:
    """Returns how long it takes, as far as past timings of this machine tell."""
    left = [job for job in jobs if job.examples > job.done]
    if not left:
        failed = sum(job.failed for job in jobs)
        again = f"; {failed:,} failed examples would be tried again" if failed else ""
        return f"nothing is left to do{again}"
    selecting, reading = [j.select_seconds for j in left], [j.read_seconds for j in left]
    parts = [f"selecting {_sum(selecting)}", f"reading {_sum(reading)}"]
    return "time, by this machine's past runs: " + ", ".join(parts)


def _sum(seconds: Sequence[float | None]) -> str:
    measured = [value for value in seconds if value is not None]
    if not measured:
        return "not known"
    total = sum(measured)
    unknown = len(seconds) - len(measured)
    duration = f"{total:.1f} s" if total < 100 else f"{total / 60:.0f} min"  # noqa: PLR2004 -- a matter of taste
    return f"about {duration}" + (f" and {unknown} pipelines not known" if unknown else "")


def print_oracle_command(options: JobOptions, data: Path | None, *, as_json: bool) -> None:
    """Prints the command that runs a pipeline and its oracle sweep, with all other options."""
    if len(options.pipelines) > 1:
        raise UserError(f"--ladder takes one pipeline, got {', '.join(options.pipelines)}")
    sweep = oracle_sweep(options)
    given = [
        *(("--task", task) for task in options.tasks),
        *(("--config", str(file)) for file in options.config),
        *(("--set", text) for text in (*options.settings, sweep.override)),
        *([("--split", options.split)] if options.split else []),
        *([("--data", str(data))] if data else []),
        *([("--limit", str(options.limit))] if options.limit else []),
        *([("--out", str(options.out))] if options.out else []),
    ]
    words = [*_program(), "run", sweep.pipeline, *(word for pair in given for word in pair)]
    if as_json:
        print_json({**asdict(sweep), "command": words})
        return
    for text in sweep.notes:
        stderr().print(f"note: {text}", style="yellow", markup=False, highlight=False)
    typer.echo(shlex.join(words))


def _program() -> list[str]:
    """Returns how this program is started, as short as is sure to work."""
    started = sys.argv[0]
    if not started.endswith(".py"):
        name = Path(started).name
        return [name if shutil.which(name) else started]
    python = shutil.which("python")
    # A link to another environment's interpreter is another python.
    same = python is not None and Path(python).absolute() == Path(sys.executable).absolute()
    return ["python" if same else sys.executable, started]


def watched(jobs: Sequence[JobProgress], *, running: bool) -> RenderableType:
    """Returns a table of how far each job is, and whether anything is at work."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, header in enumerate(_HEADERS):
        right = header in _NUMBERS
        table.add_column(header, justify="right" if right else "left", overflow="fold")
        table.columns[index].no_wrap = right
    for job in jobs:
        table.add_row(*_watched_row(job))
    return Group(table, Text(_run_state(jobs, running=running), style="dim"))


def _watched_row(job: JobProgress) -> list[RenderableType]:
    whole = job.expected or job.finished or 1
    counts = f"{job.finished:,} of {'?' if job.expected is None else f'{job.expected:,}'}"
    speed = "" if job.per_second is None else f"{job.per_second:.3g}"
    left = "" if job.seconds_left is None else str(timedelta(seconds=round(job.seconds_left)))
    scores = ", ".join(f"{name} {score:.2f}" for name, score in job.scores.items())
    bar = ProgressBar(total=whole, completed=job.finished, width=_BAR)
    name = escape(f"{job.pipeline} on {job.task}")
    return [name, bar, counts, _failed(job), _shards(job), speed, left, scores]


def _shards(job: JobProgress) -> str:
    """Returns how many are finished, under way, and were tried again."""
    more = f" +{job.under_way}" if job.under_way else ""
    again = f", {job.died} tried again" if job.died else ""
    return f"{job.shards:,}{more}{again}"


def _failed(job: JobProgress) -> Text:
    return Text(f"{job.failed:,}", style="red" if job.failed else "")


def _run_state(jobs: Sequence[JobProgress], *, running: bool) -> str:
    if running:
        return "running; Ctrl-C ends the watching, not the run"
    if all(job.expected is not None and job.finished >= job.expected for job in jobs):
        return "finished"
    return "no process of this machine is at it; the same command goes on where it was left"
