"""Display of `explain`: the stages of one example, and the stages in which a run loses answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from leporello.analysis.example_trace import ANSWERED, gold_of
from leporello.cli.display import excerpt
from leporello.cli.display.answer import show_items
from leporello.cli.display.tables import show_table
from leporello.core.calls.answers import items_of, way_of
from leporello.core.coverage import ledger_line, loss_lines, overlap
from leporello.core.errors import counted
from leporello.core.passages import Passage, derivation, reading_text
from leporello.core.records import Example, Span
from leporello.runs.answer import cited_passages
from leporello.text.outline import cited

if TYPE_CHECKING:
    from leporello.analysis.explain import Explanation, ReadInput
    from leporello.analysis.funnel import Funnel, FunnelStage

_HITS_SHOWN = 12
_INPUTS_SHOWN = 60
_PLACES_SHOWN = 6
_TEXT_SHOWN = 100  # characters of a passage
_TREE_SHOWN = 40  # chunks and passages that a passage was made from
_UNREAD = "[yellow]not read[/yellow]"
_REPRESENTED = "[yellow]read in other words[/yellow]"


def show_explanation(console: Console, explanation: Explanation) -> None:
    """Prints the stages of one example; only its chunks if it failed."""
    _head(console, explanation)
    if failure := explanation.failure:
        console.print(f"[red]failed at the {failure['stage']}[/red]: {escape(failure['error'])}")
        console.print(f"[dim]{escape(failure['traceback'])}[/dim]")
        _chunks(console, explanation)
        return
    for show in (_answer, _chunks, _hits, _reads, _lost):
        show(console, explanation)


def _head(console: Console, explanation: Explanation) -> None:
    example = explanation.example
    console.rule(escape(f"{explanation.pipeline} on {explanation.task}: {example.id}"))
    rows = {
        "document": example.document.title or example.document.id,
        "question": example.question or "(none)",
        "references": " | ".join(example.references) or "(none)",
    }
    _fields(console, ((name, escape(text)) for name, text in rows.items()))


def _fields(console: Console, rows: Iterable[tuple[str, str]], indent: int = 0) -> None:
    """Prints labels with texts, whose further lines begin below the first one."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(min_width=10)
    for label, text in rows:
        grid.add_row(label, text)
    console.print(Padding(grid, (0, 0, 0, indent), expand=False))


def _answer(console: Console, explanation: Explanation) -> None:
    prediction = explanation.prediction
    rows = [("answer", f"[bold]{escape(prediction.prediction or '(empty)')}[/bold]")]
    if isinstance(prediction.raw, str) and prediction.raw.strip() != prediction.prediction:
        rows.append(("as read", escape(prediction.raw)))
    if way := way_of(prediction.raw):
        rows.append(("way", escape(", ".join(way))))
    _fields(console, rows)
    show_items(console, items_of(prediction.raw) or (), explanation.example.document)
    scores = ", ".join(f"{name} {value:.2f}" for name, value in explanation.scores.items())
    losses = loss_lines(explanation.example.document.losses)
    rows = [("scores", escape(scores or "(none)"))]
    rows += [("coverage", ledger_line(asdict(prediction.coverage)))]
    rows += [("lost", escape(line)) for line in losses]
    rows += [("note", f"[yellow]{escape(text)}[/yellow]") for text in explanation.notes]
    _fields(console, rows)


def _chunks(console: Console, explanation: Explanation) -> None:
    console.print(f"chunks     {len(explanation.chunks)}")
    spans = _proof(explanation.example)
    for span in spans[:_PLACES_SHOWN]:
        position = _chunk_of(span, explanation.chunks)
        place = cited(explanation.example.document, span)
        console.print(f"  {explanation.fate.gold}  {position}")
        console.print(f"      {escape(place)}", soft_wrap=True)
        _excerpt(console, explanation.example.document.text[span.start : span.end])
    _more(console, len(spans) - _PLACES_SHOWN, "place")


def _excerpt(console: Console, text: str) -> None:
    console.print(Padding(f"[dim]{escape(excerpt(text, _TEXT_SHOWN))}[/dim]", (0, 0, 0, 6)))


