"""Data classes for the answer to a question: passages, places, coverage and cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from leporello.core.calls.answers import Certainty, Item, certainty, is_answer
from leporello.core.coverage import ledger_line, loss_lines
from leporello.core.records import JSON, Coverage, Document, Prediction, Span
from leporello.core.table import ResultTable, frame, html
from leporello.text.outline import cited
from leporello.text.typed.parse import leaves

if TYPE_CHECKING:
    from pandas import DataFrame

_EXCERPT = 300  # characters of a passage in a notebook


@dataclass(frozen=True, slots=True)
class CitedPassage:
    """A passage that was selected for the question.

    Attributes:
        span: Characters of the document that the passage quotes or represents.
        text: Text that a reader receives: those characters, or text that an enricher made of them.
        score: The retriever's score; higher is better.
        place: Place of the passage, such as `report.pdf p. 3 to p. 4`.
        read: Whether the reader saw any part of the passage.
        kind: Origin of the text: `verbatim`, `summary`, `context`.
    """

    span: Span
    text: str
    score: float
    place: str
    read: bool
    kind: str = "verbatim"


def cited_passages(document: Document, prediction: Prediction) -> Iterator[CitedPassage]:
    """Yields the passages that were selected for a prediction, best first."""
    spans = (*prediction.read, *prediction.stood_for)
    for rank, (start, end, score) in enumerate(prediction.hits):
        span, enriched = Span(start, end), prediction.passages.get(rank)
        read = any(part.overlaps(start, end) for part in spans)
        text, kind = (
            (enriched.text, enriched.kind) if enriched else (document.text[start:end], "verbatim")
        )
        yield CitedPassage(span, text, score, cited(document, span), read, kind)


@dataclass(frozen=True, slots=True)
class Cost:
    """Original cost of the reads of an answer, including reads that were cached and cost nothing.

    Attributes:
        reads: Number of reads.
        input_tokens: Number of input tokens; 0 if the reader counts none.
        output_tokens: Number of output tokens; 0 if the reader counts none.
        dollars: Price in dollars, if the reader has prices.
    """

    reads: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = None


@dataclass(frozen=True, slots=True)
class TypedValue:
    """An answer as the value of its type."""

    value: JSON  # the value; None if the document has no answer
    spans: Mapping[str, Span]  # of its parts, by JSON Pointer; that of a plain value is empty


def typed_value(raw: Mapping[str, Any]) -> TypedValue:
    """Returns the value of a typed answer as the engine returns it."""
    spans = {pointer: Span(start, end) for pointer, (start, end) in raw["spans"].items()}
    return TypedValue(raw["value"], spans)


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of `ask`.

    Attributes:
        question: The question, after a rewrite if it was a follow-up.
        text: The answer.
        passages: Passages that were selected, best first.
        coverage: Shares of the document that were selected and read.
        document: The loaded document.
        notes: Notes of the stages, such as a fallback or an empty result.
        spans: Spans from which the reader copied the answer, best first; empty if it did not.
        items: Items of the answer with their passages; None if the answer has no items.
        cost: Cost of the reads.
        typed: The answer as a value, if the question has a type.
        confidence: Probability that the answer is correct; None if no reader returns one.
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
    confidence: float | None = None

    @property
    def certainty(self) -> Certainty | None:
        """Confidence as a word; None without a confidence."""
        return None if self.confidence is None else certainty(self.confidence)

    @property
    def found(self) -> bool:
        """Whether the document has an answer, according to the reader."""
        return is_answer(self.text)

    @property
    def told(self) -> str:
        """The answer, or the sentence that the document has no answer."""
        return self.text if self.found else "The document does not say so."

    def row(self) -> dict[str, Any]:
        """Returns all fields as JSON values; each span has a place."""
        losses = [asdict(loss) for loss in self.document.losses]
        return {
            "question": self.question,
            "answer": self.text,
            "confidence": self.confidence,
            "certainty": self.certainty,
            **self._typed_row(),
            "passages": [asdict(passage) for passage in self.passages],
            "coverage": asdict(self.coverage),
            "cost": asdict(self.cost),
            "notes": [*self.notes],
            "spans": [*map(self._span_row, self.spans)],
            "losses": losses,
            "items": [
                {"text": item.text, "passages": [*map(self._span_row, item.passages)]}
                for item in self.items or ()
            ],
        }

    def _typed_row(self) -> dict[str, Any]:
        if self.typed is None:
            return {}
        values = {
            pointer: {"value": value, **(self._span_row(span) if span else {})}
            for pointer, value in leaves(self.typed.value)
            for span in [self.typed.spans.get(pointer)]
        }
        return {"value": self.typed.value, "values": values}

    def _span_row(self, span: Span) -> dict[str, Any]:
        return {**asdict(span), "place": cited(self.document, span)}

    @property
    def ledger(self) -> tuple[str, ...]:
        """Lines with the coverage of the file, and the content that is not text."""
        return (ledger_line(asdict(self.coverage)), *loss_lines(self.document.losses))

    def to_pandas(self) -> DataFrame:
        """Returns a table with one row per passage.

        Raises:
            UserError: pandas is not installed.
        """
        rows = map(asdict, self.passages)
        return frame({**row.pop("span"), **row} for row in rows)

    def _repr_html_(self) -> str:
        """Returns HTML for notebooks: the answer, its passages and the coverage."""
        rows = tuple(
            (p.place, f"{p.score:g}", "yes" if p.read else "no", p.text[:_EXCERPT])
            for p in self.passages
        )
        headers = ("place", "score", "read", "passage")
        title = f"{self.question} {self.told}".strip() + (
            f" ({self.certainty})" if self.certainty else ""
        )
        return html(ResultTable(title, headers, rows, (*self.notes, *self.ledger)))
