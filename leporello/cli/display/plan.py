"""Display of `plan` (remaining work) and of `watch` (progress of a run)."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from leporello.cli.display.tables import show_table
from leporello.cli.options import print_plain
from leporello.core.errors import counted
from leporello.core.table import swept_columns
from leporello.runs.plan import PlannedJob
from leporello.runs.watch import JobProgress


def show_plan(console: Console, jobs: Sequence[PlannedJob]) -> None:
    """Prints the work that a run would do."""
    for task in dict.fromkeys(job.task for job in jobs):
        console.print(_tree(task, [job for job in jobs if job.task == task]))
    for job in jobs:
        if job.changed:
            texts = "; ".join(job.changed)
            message = f"{job.pipeline} on {job.task} was run with other settings: {texts}"
            print_plain(console, message, "yellow")
    if any(job.changed for job in jobs):
        console.print("such a run is refused; with --update it does the work above")
    if all(job.examples == job.done for job in jobs):
        failed = sum(job.failed for job in jobs)
        retries = f"; {counted(failed, 'failed example')} would be tried again" if failed else ""
        console.print(f"nothing is left to do{retries}", highlight=False, soft_wrap=True)
    for where in _places(jobs):
        print_plain(console, where)
    where = f"results in {jobs[0].directory}"
    console.print(where, soft_wrap=True, no_wrap=True, highlight=False)


def _tree(task: str, jobs: Sequence[PlannedJob]) -> Tree:
    tree = Tree(f"[bold]{escape(task)}[/bold]: {counted(jobs[0].examples, 'example')}")
    for job in jobs:
        leaf = tree.add(_job(job))
        leaf.add(f"[dim]{escape(' → '.join(job.stages))}[/dim]", highlight=False)
    return tree


def _job(job: PlannedJob) -> str:
    name = f"[bold]{escape(job.pipeline)}[/bold]"
    remaining = job.examples - job.done
    failed = f" ({job.failed:,} of them failed)" if job.failed else ""
    counts = f"{name}: {job.done:,} done{failed}, {remaining:,} to do"
    counts += f" on {counted(job.documents, 'document')}"
    if not remaining:
        return counts
    sign = "at least " if job.at_least else "about "
    tokens = f" of {job.tokens:,} tokens" if job.tokens else ""
    return f"{counts}; {sign}{counted(job.calls, 'read')}{tokens}"


def _places(jobs: Sequence[PlannedJob]) -> Iterator[str]:
    placements = list(dict.fromkeys(job.placement for job in jobs))
    for placement in placements:
        pipelines = dict.fromkeys(job.pipeline for job in jobs if job.placement == placement)
        yield f"{', '.join(pipelines) if len(placements) > 1 else 'it'} would run on {placement}"


def show_progress(console: Console, jobs: Sequence[JobProgress]) -> None:
    """Prints a table of the progress of each job."""
    columns, labels = swept_columns([job.pipeline for job in jobs])
    headers = (*columns, "task", "finished", "failed", "per second", "left")
    rows = [(*label, *_progress(job)) for job, label in zip(jobs, labels, strict=True)]
    show_table(console, "", headers, rows, labels=len(columns) + 1)


def _progress(job: JobProgress) -> tuple[str, ...]:
    finished = f"{job.finished:,} of {'?' if job.expected is None else f'{job.expected:,}'}"
    remaining = ""
    if job.expected is not None and job.per_second:
        remaining = str(timedelta(seconds=round((job.expected - job.finished) / job.per_second)))
    speed = f"{job.per_second:.3g}" if job.per_second else ""
    return job.task, finished, f"{job.failed:,}", speed, remaining
