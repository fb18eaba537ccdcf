"""What programs and agents ask of documents: an answer, passages, an outline, each with a ledger.

`http_api` and `mcp` have the same three over HTTP and MCP. Replies are UTF-8, and have a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from inspect import Parameter, getdoc, signature
from typing import Annotated, Any

from pydantic import BaseModel, Field

from leporello.core.coverage import ledger_line, loss_lines
from leporello.core.members import member_at
from leporello.core.records import Coverage, Document, Member, Place, Section, Span
from leporello.engine.progress import Silent
from leporello.runs.answer import CitedPassage, Cost
from leporello.runs.ask import Session
from leporello.text.outline import cited

_LONGEST = 4_000  # characters of a passage
_PIECE = 20_000  # characters of a stretch that is asked for

Question = Annotated[str, Field(description="The question, which stands alone.", max_length=10_000)]
Most = Annotated[int, Field(description="Number of passages at most.", ge=1, le=50)]
Start = Annotated[int, Field(description="First character of a stretch to read.", ge=0)]
End = Annotated[int, Field(description="One past its last character; 0 reads none.", ge=0)]
Like = Annotated[str, Field(description="Text that names must hold.", max_length=1_000)]
Entries = Annotated[int, Field(description="Number of entries at most.", ge=1, le=2_000)]


class Stretch(BaseModel):
    """Characters of the document, and where a person finds them."""

    start: int = Field(description="First character, from 0.")
    end: int = Field(description="One past the last character.")
    place: str = Field(description="Page, heading, cell or moment: `report.pdf p. 14`.")


class FoundPassage(Stretch):
    """A passage of the document."""

    text: str = Field(description=f"Its text, {_LONGEST:,} characters at most if it was found.")
    score: float = Field(description="Score of the retriever; higher is better.")
    read: bool = Field(description="Whether the reader saw any of it.")
    kind: str = Field(description="How it came about: verbatim, summary, context.")


class LedgerReply(BaseModel):
    """What became of the whole file: an answer is only as good as what was read."""

    document: int = Field(description="Characters of the document's text.")
    selected: int = Field(description="Characters of the passages.")
    read: int = Field(description="Characters that the reader saw.")
    told: list[str] = Field(description="All of it in sentences, and what of the file is no text.")


class AnswerReply(BaseModel):
    """An answer and what it rests on."""

    answer: str = Field(description="The answer in words, also where there is none.")
    found: bool = Field(description="Whether the document says so, as far as the reader knows.")
    stands: list[Stretch] = Field(description="Where the answer was copied from, best first.")
    passages: list[FoundPassage] = Field(description="What was selected, best first.")
    more_passages: int = Field(description="Number of passages that are not shown.")
    notes: list[str] = Field(description="What the stages noted: that they found nothing.")
    cost: Cost = Field(description="What reading took.")
    ledger: LedgerReply


class PassagesReply(BaseModel):
    """Passages, which no model has read."""

    passages: list[FoundPassage] = Field(description="Passages, best first.")
    more_passages: int = Field(description="Number of passages that are not shown.")
    ledger: LedgerReply


class OutlineEntry(Stretch):
    """A file, a heading or another place of the document."""

    name: str
    level: int = Field(description="Depth: 0 is a file, 1 the top of its headings.")


class OutlineReply(BaseModel):
    """What is where in the document."""

    name: str = Field(description="Name of the document.")
    entries: list[OutlineEntry] = Field(description="Files, headings or pages, in order.")
    more_entries: int = Field(description="Number of entries that are not shown.")
    ledger: LedgerReply


def ask(session: Session, question: Question, most: Most = 5) -> AnswerReply:
    """Answers a question about the document.

    Raises:
        UserError: A stage failed, with its reason.
    """
    [answer] = session.answers([question], Silent())
    document = answer.document
    return AnswerReply(
        answer=as_utf8(answer.told),
        found=answer.found,
        stands=[Stretch(**_stretch(document, span)) for span in answer.spans[:most]],
        passages=[*map(_found, answer.passages[:most])],
        more_passages=max(0, len(answer.passages) - most),
        notes=[*map(as_utf8, answer.notes)],
        cost=answer.cost,
        ledger=_ledger(document, answer.coverage),
    )


def passages(
    session: Session, question: Question = "", start: Start = 0, end: End = 0, most: Most = 5
) -> PassagesReply:
    """Finds the passages that have to do with a question, or reads a stretch of the document.

    No model is asked; `start` and `end` as `outline` or another passage gave them.

    Raises:
        UserError: A stage failed, with its reason.
    """
    document = session.document
    if end > start:
        span = Span(min(start, len(document.text)), min(end, start + _PIECE, len(document.text)))
        text = document.text[span.start : span.end]
        found: Sequence[CitedPassage] = [CitedPassage(span, text, 0.0, cited(document, span), True)]
        coverage, longest = Coverage.of(len(document.text), document.losses, [span], [span]), _PIECE
    else:
        (found, coverage), longest = session.select(question), _LONGEST
    return PassagesReply(
        passages=[_found(passage, longest) for passage in found[:most]],
        more_passages=max(0, len(found) - most),
        ledger=_ledger(document, coverage),
    )


def outline(session: Session, like: Like = "", most: Entries = 200) -> OutlineReply:
    """Lists the document's files and headings, or its pages, and where each begins and ends."""
    document = session.document
    # Pages tell something only where there are no headings, or where one looks for them.
    of = document.sections or document.places
    stretches = (*document.members, *of, *(document.places if like and document.sections else ()))
    named = [(name_of(document, stretch), stretch) for stretch in stretches]
    listed = [(name, one) for name, one in named if like.casefold() in name.casefold()]
    listed.sort(key=lambda pair: (pair[1].start, -pair[1].end))
    return OutlineReply(
        name=as_utf8(document.id),
        entries=[
            OutlineEntry(**_stretch(document, one), name=as_utf8(name), level=_level(one))
            for name, one in listed[:most]
        ],
        more_entries=max(0, len(listed) - most),
        ledger=_ledger(document, Coverage.of(len(document.text), document.losses, (), ())),
    )


