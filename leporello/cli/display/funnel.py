"""Display of `explain` for a run: the stages in which its pipelines lose answers."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from leporello.analysis.funnel.counts import Funnel, FunnelStage
from leporello.analysis.funnel.example_trace import ANSWERED
from leporello.cli.display.tables import new_table

_WIDTH = 16  # characters of a bar
_EIGHTHS = " ▏▎▍▌▋▊▉"
_RANKS = (1, 2, 3, 5, 10, 20, 50, 100)
_WORDS = {
    "failed": "finished",
    "chunker": "whole in a chunk",
    "retriever": "retrieved",
    "combiner": "sent to the reader",
    "reader": "read",
    "answer": "answered",
}
_LOSSES = {
    "failed": "failed",
    "chunker": "cut in two by the chunker, or left out",
    "retriever": "not completely retrieved",
    "combiner": "not completely sent to the reader",
    "reader": "not completely read",
    "answer": "read, but answered wrong",
}


def show_funnels(console: Console, shown: Sequence[Funnel]) -> None:
    """Prints the examples that each stage kept and lost, for each pipeline and task."""
    for funnel in shown:
        _funnel(console, funnel)
    if any(funnel.steps for funnel in shown):
        legend = f"answered: the task's judging metric is at least {ANSWERED:g}"
        console.print(f"[dim]{legend}[/dim]", highlight=False, soft_wrap=True)


def _funnel(console: Console, funnel: Funnel) -> None:
    console.print(f"[bold]{escape(f'{funnel.pipeline} on {funnel.task}')}[/bold]", highlight=False)
    console.print(f"  {_counts(funnel)}", highlight=False, soft_wrap=True)
    if not funnel.steps:
        console.print()
        return
    console.print(_table(funnel.steps))
    ranks = [rank for rank in _RANKS if rank <= len(funnel.recall)]
    ranks += [len(funnel.recall)] if funnel.recall and len(funnel.recall) not in ranks else []
    recall = "  ".join(f"@{rank} {funnel.recall[rank - 1]:.1f}" for rank in ranks)
    read = next((f"{step.mean:.1f}" for step in funnel.steps if step.stage == "reader"), "none")
    console.print(f"  recall read     {read}", highlight=False)
    console.print(f"  recall of hits  {recall or 'none'}", highlight=False, soft_wrap=True)
    for step in funnel.steps:
        if step.lost:
            more = ", …" if step.lost > len(step.ids) else ""
            lost = f"  {_LOSSES[step.stage]}: {', '.join(step.ids)}{more}"
            console.print(lost, markup=False, highlight=False, soft_wrap=True)
    console.print()


def _counts(funnel: Funnel) -> str:
    if not funnel.examples:
        return "no finished examples"
    counts = f"{funnel.examples:,} examples: {funnel.evidence:,} with gold evidence"
    located = f", {funnel.located:,} without, with a reference found in the document"
    unproved = "" if funnel.proved else "; without proof, lost answers cannot be located"
    return counts + (located if funnel.located else "") + unproved


def _table(steps: Sequence[FunnelStage]) -> Table:
    table = new_table("", "complete proof", "", "of all", "mean", "lost here", "still right")
    table.columns[1].justify = "left"
    for step in steps:
        colour = "red" if step.lost else "green"
        lost = f"[{colour}]{step.lost:,}[/{colour}]"
        answered = f"{step.answered:,}" if step.lost and step.stage != "answer" else ""
        share, mean = f"{step.share:.1f} %", f"{step.mean:.1f}"
        table.add_row(_WORDS[step.stage], _bar(step.share), share, mean, lost, answered)
    return table


def _bar(share: float) -> str:
    """Returns a bar for a percentage."""
    full, eighths = divmod(round(share / 100 * _WIDTH * 8), 8)
    return "█" * full + (_EIGHTHS[eighths] if eighths else "")
