"""Display of a run: scores, coverage, notes, failures and single answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from leporello.cli.display import excerpt
from leporello.cli.display.tables import comparison, new_table
from leporello.core.coverage import shown
from leporello.core.records import Example, Failure, Prediction, Span
from leporello.core.table import swept_columns
from leporello.jobs.results import Result, ways_table
from leporello.runs.verify import Verification
from leporello.text.outline import cited

_HITS = 2  # passages that are printed with an answer
_HITS_SHOWN = 12
_SCORES_ABREAST = 8
_WORTH_REPORTING = 0.01  # share of the files that is in no chunk
_FIRST = ("reader", "examples", "failed", "empty")


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def scores(console: Console, results: Sequence[Result]) -> None:
    """Prints the scores and the coverage of every pipeline, for each task."""
    for task in dict.fromkeys(result.task for result in results):
        _task_scores(console, task, [result for result in results if result.task == task])
    _notes(console, results)


def _notes(console: Console, results: Sequence[Result]) -> None:
    """Prints the notes of the stages with their counts, and large losses of the files."""
    for r in results:
        name = f"{r.pipeline} on {r.task}"
        if (unseen := r.shares["lost"] + r.shares["unchunked"]) > _WORTH_REPORTING:
            text = f"{name}: {_percent(unseen)} of the files is in no chunk (`explain` lists it)"
            console.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)
        for text, count in r.faults.items():
            fault = f"{name}: {text} ({count:,} of {r.examples:,} examples; not scored)"
            console.print(fault, style="red", markup=False, highlight=False, soft_wrap=True)
        if not r.noted:
            continue
        heading = f"{name}: notes on {r.noted:,} of {r.examples:,} examples (calls.jsonl, explain)"
        console.print(heading, style="yellow", markup=False, highlight=False, soft_wrap=True)
        for text, count in r.notes.items():
            console.print(f"  {count:,}x {text}", markup=False, highlight=False, soft_wrap=True)


def _task_scores(console: Console, task: str, results: Sequence[Result]) -> None:
    names = list(dict.fromkeys(name for result in results for name in result.scores))
    parts = shown(result.shares for result in results)
    columns, labels = _labels(results)
    coverage = new_table(f"Coverage of {escape(task)}", *columns, *_FIRST, *parts)
    for r, label in zip(results, labels, strict=True):
        first = [escape(r.reader), *map(str, (r.examples, r.failures, r.empty))]
        coverage.add_row(*label, *first, *(_percent(r.shares[part]) for part in parts))
    if names:
        console.print(_scores_table(f"Scores on {escape(task)}", names, results))
    console.print(coverage)
    if any(result.roles for result in results):
        console.print(_readers_table(task, results))
    if any(result.ways for result in results):
        ways = ((result.pipeline, result.ways) for result in results)
        comparison(console, [ways_table(f"Ways of {task}", ways)])


def _readers_table(task: str, results: Sequence[Result]) -> Table:
    """Returns a table with one row per role: its reads, and those that the budget prevented."""
    columns = ("reads", "over_budget", "input_tokens", "output_tokens", "dollars")
    heads = ("reads", "over budget", "tokens read", "written", "dollars")
    table = new_table(f"Readers of {escape(task)}", "pipeline", "role", *heads)
    for result in results:
        for role, usage in result.roles.items():
            numbers = (f"{usage[name]:,.6g}" if name in usage else "–" for name in columns)
            table.add_row(_name(result), role, *numbers)
    return table


def _name(result: Result) -> str:
    return f"{escape(result.pipeline)}[yellow]{result.marks}[/yellow]"


def _scores_table(title: str, names: Sequence[str], results: Sequence[Result]) -> Table:
    """Returns a table with one row per pipeline, or one row per score if there are many scores."""
    shown = [[f"{r.scores[n]:.2f}" if n in r.scores else "" for n in names] for r in results]
    if len(names) <= _SCORES_ABREAST:
        columns, labels = _labels(results)
        # With blanks, so that long names of metrics are folded between words.
        table = new_table(title, *columns, *(escape(name.replace("_", " ")) for name in names))
        rows = shown
    else:
        table = new_table(title, "score", *map(_name, results))
        labels = [[escape(name)] for name in names]
        rows = [list(row) for row in zip(*shown, strict=True)]
    for label, row in zip(labels, rows, strict=True):
        table.add_row(*label, *row)
    return table


def _labels(results: Sequence[Result]) -> tuple[list[str], list[list[str]]]:
    """Returns headers and cells that name each pipeline, with a column per swept parameter."""
    columns, rows = swept_columns([result.pipeline for result in results])
    labels = [
        [f"{escape(name)}[yellow]{result.marks}[/yellow]", *map(escape, values)]
        for result, (name, *values) in zip(results, rows, strict=True)
    ]
    return [*map(escape, columns)], labels


def prediction(console: Console, example: Example, row: Prediction) -> None:
    """Prints one answer of a run with the passages that were read for it."""
    console.print(f"[bold]{escape(example.document.title)}[/bold]: {escape(example.question)}")
    console.print(f"  answer     {escape(row.prediction or '(empty)')}")
    console.print(f"  reference  {escape(' | '.join(example.references) or '(none)')}")
    spans = (*row.read, *row.stood_for)
    read = [
        (hit, row.passages.get(rank))
        for rank, hit in enumerate(row.hits)
        if any(s.start < hit[1] and hit[0] < s.end for s in spans)
    ]
    for (start, end, score), passage in read[:_HITS]:
        text = excerpt(passage.text if passage else example.document.text[start:end])
        place = escape(cited(example.document, Span(start, end)))
        kind = f", {passage.kind}" if passage else ""
        console.print(f"  [dim]{place} ({score:g}{kind})[/dim] {escape(text)}")
    if (more := len(read) - _HITS) > 0:
        console.print(f"  [dim]and {more:,} more passages[/dim]")
    console.print()


def failures(console: Console, failed: Sequence[Failure], examples: int) -> None:
    """Prints the number of failed examples for each stage and kind of error."""
    kinds = Counter((f.stage, f.error.partition(":")[0]) for f in failed)
    counts = ", ".join(
        f"{n:,} at the {stage} ({kind})" for (stage, kind), n in kinds.most_common(5)
    )
    text = (
        f"{len(failed):,} of {examples:,} examples failed: {counts}; failures.jsonl has all"
        " tracebacks; run the same command again to retry them"
    )
    console.print(text, style="red", markup=False, highlight=False, soft_wrap=True)


def verified(console: Console, done: Sequence[Verification]) -> None:
    """Prints the differences that repeating examples showed."""
    differing = [difference for verification in done for difference in verification.differing]
    for d in differing[:_HITS_SHOWN]:
        text = f"different when repeated: {d.example} ({d.pipeline} on {d.task}): {d.field}:"
        line = f"{text} {d.was!r:.200} -> {d.now!r:.200}"
        console.print(line, style="red", markup=False, highlight=False, soft_wrap=True)
    if (more := len(differing) - _HITS_SHOWN) > 0:
        console.print(f"and {more} more, in verify.json", style="red")
    if done and not differing:
        count = sum(verification.examples for verification in done)
        console.print(f"verified: {count} examples repeated, no differences")


def where(console: Console, directory: Path) -> None:
    """Prints the directory of a run, or of the runs that had finished every job before."""
    console.print(f"results in {directory}", soft_wrap=True, highlight=False)
