"""Tools for programs and agents: an answer, passages, an outline, each with the coverage.

`http_api` and `mcp` serve these tools over HTTP and MCP. Replies are limited in size and in UTF-8.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from inspect import Parameter, getdoc, signature
from typing import Annotated, Any

from pydantic import BaseModel, Field, model_validator

from leporello.core.calls.answers import Certainty
from leporello.core.coverage import ledger_line, loss_lines
from leporello.core.files import in_utf8
from leporello.core.members import member_at
from leporello.core.records import Coverage, Document, Member, Place, Section, Span
from leporello.engine.progress import Listener
from leporello.runs.answer import CitedPassage, Cost
from leporello.runs.ask import Session
from leporello.text.headings import headings
from leporello.text.outline import cited

# A passage may be a complete book, and the context of an agent is small.
_LONGEST = 4_000  # characters of a passage
_PIECE = 20_000  # characters of a requested range

Question = Annotated[str, Field(description="A self-contained question.", max_length=10_000)]
Most = Annotated[int, Field(description="Maximum number of passages.", ge=1, le=50)]
Start = Annotated[int, Field(description="First character of a range to read.", ge=0)]
End = Annotated[int, Field(description="End of the range (exclusive); 0 for no range.", ge=0)]
Like = Annotated[str, Field(description="Text that names must contain.", max_length=1_000)]
Entries = Annotated[int, Field(description="Maximum number of entries.", ge=1, le=2_000)]


class Reply(BaseModel):
    """Data for HTTP and MCP, whose JSON must be UTF-8; files with broken encodings are not."""

    @model_validator(mode="before")
    @classmethod
    def _in_utf8(cls, fields: Any) -> Any:  # noqa: ANN401 -- as pydantic
        return in_utf8(fields)


class Stretch(Reply):
    """A range of characters in the document, and its place."""

    start: int = Field(description="First character, starting at 0.")
    end: int = Field(description="End of the range (exclusive).")
    place: str = Field(description="Page, heading, cell or time, such as `report.pdf p. 14`.")


class FoundPassage(Stretch):
    """A passage of the document."""

    text: str = Field(description=f"Its text, at most {_LONGEST:,} characters if retrieved.")
    score: float = Field(description="Score of the retriever; higher is better.")
    read: bool = Field(description="Whether the reader saw any of it.")
    kind: str = Field(description="Origin of the text: verbatim, summary, context.")


class LedgerReply(Reply):
    """Coverage of the file: the reader can only answer from the text that it read."""

    document: int = Field(description="Characters of the document's text.")
    selected: int = Field(description="Characters of the passages.")
    read: int = Field(description="Characters that the reader saw.")
    told: list[str] = Field(description="The coverage in sentences, and content that is not text.")


class AnswerReply(Reply):
    """An answer with its sources."""

    answer: str = Field(description="The answer, or a sentence that the document has none.")
    found: bool = Field(description="Whether the document has an answer, according to the reader.")
    certainty: Certainty | None = Field(
        description="Confidence in a word: sure, likely, unsure; null if the reader returns none."
    )
    stands: list[Stretch] = Field(description="Sources of the copied answer, best first.")
    passages: list[FoundPassage] = Field(description="Retrieved passages, best first.")
    more_passages: int = Field(description="Number of passages that are not shown.")
    notes: list[str] = Field(description="Notes of the stages, such as an empty result.")
    cost: Cost = Field(description="Cost of the reads.")
    ledger: LedgerReply


class PassagesReply(Reply):
    """Passages that no model has read."""

    passages: list[FoundPassage] = Field(description="Passages, best first.")
    more_passages: int = Field(description="Number of passages that are not shown.")
    ledger: LedgerReply


class OutlineEntry(Stretch):
    """A file, a heading or another place of the document."""

    name: str
    level: int = Field(description="Depth: 0 for a file, 1 for its top headings.")


class OutlineReply(Reply):
    """Outline of the document."""

    name: str = Field(description="Name of the document.")
    entries: list[OutlineEntry] = Field(description="Files, headings or pages, in order.")
    more_entries: int = Field(description="Number of entries that are not shown.")
    ledger: LedgerReply


def ask(session: Session, question: Question, most: Most = 5) -> AnswerReply:
    """Answers one question about the document."""
    [answer] = session.answers([question], Listener())
    document = answer.document
    return AnswerReply(
        answer=answer.told,
        found=answer.found,
        certainty=answer.certainty,
        stands=[Stretch(**_range_fields(document, span)) for span in answer.spans[:most]],
        passages=[*map(_found_passage, answer.passages[:most])],
        more_passages=max(0, len(answer.passages) - most),
        notes=[*answer.notes],
        cost=answer.cost,
        ledger=_ledger(document, answer.coverage),
    )


def passages(
    session: Session, question: Question = "", start: Start = 0, end: End = 0, most: Most = 5
) -> PassagesReply:
    """Finds the passages that are relevant to a question, or returns a range of the document.

    No model is used. Take `start` and `end` from `outline` or from another passage.
    """
    document = session.document
    if end > start:
        span = Span(min(start, len(document.text)), min(end, start + _PIECE, len(document.text)))
        text = document.text[span.start : span.end]
        hits: Sequence[CitedPassage] = [CitedPassage(span, text, 0.0, cited(document, span), True)]
        coverage, longest = Coverage.of(len(document.text), document.losses, [span], [span]), _PIECE
    else:
        (hits, coverage), longest = session.select(question), _LONGEST
    return PassagesReply(
        passages=[_found_passage(passage, longest) for passage in hits[:most]],
        more_passages=max(0, len(hits) - most),
        ledger=_ledger(document, coverage),
    )


def outline(session: Session, like: Like = "", most: Entries = 200) -> OutlineReply:
    """Lists the document's files and headings, or its pages, with their start and end."""
    document = session.document
    # Pages are listed only without headings, or if the caller searches for names.
    entries = document.sections or document.places or headings(document)
    pages = document.places if like and document.sections else ()
    items = (*document.members, *entries, *pages)
    pairs = [(name_of(document, item), item) for item in items]
    matches = [(name, item) for name, item in pairs if like.casefold() in name.casefold()]
    matches.sort(key=lambda pair: (pair[1].start, -pair[1].end))
    return OutlineReply(
        name=document.id,
        entries=[
            OutlineEntry(**_range_fields(document, item), name=name, level=_level(item))
            for name, item in matches[:most]
        ],
        more_entries=max(0, len(matches) - most),
        ledger=_ledger(document, Coverage.of(len(document.text), document.losses, (), ())),
    )


