"""Display of `ask`: an answer, its place, its items and its passages."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from leporello.cli.display import excerpt
from leporello.cli.options import print_plain
from leporello.core.calls.answers import Item
from leporello.core.coverage import loss_lines
from leporello.core.errors import counted
from leporello.core.records import Document, Span
from leporello.runs.answer import Answer, CitedPassage, Cost
from leporello.text.outline import cited

if TYPE_CHECKING:
    from leporello.runs.extract import ExtractedRow
    from leporello.text.typed.fields import AnswerField

_FEW = 3  # passages that are printed if none of them contains the answer
_AROUND = 160  # characters of the passage before and after the answer


def show_answer(
    console: Console, answer: Answer, *, all_passages: bool = False, seconds: float | None = None
) -> None:
    """Prints the answer, its place, items or passages, and its coverage; with seconds, its cost."""
    for text in answer.notes:
        console.print(f"[yellow]note: {escape(text)}[/yellow]")
    console.print(f"[bold]{escape(answer.told)}[/bold]", highlight=False, soft_wrap=True)
    if answer.confidence is not None:  # on its own line, since scripts read the first one
        percent = math.floor(100 * answer.confidence)  # 84.9 % is below `sure`, from 85 on
        console.print(f"[dim]{answer.certainty} ({percent}%)[/dim]", highlight=False)
    if answer.items is not None:
        show_items(console, answer.items, answer.document)
    else:
        listed = _listed(answer, all_passages=all_passages)
        show_passages(console, answer, listed, has_scores=all_passages or seconds is not None)
    for line in answer.ledger:
        print_plain(console, line, "dim")
    if seconds is not None:
        console.print(_cost(answer.cost, seconds), style="dim", highlight=False)


def _cost(cost: Cost, seconds: float) -> str:
    parts = [f"{seconds:.1f} s", counted(cost.reads, "read")]
    if cost.input_tokens or cost.output_tokens:
        parts.append(f"{cost.input_tokens:,} tokens read, {cost.output_tokens:,} written")
    if cost.dollars is not None:
        parts.append(f"${cost.dollars:,.4f}")
    return ", ".join(parts)


def show_each(console: Console, answers: Sequence[Answer], document: Document) -> None:
    """Prints a table of the answers for each file, and the losses of the files."""
    table = Table("file", "answer", "confidence", "place", box=None, header_style="bold")
    for answer in answers:
        spans = [*answer.spans[:1], *(passage.span for passage in answer.passages[:1])]
        place = cited(answer.document, spans[0]) if spans and answer.found else ""
        text = answer.text if answer.found else "–"
        name = answer.document.id
        confidence = (answer.certainty if answer.found else None) or ""
        row = (name, text, confidence, place.removeprefix(name))
        table.add_row(*map(escape, row))
    console.print(table)
    for note in dict.fromkeys(note for answer in answers for note in answer.notes):
        console.print(f"[yellow]note: {escape(note)}[/yellow]")
    for line in loss_lines(document.losses):
        print_plain(console, line, "dim")


def show_extracted(
    console: Console, fields: Sequence[AnswerField], rows: Sequence[ExtractedRow]
) -> None:
    """Prints the value of each field in each document, with its unit and its confidence."""
    from leporello.runs.extract import column
    from leporello.text.typed.parse import as_answer

    table = Table("document", "field", "value", "confidence", box=None, header_style="bold")
    for row in rows:
        for field, cell in zip(fields, row.cells, strict=True):
            value = f"{as_answer(cell.value)} {cell.unit}" if cell.value is not None else "–"
            confidence = f"{cell.certainty} ({cell.confidence:.0%})" if cell.certainty else ""
            why = cell.reason if cell.failed else confidence
            table.add_row(*map(escape, (row.document, column(field), value.strip(), why)))
    console.print(table)


def show_passages(
    console: Console,
    answer: Answer,
    listed: Iterable[tuple[int, CitedPassage]] | None = None,
    *,
    has_scores: bool = True,
) -> None:
    """Prints passages with their ranks; all passages of the answer if `listed` is None."""
    for rank, passage in enumerate(answer.passages, 1) if listed is None else listed:
        score = f", score {passage.score:.3g}" if has_scores else ""
        _show_passage(console, f"passage {rank}{score}", passage, answer)


def _listed(answer: Answer, *, all_passages: bool) -> list[tuple[int, CitedPassage]]:
    """Returns the ranked passage that contains the answer; a few, if it is unsure or in none."""
    ranked = [*enumerate(answer.passages, 1)]
    if all_passages:
        return ranked
    if not answer.found:
        return []
    spans = answer.spans[:1]
    containing = [(n, p) for n, p in ranked if any(_contains(p.span, span) for span in spans)]
    is_unranked = all(passage.score == 0 for passage in answer.passages)  # the complete document
    if is_unranked:
        return containing[:1]
    if answer.certainty == "unsure":
        return [*containing[:1], *(pair for pair in ranked if pair not in containing[:1])][:_FEW]
    return containing[:1] or ranked[:_FEW]


def _show_passage(console: Console, name: str, passage: CitedPassage, answer: Answer) -> None:
    verbatim = passage.kind == "verbatim"
    inside = [span for span in answer.spans if verbatim and _contains(passage.span, span)]
    unread = "" if passage.read else ", not read"
    kind = "" if verbatim else f", {passage.kind}"
    place = cited(answer.document, inside[0]) if inside else passage.place
    head = escape(f"{place} ({name}{kind}{unread})")
    console.print(f"[dim]{head}[/dim]", highlight=False)
    if not inside:
        console.print(escape(excerpt(passage.text)))
        return
    start, offset = inside[0].start, passage.span.start
    console.print(_marked(passage.text, start - offset, inside[0].end - offset, _AROUND))


def _contains(outer: Span, inner: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _marked(text: str, start: int, end: int, around: int) -> str:
    """Returns a part of a text, highlighted, with the characters around it."""
    before, after = text[max(start - around, 0) : start], text[end : end + around]
    if start > around:  # do not begin or end within a word
        before = "… " + before.partition(" ")[2]
    if end + around < len(text):
        after = after.rpartition(" ")[0] + " …"
    return (
        f"{escape(_flat(before).lstrip())}[bold green]{escape(_flat(text[start:end]))}[/]"
        f"{escape(_flat(after).rstrip())}"
    )


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


_ITEMS_SHOWN = 30
_PASSAGES_SHOWN = 3
_NEAR = 60  # characters of the passage before and after the item


def show_items(console: Console, items: Sequence[Item], document: Document) -> None:
    """Prints items, the passages that mention them, and the text around each mention."""
    for number, item in enumerate(items[:_ITEMS_SHOWN], 1):
        console.print(f"{number}. [bold]{escape(item.text)}[/bold]", highlight=False)
        for span in item.passages[:_PASSAGES_SHOWN]:
            head = escape(cited(document, span))
            mention = _mention(document.text[span.start : span.end], item.text)
            console.print(f"   {head}  [dim]{mention}[/dim]")
        if (more := len(item.passages) - _PASSAGES_SHOWN) > 0:
            console.print(f"   and {counted(more, 'more passage')}")
    if (more := len(items) - _ITEMS_SHOWN) > 0:
        console.print(f"and {counted(more, 'more item')}; predictions.jsonl has all in `raw`")


def _mention(text: str, item: str) -> str:
    words = r"\s+".join(map(re.escape, item.split()))
    match = re.search(rf"(?<!\w){words}(?!\w)", text, re.IGNORECASE) if words else None
    return _marked(text, *match.span(), _NEAR) if match else escape(excerpt(text, 2 * _NEAR))