def _chunk_of(span: Span, chunks: Iterable[Span]) -> str:
    touching = [
        (number, chunk)
        for number, chunk in enumerate(chunks, 1)
        if chunk.overlaps(span.start, span.end)
    ]
    for number, chunk in touching:
        if chunk.start <= span.start and span.end <= chunk.end:
            return f"[green]whole in chunk {number}[/green]"
    several = ", ".join(str(number) for number, _ in touching)
    return f"[yellow]cut over chunks {several}[/yellow]" if several else "[red]in no chunk[/red]"


def _hits(console: Console, explanation: Explanation) -> None:
    gold = _proof(explanation.example)
    prediction, document = explanation.prediction, explanation.example.document
    hits = zip(cited_passages(document, prediction), prediction.hit_spans, strict=True)
    for rank, (hit, spans) in enumerate(islice(hits, _HITS_SHOWN)):
        has_proof = overlap(gold, spans)
        marks = f"[bold green]{explanation.fate.gold}[/bold green] " if has_proof else ""
        unread = _REPRESENTED if overlap(prediction.stood_for, spans) else _UNREAD
        marks += "[green]read[/green]" if overlap(prediction.read, spans) else unread
        marks += "" if hit.kind == "verbatim" else f" {hit.kind}"
        place = escape(hit.place)
        console.print(f"  hit {rank + 1}  {hit.score:.3g}  {marks}  {place}", soft_wrap=True)
        _excerpt(console, hit.text)
        if rank in explanation.passages:
            _derivation(console, explanation.passages[rank])
    _more(console, len(explanation.prediction.hits) - _HITS_SHOWN, "hit")


def _derivation(console: Console, passage: Passage) -> None:
    lines = list(islice(derivation(passage), 1, _TREE_SHOWN + 1))
    for depth, source in lines:
        kind = source.kind if isinstance(source, Passage) else "verbatim"
        text = escape(excerpt(reading_text(source), _TEXT_SHOWN))
        place = escape(cited(source.document, source.span))
        console.print(f"  {'   ' * depth}└ {kind}  {place}  [dim]{text}[/dim]", soft_wrap=True)
    _more(console, sum(1 for _ in derivation(passage)) - 1 - len(lines), "source")


def _reads(console: Console, explanation: Explanation) -> None:
    for read in explanation.inputs[:_INPUTS_SHOWN]:
        cut = f", {read.cut:,} characters cut" if read.cut else ""
        title = f"input, round {read.round + 1}{cut}"
        console.print(Panel(escape(read.prompt), title=title, title_align="left"))
        _output(console, read)
    _more(console, len(explanation.inputs) - _INPUTS_SHOWN, "input")


def _output(console: Console, read: ReadInput) -> None:
    if read.error:
        console.print(f"  [red]{escape(read.error)}[/red]")
        return
    rows = []
    if read.reasoning or read.reasoning_tokens:
        tokens = f"{read.reasoning_tokens:,} tokens  " if read.reasoning_tokens else ""
        text = escape(excerpt(read.reasoning, _TEXT_SHOWN))
        rows.append(("reasoning", f"{tokens}[dim]{text}[/dim]"))
    rows.append(("output", escape(read.text)))
    if read.span:
        rows.append(("place", escape(read.place)))
    if read.scores:
        rows.append(("choices", ", ".join(f"{score:g}" for score in read.scores)))
    elif read.score is not None:
        rows.append(("score", f"{read.score:g}"))
    _fields(console, rows, 2)


def _lost(console: Console, explanation: Explanation) -> None:
    trace = explanation.fate
    if not trace.gold:
        return
    if trace.lost_at not in ("", "answer"):
        verdict = f"[red]lost at the {trace.lost_at}[/red]"
    else:
        wrong = "; [red]the answer is wrong[/red]" if trace.lost_at else ""
        verdict = f"[green]kept through every stage[/green]{wrong}"
    console.print(f"{trace.gold:<10} {verdict}")


def _proof(example: Example) -> list[Span]:
    """Returns all spans that prove the answer, alone or with others."""
    gold = gold_of(example)
    return sorted({s for spans in gold.alternatives for s in spans}) if gold else []


def _more(console: Console, count: int, noun: str) -> None:
    if count > 0:
        console.print(f"  and {counted(count, f'more {noun}')}")


_BAR = 16  # characters of a bar
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
    counts = f"{counted(funnel.examples, 'example')}: {funnel.evidence:,} with gold evidence"
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
        bar = "█" * round(step.share / 100 * _BAR)
        rows.append((_WORDS[step.stage], bar, share, mean, lost, answered))
    show_table(console, "", headers, rows, labels=2)