# Their signatures are the schemas of HTTP and MCP, so both have the same tools (decision 43).
TOOLS: tuple[Callable[..., BaseModel], ...] = (ask, passages, outline)


def parameters_of(tool: Callable[..., BaseModel]) -> list[Parameter]:
    """Returns a tool's parameters except the conversation, with their annotations."""
    return [*signature(tool, eval_str=True).parameters.values()][1:]


def purpose_of(tool: Callable[..., BaseModel]) -> str:
    """Returns the description of a tool from its docstring."""
    return getdoc(tool) or ""


def name_of(document: Document, item: Member | Place | Section) -> str:
    """Returns the name of a file, heading or place; in a collection, with the file's name."""
    name = item.title if isinstance(item, Section) else item.name
    if not document.members or isinstance(item, Member):
        return name
    return f"{document.members[member_at(document, item.start)].name} {name}"


def _level(item: Member | Place | Section) -> int:
    return item.level if isinstance(item, Section) else int(not isinstance(item, Member))


def _found_passage(passage: CitedPassage, longest: int = _LONGEST) -> FoundPassage:
    span = passage.span
    return FoundPassage(
        start=span.start,
        end=span.end,
        place=passage.place,
        text=passage.text[:longest],
        score=passage.score,
        read=passage.read,
        kind=passage.kind,
    )


def _range_fields(document: Document, item: Span | Member | Place | Section) -> dict[str, Any]:
    place = cited(document, Span(item.start, item.end))
    return {"start": item.start, "end": item.end, "place": place}


def _ledger(document: Document, coverage: Coverage) -> LedgerReply:
    sentences: Iterable[str] = (ledger_line(asdict(coverage)), *loss_lines(document.losses))
    return LedgerReply(
        document=coverage.document,
        selected=coverage.selected,
        read=coverage.read,
        told=[*sentences, *document.notes],
    )
