"""Results of jobs for the report's browser: columns with a value per example, and details."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import Any, NamedTuple

from leporello.analysis.example_trace import ExampleTrace
from leporello.analysis.finished import FinishedJob
from leporello.analysis.funnel import TracedExample
from leporello.config import Pipeline
from leporello.core.coverage import ledger_line, loss_lines, merge
from leporello.core.errors import UserError
from leporello.core.protocols import RendersPrompt
from leporello.core.records import JSON, Document, Example, Span
from leporello.engine.results.finished import FinishedRow, prediction_from_row
from leporello.engine.results.serialization import read_from_row
from leporello.text.outline import place_of_span

_EXCERPT, _SHORTEST = 400, 60  # characters of a passage
_LONG = 4_000  # of predictions, references and questions
_OUTPUT, _LITERAL = 1_000, 1_000
_PASSAGES = 30  # passages per read
_PLENTY = 6_000  # characters of excerpts per example that allow showing all hits and reads
_SPANS = 200  # spans of a strip
_INPUT, _INPUTS = 20_000, 40_000  # characters of one exact input, and of all of an example


@dataclass
class JobColumns:
    """One pipeline on one task of a run; its columns have a value per example of the report."""

    job: FinishedJob
    label: str
    name: str  # short label in the report: `#1` for a point of a sweep
    scores: dict[str, list[float | None]] = field(default_factory=dict, init=False)  # by metric
    confidences: list[float | None] = field(default_factory=list, init=False)
    # The index in `STAGES` of the stage that lost the answer, `NOT_LOST` or `NO_PROOF`.
    lost: list[int] = field(default_factory=list, init=False)
    predictions: list[str] = field(default_factory=list, init=False)  # their beginnings
    states: list[int] = field(default_factory=list, init=False)
    traces: dict[str, ExampleTrace] = field(default_factory=dict, init=False)  # by example's id
    notes: list[str] = field(default_factory=list, init=False)  # reason why inputs are left out

    def add_inputs(self, detail: Mapping[str, Any], row: FinishedRow, example: Example) -> None:
        """Adds the exact inputs of the reads to the details of an example, up to a failure."""
        remaining = _INPUTS
        for shown, call in zip(detail["calls"], row.calls, strict=False):
            if remaining > 0 and (prompt := self._prompt(call, example)) is not None:
                shown["prompt"] = prompt
                remaining -= len(prompt)

    @cached_property
    def _stages(self) -> Pipeline | None:
        try:
            stages, changed = self.job.point.build(), self.job.changed_files()
        except UserError as error:
            self._leave_out(str(error))
            return None
        if changed:
            self._leave_out("a file of its stages has changed since the run")
        return None if changed else stages

    def _prompt(self, call: Mapping[str, Any], example: Example) -> str | None:
        reader = self._stages and self._stages.reader_of(call["role"])
        if not isinstance(reader, RendersPrompt):
            return None  # it reads the passages without a prompt
        try:
            text = reader.render(read_from_row(call, example.document))
        except Exception as error:  # a plug-in, or a model that is not on this machine
            self._leave_out(f"{type(error).__name__}: {error}")
            self._stages = None
            return None
        left_out, half = len(text) - _INPUT, _INPUT // 2
        if left_out <= 0:
            return text
        return f"{text[:half]}\n[… {left_out:,} characters left out …]\n{text[-half:]}"

    def _leave_out(self, reason: str) -> None:
        self.notes.append(f"{self.label} on {self.job.task}: exact inputs are left out: {reason}")


def cut(text: str, limit: int) -> str:
    """Returns a text; if it is too long, its beginning and the number of omitted characters."""
    return text if len(text) <= limit else f"{text[:limit]} [… {len(text) - limit:,} characters]"


class ExcerptLimits(NamedTuple):
    """Maximum numbers of hits and reads that are shown per example and job."""

    hits: int
    calls: int


@dataclass
class Detail:
    """Makes pieces of examples; excerpts of one document are shared within a piece."""

    characters: int  # maximum number of characters of excerpts per example
    documents: list[dict[str, Any]] = field(default_factory=list)  # of the current piece
    examples: list[JSON] = field(default_factory=list)  # examples of the current piece
    _indices: dict[str, int] = field(default_factory=dict)

    def add(self, traced: TracedExample, details: Sequence[dict[str, Any] | None]) -> None:
        """Adds an example with the details of its rows."""
        row: dict[str, Any] = {"id": traced.id, "jobs": [*details]}
        if traced.example is not None:
            row |= self._data_fields(traced.example, details)
        self.examples.append(row)

    def take_piece(self) -> dict[str, JSON]:
        """Returns the current piece, and starts another one."""
        piece: dict[str, JSON] = {"documents": [*self.documents], "examples": self.examples}
        self.documents, self.examples, self._indices = [], [], {}
        return piece

    def _data_fields(
        self, example: Example, details: Sequence[dict[str, Any] | None]
    ) -> dict[str, JSON]:
        index, document = self._document(example), example.document
        evidence = [(span.start, span.end) for span in example.evidence[:_PASSAGES]]
        excerpts = self.documents[index]["excerpts"]
        spans = [*evidence, *(span for detail in details if detail for span in _spans(detail))]
        new = (span for span in spans if f"{span[0]}-{span[1]}" not in excerpts)
        excerpts |= self._excerpts(document.text, new)
        self.documents[index]["places"] |= _places(example.document, spans, details)
        return {
            "question": cut(example.question, _LONG),
            "instruction": cut(example.instruction, _LONG),
            "choices": [cut(text, _OUTPUT) for text in example.choices],
            "references": [cut(text, _LONG) for text in example.references[:_PASSAGES]],
            "group": example.group,
            "fault": example.fault,
            "document": index,
            "evidence": [[*span] for span in evidence],
            "length": len(document.text),
        }

    @property
    def limits(self) -> ExcerptLimits:
        """Limits per example and job."""
        return ExcerptLimits(100, 30) if self.characters >= _PLENTY else ExcerptLimits(20, 8)

    def _excerpts(self, text: str, spans: Iterable[tuple[int, int]]) -> dict[str, str]:
        """Returns the beginnings of passages, by `start-end`."""
        distinct = [*islice(dict.fromkeys(spans), max(1, self.characters // _SHORTEST))]
        size = min(_EXCERPT, max(_SHORTEST, self.characters // max(1, len(distinct))))
        return {f"{start}-{end}": text[start : min(end, start + size)] for start, end in distinct}

    def _document(self, example: Example) -> int:
        document = example.document
        if document.sha256 not in self._indices:
            self._indices[document.sha256] = len(self.documents)
            title, losses = cut(document.title, _OUTPUT), loss_lines(document.losses)[:_PASSAGES]
            facts = {"id": document.id, "title": title, "length": len(document.text)}
            self.documents.append({**facts, "losses": losses, "excerpts": {}, "places": {}})
        return self._indices[document.sha256]


def job_detail(
    row: FinishedRow, scores: Mapping[str, float], lost_at: str, limits: ExcerptLimits
) -> dict[str, Any]:
    """Returns the results of one job for an example."""
    failure, prediction = row.failure, row.prediction
    fields: dict[str, Any] = {"scores": dict(scores), "lost_at": lost_at}
    if prediction is None:
        assert failure is not None
        lost = {"stage": failure["stage"], "error": cut(failure["error"], _LONG)}
        return {**fields, "calls": [], "hits": [], "passages": {}, "failure": lost}
    calls, hits = row.calls, prediction_from_row(prediction).hit_spans
    passages = {
        rank: {**p, "text": cut(p["text"], _LITERAL), "spans": p["spans"][:_SPANS]}
        for rank, p in prediction.get("passages", {}).items()
        if int(rank) < limits.hits
    }
    return {
        **fields,
        "prediction": cut(prediction["prediction"], _LONG),
        **_raw(prediction),
        "hits": prediction["hits"][: limits.hits],
        "passages": passages,
        "more_hits": max(0, len(prediction["hits"]) - limits.hits),
        "selected": _merged(chain.from_iterable(hits)),
        "read": prediction["read"][:_SPANS],
        "cited": _merged(
            Span(*call["output"]["span"]) for call in calls if call["output"].get("span")
        ),
        "coverage": prediction["coverage"],
        "ledger": ledger_line(prediction["coverage"]),
        "calls": [_call(call) for call in calls[: limits.calls]],
        "more_calls": max(0, len(calls) - limits.calls),
        "notes": [cut(note, _OUTPUT) for note in row.statistics.notes],
    }


def _merged(spans: Iterable[Span]) -> list[list[int]]:
    return [[span.start, span.end] for span in merge(spans)[:_SPANS]]


def _raw(prediction: Mapping[str, Any]) -> dict[str, str]:
    if prediction["raw"] == prediction["prediction"]:
        return {}
    return {"raw": cut(json.dumps(prediction["raw"], ensure_ascii=False), _LONG)}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    output, passages = call["output"], call["passages"]
    shown = [cut(p, _LITERAL) if isinstance(p, str) else p for p in passages[:_PASSAGES]]
    scores = {name: output[name] for name in ("score", "cut", "span") if output.get(name)}
    return {
        "round": call["round"],
        "question": cut(call["question"], _OUTPUT),
        "passages": shown,
        "more_passages": max(0, len(passages) - _PASSAGES),
        **({"error": cut(output["error"], _LONG)} if "error" in output else {}),
        "text": cut(output.get("text", ""), _OUTPUT),
        **scores,
    }


def _places(
    document: Document,
    passages: Iterable[tuple[int, int]],
    details: Sequence[Mapping[str, Any] | None],
) -> dict[str, str]:
    """Returns the known places of passages and cited answers, by `start-end`."""
    answers = (call["span"] for job in details if job for call in job["calls"] if "span" in call)
    spans = dict.fromkeys((start, end) for start, end in (*passages, *answers))
    places = ((span, place_of_span(document, Span(*span))) for span in spans)
    return {f"{start}-{end}": place for (start, end), place in places if place}


def _spans(detail: Mapping[str, Any]) -> Iterable[tuple[int, int]]:
    """Yields the passages whose text is shown; hits are first, best first."""
    for start, end, _ in detail["hits"]:
        yield start, end
    for passage in detail["passages"].values():
        yield from ((start, end) for start, end in passage["spans"])
    for call in detail["calls"]:
        for passage in call["passages"]:
            if not isinstance(passage, str):
                yield passage[0], passage[1]
