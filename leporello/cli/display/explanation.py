"""Display of `explain` for one example: all stages, or one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from itertools import islice

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

from leporello.analysis.example_trace import Gold, gold_of
from leporello.analysis.explain import Explanation, ReadInput
from leporello.cli.display import excerpt, place_within
from leporello.cli.display.answer import show_items
from leporello.core.calls.answers import items_of, way_of
from leporello.core.coverage import ledger_line, loss_lines
from leporello.core.passages import Passage, derivation, reading_text
from leporello.core.records import Span
from leporello.text.outline import cited

_HITS_SHOWN = 12
_INPUTS_SHOWN = 60
_PLACES_SHOWN = 6
_TEXT_SHOWN = 100  # characters of a passage
_TREE_SHOWN = 40  # chunks and passages that a passage was made from
_UNREAD = "[yellow]not read[/yellow]"
_REPRESENTED = "[yellow]read in other words[/yellow]"


def show_explanation(console: Console, explanation: Explanation, stage: str = "") -> None:
    """Prints the stages of one example.

    Args:
        console: Console to print on.
        explanation: Explanation of the example.
        stage: Stage to print: chunker, retriever, combiner, reader or answer; empty for all.
    """
    _head(console, explanation)
    if explanation.failure:
        _failure(console, explanation.failure, trace=stage in ("", explanation.failure["stage"]))
    for show in [_SHOWN[stage]] if stage else (_answer, _chunks, _hits, _reads):
        if not explanation.failure or show is _chunks:
            show(console, explanation)
        elif stage:
            console.print(f"no output of the {stage} is stored, because the example failed")
    _lost(console, explanation)


def _head(console: Console, explanation: Explanation) -> None:
    example = explanation.example
    console.rule(escape(f"{explanation.pipeline} on {explanation.task}: {example.id}"))
    console.print(f"document   {escape(example.document.title or example.document.id)}")
    console.print(f"question   {escape(example.question or '(none)')}")
    console.print(f"references {escape(' | '.join(example.references) or '(none)')}")


def _failure(console: Console, failure: Mapping[str, str], *, trace: bool) -> None:
    console.print(f"[red]failed at the {failure['stage']}[/red]: {escape(failure['error'])}")
    if trace:
        console.print(f"[dim]{escape(failure['traceback'])}[/dim]")


def _answer(console: Console, explanation: Explanation) -> None:
    prediction = explanation.prediction
    console.print(f"answer     [bold]{escape(prediction.prediction or '(empty)')}[/bold]")
    if isinstance(prediction.raw, str) and prediction.raw.strip() != prediction.prediction:
        console.print(f"as read    {escape(prediction.raw)}")
    if way := way_of(prediction.raw):
        console.print(f"way        {escape(', '.join(way))}")
    show_items(console, items_of(prediction.raw) or (), explanation.example.document)
    scores = ", ".join(f"{name} {value:.2f}" for name, value in explanation.scores.items())
    console.print(f"scores     {escape(scores or '(none)')}")
    console.print(f"coverage   {ledger_line(asdict(prediction.coverage))}")
    for line in loss_lines(explanation.example.document.losses):
        console.print(f"lost       {escape(line)}", soft_wrap=True)
    for text in explanation.notes:
        console.print(f"note       [yellow]{escape(text)}[/yellow]")


def _chunks(console: Console, explanation: Explanation) -> None:
    console.print(f"chunks     {len(explanation.chunks)}")
    spans = _proof(gold_of(explanation.example))
    for span in spans[:_PLACES_SHOWN]:
        text = escape(
            excerpt(explanation.example.document.text[span.start : span.end], _TEXT_SHOWN)
        )
        position = _chunk_of(span, explanation.chunks)
        place = cited(explanation.example.document, span)
        console.print(f"  {_kind(explanation)}  {position}")
        console.print(f"      {escape(place_within(place, console, 6))}", soft_wrap=True)
        console.print(Padding(f"[dim]{text}[/dim]", (0, 0, 0, 6)))
    _more(console, len(spans) - _PLACES_SHOWN, "places")


def _chunk_of(span: Span, chunks: Iterable[Span]) -> str:
    """Returns a phrase about the chunks that contain a span."""
    touching = [
        (number, chunk)
        for number, chunk in enumerate(chunks, 1)
        if span.start < chunk.end and chunk.start < span.end
    ]
    for number, chunk in touching:
        if chunk.start <= span.start and span.end <= chunk.end:
            return f"[green]whole in chunk {number}[/green]"
    several = ", ".join(str(number) for number, _ in touching)
    return f"[yellow]cut over chunks {several}[/yellow]" if several else "[red]in no chunk[/red]"


def _hits(console: Console, explanation: Explanation) -> None:
    gold = _proof(gold_of(explanation.example))
    prediction, document = explanation.prediction, explanation.example.document
    for rank, (start, end, score) in enumerate(prediction.hits[:_HITS_SHOWN]):
        spans, passage = prediction.hit_spans[rank], prediction.passages.get(rank)
        has_proof = any(_touches(gold, span.start, span.end) for span in spans)
        marks = f"[bold green]{_kind(explanation)}[/bold green] " if has_proof else ""
        is_read = any(_touches(prediction.read, span.start, span.end) for span in spans)
        is_represented = any(_touches(prediction.stood_for, span.start, span.end) for span in spans)
        marks += "[green]read[/green]" if is_read else _REPRESENTED if is_represented else _UNREAD
        marks += f" {passage.kind}" if passage else ""
        text = escape(excerpt(passage.text if passage else document.text[start:end], _TEXT_SHOWN))
        head = f"  hit {rank + 1}  {score:.3g}  {marks}  "
        indent = len(Text.from_markup(head))
        place = escape(place_within(cited(document, Span(start, end)), console, indent))
        console.print(f"{head}{place}", soft_wrap=True)
        console.print(Padding(f"[dim]{text}[/dim]", (0, 0, 0, 6)))
        if rank in explanation.passages:
            _derivation(console, explanation.passages[rank])
    _more(console, len(explanation.prediction.hits) - _HITS_SHOWN, "hits")


def _derivation(console: Console, passage: Passage) -> None:
    """Prints the tree of passages and chunks that a passage was made from."""
    lines = list(islice(derivation(passage), 1, _TREE_SHOWN + 1))
    for depth, source in lines:
        kind = source.kind if isinstance(source, Passage) else "verbatim"
        text = escape(excerpt(reading_text(source), _TEXT_SHOWN))
        place = escape(cited(source.document, source.span))
        console.print(f"  {'   ' * depth}└ {kind}  {place}  [dim]{text}[/dim]", soft_wrap=True)
    _more(console, sum(1 for _ in derivation(passage)) - 1 - len(lines), "below it")


def _reads(
    console: Console, explanation: Explanation, *, inputs: bool = True, outputs: bool = True
) -> None:
    for number, read in enumerate(explanation.inputs[:_INPUTS_SHOWN], 1):
        if inputs:
            _input(console, read)
        else:
            console.print(f"input {number}, {_title(read)}")
        if outputs:
            _output(console, read)
    _more(console, len(explanation.inputs) - _INPUTS_SHOWN, "inputs")


def _input(console: Console, read: ReadInput) -> None:
    console.print(Panel(escape(read.prompt), title=f"input, {_title(read)}", title_align="left"))


def _title(read: ReadInput) -> str:
    cut = f", {read.cut:,} characters cut" if read.cut else ""
    return f"round {read.round + 1}{cut}"


def _output(console: Console, read: ReadInput) -> None:
    if read.error:
        console.print(f"  [red]{escape(read.error)}[/red]")
        return
    if read.reasoning or read.reasoning_tokens:
        tokens = f"{read.reasoning_tokens:,} tokens  " if read.reasoning_tokens else ""
        text = escape(excerpt(read.reasoning, _TEXT_SHOWN))
        console.print(f"  reasoning  {tokens}[dim]{text}[/dim]")
    console.print(f"  output     {escape(read.text)}")
    if read.span:
        console.print(f"  place      {escape(read.place)}")
    if read.scores:
        console.print(f"  choices    {', '.join(f'{score:g}' for score in read.scores)}")
    elif read.score is not None:
        console.print(f"  score      {read.score:g}")


def _lost(console: Console, explanation: Explanation) -> None:
    """Prints the stage that lost the evidence, or the places with a reference."""
    trace = explanation.fate
    if not trace.gold or explanation.failure:
        return
    if trace.lost_at not in ("", "answer"):
        verdict = f"[red]lost at the {trace.lost_at}[/red]"
    else:
        wrong = "; [red]the answer is wrong[/red]" if trace.lost_at else ""
        verdict = f"[green]kept through every stage[/green]{wrong}"
    console.print(f"{_kind(explanation):<10} {verdict}")


def _kind(explanation: Explanation) -> str:
    return explanation.fate.gold


def _proof(gold: Gold | None) -> list[Span]:
    """Returns all spans that prove the answer, alone or with others."""
    return (
        sorted({span for alternative in gold.alternatives for span in alternative}) if gold else []
    )


def _touches(spans: Iterable[Span], start: int, end: int) -> bool:
    return any(span.start < end and start < span.end for span in spans)


def _more(console: Console, count: int, what: str) -> None:
    if count > 0:
        console.print(f"  and {count:,} more {what}")


_SHOWN: Mapping[str, Callable[[Console, Explanation], None]] = {
    "chunker": _chunks,
    "retriever": _hits,
    "combiner": partial(_reads, outputs=False),
    "reader": partial(_reads, inputs=False),
    "answer": _answer,
}
