"""A question to one's own file, of any length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from leporello.cache.store import Cache
from leporello.config import Pipeline, load_config
from leporello.core.errors import UserError
from leporello.core.items import Item, items_of
from leporello.core.records import JSON, Coverage, Document, Example, Span
from leporello.engine.combining import ActiveCombiners
from leporello.engine.engine import Engine
from leporello.engine.journal.journal import FinishedExample, Journal, ShardRow, finished_in
from leporello.engine.journal.serialization import prediction_from_row
from leporello.engine.limits import Limits
from leporello.engine.progress import Progress, ProgressListener
from leporello.engine.reading import WindowReader
from leporello.engine.selection import select_document
from leporello.jobs.jobs import check_files
from leporello.loaders import load
from leporello.models.locate import cache_directory
from leporello.storage import to_path
from leporello.text.english.language import looks_english
from leporello.text.outline import place_of_span

__all__ = ["Answer", "Passage", "ask"]


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage that was selected for the question.

    Attributes:
        span: Characters of the document's text that it consists of.
        text: Text of those characters.
        score: The retriever's score; higher is better.
        place: Page, cue or heading of the passage, where the document has any: `page 3 to page 4`.
        read: Whether the reader saw any of it.
    """

    span: Span
    text: str
    score: float
    place: str
    read: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """What `ask` found.

    Attributes:
        text: The answer.
        passages: Passages that were selected, best first.
        coverage: Shares of the document that were selected and read.
        document: The document as it was loaded.
        notes: Notes of the stages: that they fell back on something, or found nothing.
        spans: Spans of the document where the answer stands, best first, if the reader copied it
            from there.
        items: Items of which the answer is made, with their passages; None if it is made of none.
    """

    text: str
    passages: tuple[Passage, ...]
    coverage: Coverage
    document: Document
    notes: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    items: tuple[Item, ...] | None = None


def ask(
    file: Path,
    question: str,
    *,
    pipeline: str = "",
    config: Sequence[Path] = (),
    overrides: Sequence[str] = (),
    cached: bool = True,
) -> Answer:
    """Asks one question of one document.

    Args:
        file: A txt, md, srt, vtt, html or pdf; or its URL.
        question: The question; may be empty for pipelines that summarise.
        pipeline: Name of the pipeline; the default one if empty.
        config: The user's own files, laid over the built-in one.
        overrides: Settings as those of `--set`; they must not sweep.
        cached: Whether to use and fill the cache: a second question on a file is answered sooner.

    Raises:
        UserError: A mistake of the user's, or a stage that failed, with its reason.
    """
    names = [pipeline] if pipeline else []
    loaded = load_config(config, overrides, names)
    points = loaded.select(names)
    if len(points) > 1:
        name = pipeline or loaded.default_pipeline
        raise UserError(f"ask takes one pipeline, and {name!r} is {len(points)}: name one of them")
    check_files(points)
    document = load(to_path(file))
    if not document.text.strip():
        raise UserError(f"{file}: holds no text")
    example = Example("question", document, question=question)
    stages = points[0].build()
    finished = _answered(stages, example, Cache(cache_directory()) if cached else None)
    prediction = prediction_from_row(finished.row.prediction or {})
    passages = [
        _passage(document, Span(start, end), score, prediction.read)
        for start, end, score in prediction.hits
    ]
    return Answer(
        prediction.prediction,
        tuple(passages),
        prediction.coverage,
        document,
        notes=(*_language(stages.reader, document), *finished.row.notes),
        spans=_spans(finished, prediction.raw),
        items=items_of(prediction.raw),
    )


def _language(reader: object, document: Document) -> Iterator[str]:
    """Yields a note if the reader says that it reads English, and the document does not look so."""
    if getattr(reader, "language", "") == "en" and not looks_english(document.text):
        yield (
            "the document does not look English, and the reader knows nothing else: name another"
            " one with --model or --pipeline (`list pipelines`)"
        )


def _answered(stages: Pipeline, example: Example, cache: Cache | None) -> FinishedExample:
    """Runs one example through the engine, leaving no run behind."""
    if cache:
        example.document.use_cache(cache)
    with (
        TemporaryDirectory() as folder,
        Progress(f"asking {example.document.id}", 1) as progress,
    ):
        journal = Journal(Path(folder) / "journal.jsonl")
        journal.begin(ShardRow(0, 0, 1, ""))
        reader, combiners = WindowReader(stages.reader, cache), ActiveCombiners(stages)
        engine = Engine(journal, reader, combiners, Limits(), ProgressListener(progress))
        engine.add_document(0, [example], select_document(stages, [example], None).selections)
        engine.finish()
        journal.close()
        [finished] = finished_in(journal.path)
    if failure := finished.row.failure:
        raise UserError(f"the {failure['stage']} failed: {failure['error']}")
    return finished


def _passage(document: Document, span: Span, score: float, read: Sequence[Span]) -> Passage:
    seen = any(r.start < span.end and span.start < r.end for r in read)
    text = document.text[span.start : span.end]
    return Passage(span, text, score, place_of_span(document, span), seen)


def _spans(finished: FinishedExample, raw: JSON) -> tuple[Span, ...]:
    """Returns where the outputs stand that say what the combiner returned, the surest first."""
    same = [o for o in finished.outputs if o["span"] is not None and o["text"] == raw]
    ranked = sorted(same, key=lambda output: -(output["score"] or 0.0))
    return tuple(dict.fromkeys(Span(*output["span"]) for output in ranked))
