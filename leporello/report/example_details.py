"""Results of jobs for the report's browser: columns with a value per example, and details."""

import gzip
import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

from leporello.analysis.example_trace import STAGES, ExampleTrace
from leporello.analysis.explain import exact_prompt
from leporello.analysis.finished import FinishedJob
from leporello.analysis.funnel import TracedExample
from leporello.config import Pipeline
from leporello.core.coverage import ledger_line, loss_lines, merge
from leporello.core.errors import UserError
from leporello.core.records import JSON, Document, Example, Span
from leporello.engine.results.finished import FinishedRow, prediction_from_row
from leporello.metrics import Metric
from leporello.text.outline import place_of_span

_EXCERPT, _SHORTEST = 400, 60  # characters of a passage
_TEXT, _ITEMS = 2_000, 100  # characters of any other text, entries of a list
_CALLS = 20  # reads per example
_INPUT, _INPUTS = 20_000, 40_000  # characters of one exact input, and of all of an example
SHORT = 80  # characters of questions and predictions in a list
_ABSENT, _DONE, _FAILED = 0, 1, 2
NOT_LOST, NO_PROOF = -1, -2
"""Values in place of the stage that lost an answer."""


def packed(value: JSON) -> str:
    """Returns JSON in a form that is safe in HTML: ASCII, compressed, base64."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    # Without a time stamp, so that equal reports have equal bytes.
    return b64encode(gzip.compress(text.encode("ascii"), 6, mtime=0)).decode("ascii")


@dataclass
class JobColumns:
    """One pipeline on one task of a run; its columns have a value per example of the report."""

    job: FinishedJob
    label: str
    name: str  # short label in the report: `#1` for a point of a sweep
    scores: dict[str, list[float | None]] = field(default_factory=dict, init=False)  # by metric
    confidences: list[float | None] = field(default_factory=list, init=False)
    predictions: list[str] = field(default_factory=list, init=False)  # their beginnings
    states: list[int] = field(default_factory=list, init=False)
    traces: list[ExampleTrace | None] = field(default_factory=list, init=False)
    notes: list[str] = field(default_factory=list, init=False)  # reason why inputs are left out

    @cached_property
    def lost(self) -> list[int]:
        """The index in `STAGES` of the stage that lost each answer, `NOT_LOST` or `NO_PROOF`."""
        proofs = (NOT_LOST if trace and trace.gold else NO_PROOF for trace in self.traces)
        stages = map(_lost_at, self.traces)
        return [STAGES.index(s) if s else proof for s, proof in zip(stages, proofs, strict=True)]

    def add(
        self, row: FinishedRow | None, trace: ExampleTrace | None, metrics: Mapping[str, Metric]
    ) -> dict[str, float]:
        """Adds the results of an example to the columns; returns its scores by metric."""
        statistics = row.statistics.statistics if row else {}
        scores = {
            name: round(metric.score(of_metric), 4)
            for name, metric in metrics.items()
            if (of_metric := statistics.get(name)) is not None
        }
        for name in metrics:
            self.scores.setdefault(name, []).append(scores.get(name))
        is_answered = row is not None and not row.statistics.abstained
        self.confidences.append(row.statistics.confidence if row and is_answered else None)
        prediction = row.prediction if row else None
        self.predictions.append(prediction["prediction"][:SHORT] if prediction else "")
        self.states.append(_ABSENT if row is None else _DONE if prediction else _FAILED)
        self.traces.append(trace)
        return scores

    def add_inputs(self, detail: Mapping[str, Any], row: FinishedRow, example: Example) -> None:
        """Adds the exact inputs of the reads to the details of an example, up to a failure."""
        remaining = 0 if self.notes else _INPUTS
        try:
            for shown, call in zip(detail["calls"], row.calls, strict=False):
                if (
                    remaining > 0
                    and (text := exact_prompt(self._stages, example, call)) is not None
                ):
                    shown["prompt"] = _without_middle(text)
                    remaining -= len(shown["prompt"])
        except Exception as error:  # a plug-in, or a model that is not on this machine
            reason = f"{type(error).__name__}: {error}"
            reason = str(error) if isinstance(error, UserError) else reason
            name = f"{self.label} on {self.job.task}"
            self.notes.append(f"{name}: exact inputs are left out: {reason}")

    @cached_property
    def _stages(self) -> Pipeline:
        if self.job.changed_files():
            raise UserError("a file of its stages has changed since the run")
        return self.job.point.build()


def _without_middle(text: str) -> str:
    left_out, half = len(text) - _INPUT, _INPUT // 2
    if left_out <= 0:
        return text
    return f"{text[:half]}\n[… {left_out:,} characters left out …]\n{text[-half:]}"


def shortened(value: Any) -> Any:  # noqa: ANN401 -- any JSON
    """Returns JSON with the beginnings of long texts and lists; spans become lists."""
    if isinstance(value, str) and len(value) > _TEXT:
        return f"{value[:_TEXT]} [… {len(value) - _TEXT:,} characters]"
    if isinstance(value, Span):
        return [value.start, value.end]
    if isinstance(value, Mapping):
        return {key: shortened(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [shortened(inner) for inner in value[:_ITEMS]]
    return value


@dataclass
class Piece:
    """Details of a hundred examples, which share the excerpts of their documents."""

    characters: int  # maximum number of characters of excerpts per example
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)  # by SHA-256
    examples: list[JSON] = field(default_factory=list)

    def packed(self) -> str:
        """Returns the piece in a form that is safe in HTML."""
        return packed({"documents": [*self.documents.values()], "examples": self.examples})

    def add(self, traced: TracedExample, details: Sequence[Mapping[str, Any] | None]) -> None:
        """Adds an example with the details of its jobs."""
        row: dict[str, Any] = {"id": traced.id, "jobs": [*details]}
        if traced.example is not None:
            row |= self._data_fields(traced.example, [*filter(None, details)])
        self.examples.append(row)

    def _data_fields(
        self, example: Example, details: Sequence[Mapping[str, Any]]
    ) -> dict[str, JSON]:
        document = example.document
        shown = self.documents.setdefault(document.sha256, _document_fields(document))
        evidence = [(span.start, span.end) for span in example.evidence]
        spans = dict.fromkeys([*evidence, *chain.from_iterable(map(_spans, details))])
        new = [span for span in spans if _key(span) not in shown["excerpts"]]
        shown["excerpts"] |= self._excerpts(document.text, new)
        places = ((span, place_of_span(document, Span(*span))) for span in new)
        shown["places"] |= {_key(span): place for span, place in places if place}
        fields: dict[str, JSON] = shortened({
            "question": example.question,
            "instruction": example.instruction,
            "choices": example.choices,
            "references": example.references,
            "group": example.group,
            "fault": example.fault,
            "document": [*self.documents].index(document.sha256),
            "evidence": evidence,
            "length": len(document.text),
        })  # fmt: skip
        return fields

    def _excerpts(self, text: str, spans: Sequence[tuple[int, int]]) -> dict[str, str]:
        """Returns the beginnings of passages, by `start-end`."""
        shown = spans[: max(1, self.characters // _SHORTEST)]
        size = min(_EXCERPT, max(_SHORTEST, self.characters // max(1, len(shown))))
        return {_key((start, end)): text[start : min(end, start + size)] for start, end in shown}


def _key(span: tuple[int, int]) -> str:
    return f"{span[0]}-{span[1]}"


def _document_fields(document: Document) -> dict[str, Any]:
    facts = {"id": document.id, "title": document.title, "length": len(document.text)}
    fields = {**facts, "losses": loss_lines(document.losses), "excerpts": {}, "places": {}}
    shown: dict[str, Any] = shortened(fields)
    return shown


def job_detail(
    row: FinishedRow, scores: Mapping[str, float], trace: ExampleTrace | None
) -> dict[str, Any]:
    """Returns the results of one job for an example."""
    failure, prediction = row.failure, row.prediction
    fields = {"scores": scores, "lost_at": _lost_at(trace), "calls": [], "hits": [], "passages": {}}
    if prediction is None:
        assert failure is not None
        lost = {"stage": failure["stage"], "error": shortened(failure["error"])}
        return {**fields, "failure": lost}
    calls, raw = row.calls, prediction["raw"]
    cited = [Span(*call["output"]["span"]) for call in calls if call["output"].get("span")]
    results: dict[str, Any] = shortened({
        "prediction": prediction["prediction"],
        "raw": "" if raw == prediction["prediction"] else json.dumps(raw, ensure_ascii=False),
        "hits": prediction["hits"],
        "passages": prediction.get("passages", {}),
        "selected": merge(chain.from_iterable(prediction_from_row(prediction).hit_spans)),
        "read": prediction["read"],
        "cited": merge(cited),
        "coverage": prediction["coverage"],
        "ledger": ledger_line(prediction["coverage"]),
        "calls": [*map(_call, calls[:_CALLS])],
        "more_hits": max(0, len(prediction["hits"]) - _ITEMS),
        "more_calls": max(0, len(calls) - _CALLS),
        "notes": row.statistics.notes,
    })  # fmt: skip
    return fields | results


def _lost_at(trace: ExampleTrace | None) -> str:
    # Without the proof, a reader may still know the answer or find it elsewhere.
    return trace.lost_at if trace and not trace.answered else ""


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    output = call["output"]
    return {
        **{name: call[name] for name in ("round", "question", "passages")},
        "more_passages": max(0, len(call["passages"]) - _ITEMS),
        **{n: output[n] for n in ("text", "error", "score", "cut", "span") if output.get(n)},
    }


def _spans(detail: Mapping[str, Any]) -> Iterable[tuple[int, int]]:
    """Yields the passages and answers whose text is shown; hits are first, best first."""
    for start, end, _ in detail["hits"]:
        yield start, end
    for passage in detail["passages"].values():
        yield from ((start, end) for start, end in passage["spans"])
    for call in detail["calls"]:
        for place in (*call["passages"], *([call["span"]] if "span" in call else ())):
            if not isinstance(place, str):
                yield place[0], place[1]
