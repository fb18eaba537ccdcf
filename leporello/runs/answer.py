"""What was found for a question: the answer, its passages with their places, ledger and cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from leporello.core.calls.answers import Item
from leporello.core.coverage import ledger_line, loss_lines
from leporello.core.records import JSON, Coverage, Document, Span
from leporello.core.table import ResultTable, frame, html
from leporello.text.answers import unanswerable
from leporello.text.outline import cited
from leporello.text.typed.parse import leaves

if TYPE_CHECKING:
    from pandas import DataFrame

_EXCERPT = 300  # characters of a passage in a notebook


@dataclass(frozen=True, slots=True)
class CitedPassage:
    """A passage that was selected for the question.

    Attributes:
        span: Characters of the document's text that it consists of, or stands for: from the first
            to the last.
        text: Text that a reader is given: those characters, or what was made of them.
        score: The retriever's score; higher is better.
        place: Place of the passage as a person looks it up: `report.pdf p. 3 to p. 4`.
        read: Whether the reader saw any of it.
        kind: How it came about: `verbatim`, `summary`, `context`.
    """

    span: Span
    text: str
    score: float
    place: str
    read: bool
    kind: str = "verbatim"


@dataclass(frozen=True, slots=True)
class Cost:
    """What the reads of an answer took when they were read; kept ones cost nothing again.

    Attributes:
        reads: Number of inputs that were read.
        input_tokens: Number of tokens read, as the model counts them; 0 where the reader has none.
        output_tokens: Number of tokens written, likewise.
        dollars: Price in dollars, where the reader pays and knows the prices.
    """

    reads: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = None


@dataclass(frozen=True, slots=True)
class TypedValue:
    """An answer as the value of its type.

    Attributes:
        value: The value; None where the document does not say.
        spans: Spans where its parts stand, by JSON Pointer; that of a plain value is empty.
        confidence: Probability that it is right; None where no reader gives one.
    """

    value: JSON
    spans: Mapping[str, Span]
    confidence: float | None = None


def typed_value(raw: JSON, confidence: float | None = None) -> TypedValue | None:
    """Returns the value of what the engine delivers of a typed answer; None of anything else."""
    if not isinstance(raw, dict) or not isinstance(spans := raw.get("spans"), dict):
        return None
    found = {
        pointer: Span(start, end)
        for pointer, pair in spans.items()
        if isinstance(pair, list)
        for start, end in [pair]
        if isinstance(start, int) and isinstance(end, int)
    }
    return TypedValue(raw.get("value"), found, confidence)


@dataclass(frozen=True, slots=True)
class Answer:
    """What `ask` found.

    Attributes:
        question: The question as it was asked of the document.
        text: The answer.
        passages: Passages that were selected, best first.
        coverage: Shares of the document that were selected and read.
        document: The document as it was loaded.
        notes: Notes of the stages: that they fell back on something, or found nothing.
        spans: Spans of the document where the answer stands, best first, if the reader copied it
            from there.
        items: Items of which the answer is made, with their passages; None if it is made of none.
        cost: What reading took.
        typed: The answer as a value, where a type was asked for.
    """

    question: str
    text: str
    passages: tuple[CitedPassage, ...]
    coverage: Coverage
    document: Document
    notes: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    items: tuple[Item, ...] | None = None
    cost: Cost = Cost()
    typed: TypedValue | None = None

    @property
    def found(self) -> bool:
        """Whether the document says so, as far as the reader knows."""
        return bool(unanswerable(self.text, ""))

    @property
    def told(self) -> str:
        """The answer in words, also where there is none."""
        return self.text if self.found else "The document does not say so."

    def row(self) -> dict[str, Any]:
        """Returns all of it as JSON has it, with a place beside each span."""
        losses = [asdict(loss) for loss in self.document.losses]
        return {
            "question": self.question,
            "answer": self.text,
            **self._typed_row(),
            "passages": [asdict(passage) for passage in self.passages],
            "coverage": asdict(self.coverage),
            "cost": asdict(self.cost),
            "notes": [*self.notes],
            "spans": [*map(self._placed, self.spans)],
            "losses": losses,
            "items": [
                {"text": item.text, "passages": [*map(self._placed, item.passages)]}
                for item in self.items or ()
            ],
        }

    def _typed_row(self) -> dict[str, Any]:
        if self.typed is None:
            return {}
        values = {
            pointer: {"value": value, **(self._placed(span) if span else {})}
            for pointer, value in leaves(self.typed.value)
            for span in [self.typed.spans.get(pointer)]
        }
        confidence = self.typed.confidence
        return {"value": self.typed.value, "values": values, "confidence": confidence}

    def _placed(self, span: Span) -> dict[str, Any]:
        return {**asdict(span), "place": cited(self.document, span)}

    @property
    def ledger(self) -> tuple[str, ...]:
        """Lines that say what became of the whole file, and what of it is no text."""
        return (ledger_line(asdict(self.coverage)), *loss_lines(self.document.losses))

    def to_pandas(self) -> DataFrame:
        """Returns the passages, a row each.

        Raises:
            UserError: pandas is not installed.
        """
        rows = map(asdict, self.passages)
        return frame({**row.pop("span"), **row} for row in rows)

    def _repr_html_(self) -> str:
        """Returns what a notebook shows: the answer, its passages and the ledger."""
        rows = tuple(
            (p.place, f"{p.score:g}", "yes" if p.read else "no", p.text[:_EXCERPT])
            for p in self.passages
        )
        headers = ("place", "score", "read", "passage")
        title = f"{self.question} {self.told}".strip()
        return html([ResultTable(title, headers, rows, (*self.notes, *self.ledger))])
