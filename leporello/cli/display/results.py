"""Display of a run: scores, coverage, notes, failures and single answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from leporello.cli.display import excerpt
from leporello.cli.display.tables import comparison, show_table
from leporello.cli.options import print_plain
from leporello.core.errors import counted
from leporello.core.records import Example, Prediction
from leporello.jobs.results import Result, result_tables
from leporello.runs.answer import cited_passages

if TYPE_CHECKING:
    from leporello.runs.run import Run
    from leporello.tuning import Tuned

_HITS = 2  # passages that are printed with an answer
_HITS_SHOWN = 12
_FAILURES = 10  # printed at the end of a run; its files contain all failures
_TUNED = ("tuned", "as it is")  # keys of the scores
_WORTH_REPORTING = 0.01  # share of the files that is in no chunk


def scores(console: Console, results: Sequence[Result]) -> None:
    """Prints the scores and the coverage of every pipeline, for each task, and the notes."""
    comparison(console, result_tables(results))
    for r in results:
        name = f"{r.pipeline} on {r.task}"
        if (unseen := r.shares["lost"] + r.shares["unchunked"]) > _WORTH_REPORTING:
            text = f"{name}: {100 * unseen:.1f} % of the files is in no chunk (`explain` lists it)"
            print_plain(console, text, "yellow")
        for text, count in r.faults.items():
            fault = f"{name}: {text} ({count:,} of {counted(r.examples, 'example')}; not scored)"
            print_plain(console, fault, "red")
        if not r.noted:
            continue
        share = f"{r.noted:,} of {counted(r.examples, 'example')}"
        print_plain(console, f"{name}: notes on {share} (statistics.jsonl, explain)", "yellow")
        for text, count in r.notes.items():
            print_plain(console, f"  {count:,}x {text}")


def answers(console: Console, run: Run, count: int) -> None:
    """Prints some answers of a run's first job, with the passages that were read for them."""
    from leporello.analysis.finished import FinishedRun

    first = run.results[0]
    job = FinishedRun.at(run.directory).job(first.pipeline, first.task)
    for example, row in job.answers(count):
        _prediction(console, example, row)


def _prediction(console: Console, example: Example, row: Prediction) -> None:
    console.print(f"[bold]{escape(example.document.title)}[/bold]: {escape(example.question)}")
    console.print(f"  answer     {escape(row.prediction or '(empty)')}")
    console.print(f"  reference  {escape(' | '.join(example.references) or '(none)')}")
    read = [hit for hit in cited_passages(example.document, row) if hit.read]
    for hit in read[:_HITS]:
        kind = "" if hit.kind == "verbatim" else f", {hit.kind}"
        place = f"[dim]{escape(hit.place)} ({hit.score:g}{kind})[/dim]"
        console.print(f"  {place} {escape(excerpt(hit.text))}")
    if (more := len(read) - _HITS) > 0:
        console.print(f"  [dim]and {counted(more, 'more passage')}[/dim]")
    console.print()


def failures(console: Console, run: Run) -> None:
    """Prints some failures of a run, and their number for each stage and kind of error."""
    failed = [
        failure
        for r in run.results
        for failure in islice(run.failed(r.pipeline, r.task), r.failures)  # --limit
    ]
    if not failed:
        return
    # Several pipelines fail on an example whose document is missing.
    texts = dict.fromkeys(f"failed: {f.example_id} at the {f.stage}: {f.error}" for f in failed)
    for text in [*texts][:_FAILURES]:
        print_plain(console, text, "red")
    names = ((f.stage, f.error.partition(":")[0]) for f in failed)
    kinds = Counter(f"{stage} ({kind})" if kind.isidentifier() else stage for stage, kind in names)
    counts = ", ".join(f"{n:,} at the {kind}" for kind, n in kinds.most_common(5))
    examples = sum(result.examples for result in run.results)
    text = (
        f"{len(failed):,} of {counted(examples, 'example')} failed: {counts}; failures.jsonl has"
        " all tracebacks; run the same command again to retry them"
    )
    print_plain(console, text, "red")


def tuned(console: Console, result: Tuned) -> None:
    """Prints scores on search and held-out documents, and the best score at each cost."""
    title = ", ".join(f"{metric} on {task}" for task, metric in result.metrics.items())
    rows = []
    sides = (("chosen on", "searched", result.gain), ("apart", "held out", result.apart_gain))
    for side, label, gain in sides:
        means = [
            f"{fmean(scores[f'{side}, {n}'] for scores in result.by_task.values()):.2f}"
            for n in _TUNED
        ]
        if side == "apart" and (ends := result.estimate.interval):
            means[0] += f" [{ends[0]:.1f}, {ends[1]:.1f}]"
        ends = gain.interval
        spread = f" [{ends[0]:+.1f}, {ends[1]:+.1f}]" if ends else ""
        rows.append((label, *means, f"{gain.value:+.2f}{spread}"))
        for task, scores in result.by_task.items() if len(result.by_task) > 1 else ():
            cells = (f"{scores[f'{side}, {n}']:.2f}" for n in _TUNED)
            rows.append((f"  {task}", *cells, ""))
    show_table(console, title, ("documents", "tuned", "original", "difference [95 %]"), rows)
    if result.front:
        title = f"Best score at each cost ({result.cost} per question)"
        points = []
        for row in result.front:
            chosen: Any = row["chosen"]
            choices = ", ".join(f"{path}={value}" for path, value in chosen.items()) or "original"
            points.append((choices, f"{row['score']:.2f}", f"{row['cost']:,.6g}"))
        show_table(console, title, ("choices", "score", "cost"), points)