TOOLS: tuple[Callable[..., BaseModel], ...] = (ask, passages, outline)


def parameters_of(tool: Callable[..., BaseModel]) -> list[Parameter]:
    """Returns a tool's parameters besides the conversation, with their annotations."""
    return [*signature(tool, eval_str=True).parameters.values()][1:]


def purpose_of(tool: Callable[..., BaseModel]) -> str:
    """Returns what a tool is for, as its docstring says it."""
    return (getdoc(tool) or "").partition("\n\nRaises:")[0]


def name_of(document: Document, stretch: Member | Place | Section) -> str:
    """Returns the name of something that stands in a document, with its file in a collection."""
    name = stretch.title if isinstance(stretch, Section) else stretch.name
    if not document.members or isinstance(stretch, Member):
        return name
    return f"{document.members[member_at(document, stretch.start)].name} {name}"


def _level(stretch: Member | Place | Section) -> int:
    return stretch.level if isinstance(stretch, Section) else int(not isinstance(stretch, Member))


def _found(passage: CitedPassage, longest: int = _LONGEST) -> FoundPassage:
    span = passage.span
    return FoundPassage(
        start=span.start,
        end=span.end,
        place=as_utf8(passage.place),
        text=as_utf8(passage.text[:longest]),
        score=passage.score,
        read=passage.read,
        kind=passage.kind,
    )


def _stretch(document: Document, at: Span | Member | Place | Section) -> dict[str, Any]:
    place = cited(document, Span(at.start, at.end))
    return {"start": at.start, "end": at.end, "place": as_utf8(place)}


def _ledger(document: Document, coverage: Coverage) -> LedgerReply:
    told: Iterable[str] = (ledger_line(asdict(coverage)), *loss_lines(document.losses))
    return LedgerReply(
        document=coverage.document,
        selected=coverage.selected,
        read=coverage.read,
        told=[*map(as_utf8, (*told, *document.notes))],
    )


def as_utf8(text: str) -> str:
    """Returns a text with `?` for what a broken file has and UTF-8 has not."""
    return text.encode("utf-8", "replace").decode()
