"""Display of `explain` for a run: the stages in which its pipelines lose answers."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.text import Text

from leporello.analysis.example_trace import ANSWERED
from leporello.analysis.funnel import Funnel, FunnelStage
from leporello.cli.display.tables import show_table

_WIDTH = 16  # characters of a bar
_EIGHTHS = " ▏▎▍▌▋▊▉"
_RANKS = (1, 2, 3, 5, 10, 20, 50, 100)
_WORDS = {
    "failed": "finished",
    "chunker": "whole in a chunk or a read",
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
    _steps(console, funnel.steps)
    ranks = [rank for rank in _RANKS if rank <= len(funnel.recall)]
    ranks += [len(funnel.recall)] if funnel.recall and len(funnel.recall) not in ranks else []
    recall = "  ".join(f"@{rank} {funnel.recall[rank - 1]:.1f}" for rank in ranks)
    read = next((f"{step.mean:.1f}" for step in funnel.steps if step.stage == "reader"), "none")
    console.print(f"  recall read     {read}", highlight=False)
    console.print(f"  recall of hits  {recall or 'none'}", highlight=False, soft_wrap=True)
    for step in funnel.steps:
        if step.lost:
            more = ", …" if step.lost > len(step.ids) else ""
            lost = Text(f"{_LOSSES[step.stage]}: {', '.join(step.ids)}{more}")
            console.print(Padding(lost, (0, 0, 0, 2)), highlight=False)
    console.print()


def _counts(funnel: Funnel) -> str:
    if not funnel.examples:
        return "no finished examples"
    counts = f"{funnel.examples:,} examples: {funnel.evidence:,} with gold evidence"
    located = f", {funnel.located:,} without, with a reference found in the document"
    unproved = "" if funnel.proved else "; without proof, lost answers cannot be located"
    return counts + (located if funnel.located else "") + unproved


def _steps(console: Console, steps: Sequence[FunnelStage]) -> None:
    headers = ("complete proof", "", "of all", "mean", "lost here", "still right")
    rows = []
    for step in steps:
        lost = Text(f"{step.lost:,}", style="red" if step.lost else "green")
        answered = f"{step.answered:,}" if step.lost and step.stage != "answer" else ""
        share, mean = f"{step.share:.1f} %", f"{step.mean:.1f}"
        rows.append((_WORDS[step.stage], _bar(step.share), share, mean, lost, answered))
    show_table(console, "", headers, rows, labels=2)


def _bar(share: float) -> str:
    """Returns a bar for a percentage."""
    full, eighths = divmod(round(share / 100 * _WIDTH * 8), 8)
    return "█" * full + (_EIGHTHS[eighths] if eighths else "")
