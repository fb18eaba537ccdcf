"""What `explain` shows of a run: where its pipelines lose answers."""

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
    "combiner": "given to the reader",
    "reader": "read",
    "answer": "answered",
}
_LOSSES = {
    "failed": "failed",
    "chunker": "cut in two by the chunker, or left out",
    "retriever": "not wholly retrieved",
    "combiner": "not wholly given to the reader",
    "reader": "not wholly read",
    "answer": "read, and answered wrong",
}


def show_funnels(console: Console, shown: Sequence[Funnel]) -> None:
    """Prints, for each pipeline and task, how much survived each stage, and what was lost there."""
    for funnel in shown:
        _funnel(console, funnel)
    if any(funnel.steps for funnel in shown):
        legend = (
            f"answered: a score of at least {ANSWERED:g}, by the task's first metric of answers"
        )
        console.print(f"[dim]{legend}[/dim]", highlight=False, soft_wrap=True)


def _funnel(console: Console, funnel: Funnel) -> None:
    console.print(f"[bold]{escape(f'{funnel.pipeline} on {funnel.task}')}[/bold]", highlight=False)
    console.print(f"  {_known(funnel)}", highlight=False, soft_wrap=True)
    if not funnel.steps:
        console.print()
        return
    console.print(_table(funnel.steps))
    ranks = [rank for rank in _RANKS if rank <= len(funnel.recall)]
    ranks += [len(funnel.recall)] if funnel.recall and len(funnel.recall) not in ranks else []
    recall = "  ".join(f"@{rank} {funnel.recall[rank - 1]:.1f}" for rank in ranks)
    console.print(f"  recall of hits  {recall or 'none'}", highlight=False, soft_wrap=True)
    for step in funnel.steps:
        if step.lost:
            more = ", …" if step.lost > len(step.ids) else ""
            lost = f"  {_LOSSES[step.stage]}: {', '.join(step.ids)}{more}"
            console.print(lost, markup=False, highlight=False, soft_wrap=True)
    console.print()


def _known(funnel: Funnel) -> str:
    if not funnel.examples:
        return "no example is finished"
    counts = f"{funnel.examples:,} examples: {funnel.evidence:,} with gold evidence"
    located = f", {funnel.located:,} without, with a reference found in the document"
    rest = "" if funnel.proved else "; nothing can be told of where answers are lost"
    return counts + (located if funnel.located else "") + rest


def _table(steps: Sequence[FunnelStage]) -> Table:
    table = new_table("", "whole proof", "", "of all", "mean", "lost here", "yet right")
    table.columns[1].justify = "left"
    for step in steps:
        colour = "red" if step.lost else "green"
        lost = f"[{colour}]{step.lost:,}[/{colour}]"
        answered = f"{step.answered:,}" if step.lost and step.stage != "answer" else ""
        share, mean = f"{step.share:.1f} %", f"{step.mean:.1f}"
        table.add_row(_WORDS[step.stage], _bar(step.share), share, mean, lost, answered)
    return table


def _bar(share: float) -> str:
    """Returns a share in per cent as a bar."""
    full, rest = divmod(round(share / 100 * _WIDTH * 8), 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")
