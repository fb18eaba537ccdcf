"""What `watch` shows of a run under way."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from leporello.runs.watch import JobProgress

_BAR = 20  # letters
_HEADERS = (
    "pipeline on task", "", "finished", "failed", "shards", "a second", "left", "scores so far"
)  # fmt: skip
_NUMBERS = ("finished", "failed", "shards", "a second", "left")


def watched(jobs: Sequence[JobProgress], *, running: bool) -> RenderableType:
    """Returns a table of how far each job is, and whether anything is at work."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, header in enumerate(_HEADERS):
        right = header in _NUMBERS
        table.add_column(header, justify="right" if right else "left", overflow="fold")
        table.columns[index].no_wrap = right
    for job in jobs:
        table.add_row(*_row(job))
    return Group(table, Text(_state(jobs, running=running), style="dim"))


def _row(job: JobProgress) -> list[RenderableType]:
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


def _state(jobs: Sequence[JobProgress], *, running: bool) -> str:
    if running:
        return "running; Ctrl-C ends the watching, not the run"
    if all(job.expected is not None and job.finished >= job.expected for job in jobs):
        return "finished"
    return "no process of this machine is at it; the same command goes on where it was left"
