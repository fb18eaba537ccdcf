"""Questions to one's own files, of any length: one, or a conversation with all kept warm."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from leporello.cache.store import Cache, warn_of_reuse
from leporello.config import Config, Pipeline, load_config, loader_of
from leporello.config.loading import check_files
from leporello.core.calls.answers import items_of
from leporello.core.errors import UserError
from leporello.core.members import member_document
from leporello.core.notes import collect_notes
from leporello.core.passages import spans_of
from leporello.core.records import JSON, Coverage, Document, Example, Output, Prediction, Read, Span
from leporello.engine.combining import CombinerRunner
from leporello.engine.enriching import EnricherRunner
from leporello.engine.failures import ExampleError
from leporello.engine.progress import Listener, Progress, ProgressListener
from leporello.engine.reading import BatchReaders
from leporello.engine.results.finished import FinishedExample, cost_of
from leporello.engine.results.serialization import prediction_of
from leporello.engine.rounds import Rounds, rounds
from leporello.engine.selection import document_chunks, select_document
from leporello.engine.store import MemoryStore
from leporello.jobs.options import AskOptions
from leporello.loaders.collection import load_collection
from leporello.loaders.files import load
from leporello.models.locate import cache_directory
from leporello.runs.answer import Answer, CitedPassage, Cost, typed_value
from leporello.storage import to_path
from leporello.storage.paths import is_collection, is_there
from leporello.text.looks import looks_english
from leporello.text.outline import cited

__all__ = ["Answer", "AskSettings", "CitedPassage", "Session", "ask"]

_BEFORE = 3  # questions that a follow-up is understood by
_LONGEST = 200  # characters that one grows by at most: a model that goes on has answered it
_FOLLOW_UP = (
    "Rewrite the last question so that it can be understood without those before it: put names"
    " where it has pronouns. Write the question alone; where nothing is missing, repeat it."
)
_NOT_UNDERSTOOD = (
    "the model could not say what the question means after those before it: it was asked as it is"
)


@dataclass(frozen=True)
class AskSettings(AskOptions):
    """How questions are answered: the options of `ask`, and what they build."""

    def loaded(self, model: str = "") -> Config:
        """Returns the config; takes and raises what `build` does."""
        options = replace(self, model=model or self.model)
        names = [self.pipeline] if self.pipeline else []
        return load_config(self.config, options.settings, names)

    def build(self, model: str = "") -> Pipeline:
        """Returns the stages.

        Args:
            model: What reads, as `leporello.models.naming` has it; the pipeline's own if empty.

        Raises:
            UserError: A mistake in the files or settings, or several pipelines.
        """
        loaded = self.loaded(model)
        points = loaded.select([self.pipeline] if self.pipeline else [])
        if len(points) > 1:
            name = self.pipeline or loaded.default_pipeline
            raise UserError(
                f"ask takes one pipeline, and {name!r} is {len(points)}: name one of them"
            )
        check_files(points)
        return points[0].build()

    def document(self, files: Sequence[Path]) -> Document:
        """Loads files, as `Session.open` takes them.

        Raises:
            UserError: One cannot be read, or the loader is none.
        """
        known = {} if all(is_there(str(file)) for file in files) else self.loaded().collections
        named = [file for file in files if str(file) in known and not file.exists()]
        paths = [
            to_path(p) for file in files for p in (known[str(file)] if file in named else [file])
        ]
        cache = Cache(cache_directory()) if self.cached else None
        loader = loader_of(self.loader) if self.loader else None
        if named or is_collection(paths):
            return load_collection(paths, cache=cache, loader=loader)
        return load(paths[0], loader=loader)


@dataclass
class Session:
    """A conversation about one document; what is derived from it, and models, stay in memory.

    It answers one question at a time, whatever thread asks.

    Attributes:
        document: The document.
        settings: How questions are answered.
        stages: Stages of the pipeline.
        turns: Questions as they were put, and answers, the first first.
    """

    document: Document
    settings: AskSettings = AskSettings()
    stages: Pipeline = field(default=None)  # type: ignore[assignment]  # built where none is given
    turns: list[tuple[str, Answer]] = field(default_factory=list)
    _lock: AbstractContextManager[Any] = field(default_factory=threading.RLock, repr=False)

    def __post_init__(self) -> None:
        self.stages = self.stages or self.settings.build()
        self._cache = Cache(cache_directory()) if self.settings.cached else None
        if self._cache:
            self.document.use_cache(self._cache)
        self._readers = BatchReaders(self.stages, self._cache)

    @classmethod
    def open(cls, files: Sequence[Path], settings: AskSettings = AskSettings()) -> Session:
        """Returns a conversation about a file, a folder, or what lies at a URL; of several as one.

        The name of a collection in the config stands for what it names.

        Raises:
            UserError: A mistake of the user's.
        """
        stages = settings.build()  # told before a long file is read
        return cls(settings.document(files), settings, stages)

    def about(self, document: Document) -> Session:
        """Returns a new conversation about another document, with the same models."""
        return replace(self, document=document, turns=[])

    def each(self, question: str) -> Iterator[Answer]:
        """Yields the answer of each file of a collection, in order.

        Raises:
            UserError: As `ask`.
        """
        for session in self.by_file():
            yield session.ask(question)

    def by_file(self) -> Iterator[Session]:
        """Yields a conversation about each file of a collection, in order; else itself."""
        for number in range(len(self.document.members)):
            yield self.about(member_document(self.document, number))
        if not self.document.members:
            yield self

    def use_model(self, model: str) -> None:
        """Has another model read from here on.

        Raises:
            UserError: There is none, or the reader has no model.
        """
        self.stages = self.settings.build(model)
        self._readers = BatchReaders(self.stages, self._cache)

    @property
    def follows_up(self) -> bool:
        """Whether a question is understood by those before it, which a reader that writes does."""
        return bool(getattr(self.stages.reader, "generates", False))

    @cached_property
    def _english(self) -> bool:
        return looks_english(self.document.text)

    def ask(self, question: str, listener: Listener | None = None, schema: str = "") -> Answer:
        """Returns the answer to a question, or to what it means after those before it.

        Args:
            question: The question; may be empty for pipelines that summarise.
            listener: Listener that is told of each step; a bar is drawn without.
            schema: JSON Schema of the answer, as text; empty for any text.

        Raises:
            UserError: A mistake of the user's, or a stage that failed, with its reason.
        """
        with self._lock:
            alone = self._alone(question) if self.follows_up and self.turns else question
            [answer] = _all_answers(self.attempts([(alone or question, schema)], listener))
            if not alone:
                answer = replace(answer, notes=(_NOT_UNDERSTOOD, *answer.notes))
            self.turns.append((question, answer))
        return answer

    def answers(self, questions: Sequence[str], listener: Listener | None = None) -> list[Answer]:
        """Returns answers to questions that each stand alone, selected and read together.

        Args:
            questions: The questions; they are no part of the conversation.
            listener: Listener as that of `ask`.

        Raises:
            UserError: As `ask`; of the first question that has no answer.
        """
        return _all_answers(self.attempts([(question, "") for question in questions], listener))

    def attempts(
        self, asked: Sequence[tuple[str, str]], listener: Listener | None = None
    ) -> list[Answer | UserError]:
        """Returns answers to questions that each stand alone, or why there is none.

        Args:
            asked: Questions, each with the JSON Schema of its answer, or an empty text.
            listener: Listener as that of `ask`.

        Raises:
            UserError: A mistake of the user's.
        """
        with self._lock:
            examples = [
                Example(f"q{n}", self.document, question=question, schema=schema)
                for n, (question, schema) in enumerate(asked)
            ]
            finished = self._finished(examples, listener) if examples else []
            return [*map(self._answer, examples, finished)]

    def select(self, question: str) -> tuple[tuple[CitedPassage, ...], Coverage]:
        """Returns the passages that are selected for a question, best first, and the ledger.

        Raises:
            UserError: A mistake of the user's, or a stage that failed, with its reason.
        """
        document, example = self.document, Example("q", self.document, question=question)
        with self._lock:
            [selected] = select_document(self.stages, [example], None).selections
        if isinstance(selected, ExampleError):
            raise UserError(f"the {selected.stage} failed: {selected.message}")
        spans = [span for hit in selected.hits for span in spans_of(hit.chunk)]
        prediction = prediction_of(example, selected.hits, (), "")
        found = _passages(document, prediction)
        return tuple(found), Coverage.of(
            len(document.text), document.losses, spans, (), unchunked=selected.unchunked
        )

    def _alone(self, question: str) -> str:
        """Returns a follow-up as it is understood alone; nothing where the model cannot tell."""
        talk = [f"{answer.question}\n{answer.text}" for _, answer in self.turns[-_BEFORE:]]
        read = Read(("\n".join(talk),), f"{_FOLLOW_UP}\n{question}")
        [reply] = self._readers.answering.read([read])
        told = getattr(reply, "text", "").strip().partition("\n")[0].strip('"“” ')
        whole = told.endswith("?") or not question.endswith("?")  # else it was cut
        return told if whole and len(told) < len(question) + _LONGEST else ""

    def _answer(self, example: Example, finished: FinishedExample) -> Answer | UserError:
        document, prediction = self.document, finished.prediction
        if failure := finished.failure:
            told = f"the {failure.stage} failed: {failure.message}"
            return UserError(f"{example.question!r}: {told}" if example.id != "q0" else told)
        assert prediction is not None
        replies = [call.reply for call in finished.calls]
        return Answer(
            example.question,
            prediction.prediction,
            tuple(_passages(document, prediction)),
            prediction.coverage,
            document,
            notes=(*self._language(), *finished.notes),
            spans=_spans(finished, prediction.raw),
            typed=typed_value(prediction.raw, prediction.confidence) if example.schema else None,
            items=items_of(prediction.raw),
            cost=Cost(len(replies), **cost_of(replies)),
        )

    def _language(self) -> Iterator[str]:
        """Yields a note if the reader reads English, and the document does not look so."""
        if not self._english and getattr(self.stages.reader, "language", "") == "en":
            yield (
                "the document does not look English, and the reader knows nothing else: name"
                " another one with --model or --pipeline (`list pipelines`)"
            )

    def _finished(
        self, examples: Sequence[Example], listener: Listener | None
    ) -> list[FinishedExample]:
        """Runs examples, and keeps nothing of them."""
        with ExitStack() as stack:
            if listener is None:
                bar = stack.enter_context(Progress(f"asking {self.document.id}", len(examples)))
                listener = ProgressListener(bar)
            if self.stages.enricher is not None:
                self._prepare(examples[0], listener)
            runner = CombinerRunner(self.stages, rows=False)
            run = Rounds(runner, self._readers, MemoryStore(), listener=listener)
            finished = sorted(rounds(run, examples), key=lambda example: example.number)
            warn_of_reuse()
            return finished

    def _prepare(self, example: Example, listener: Listener) -> None:
        """Makes the passages of the document, which may take minutes, under the listener's eyes."""
        enricher = EnricherRunner(self.stages, self._readers, listener=listener)
        with suppress(ExampleError), collect_notes():  # selecting tells them of each question
            enricher.passages_of(document_chunks(self.stages.chunker, example))


def ask(
    file: Path,
    question: str,
    *,
    pipeline: str = "",
    config: Sequence[Path] = (),
    overrides: Sequence[str] = (),
    cached: bool = True,
) -> Answer:
    """Asks one question of one document; `Session` answers several.

    Args:
        file: A file of any kind that is read; or its URL.
        question: The question; may be empty for pipelines that summarise.
        pipeline: See `AskSettings`, as for all that follow.
        config: See there.
        overrides: See there.
        cached: See there.

    Raises:
        UserError: A mistake of the user's, or a stage that failed, with its reason.
    """
    settings = AskSettings(pipeline, config=config, overrides=overrides, cached=cached)
    return Session.open([file], settings).ask(question)


def _all_answers(attempts: Sequence[Answer | UserError]) -> list[Answer]:
    """Returns answers; raises the first error there is instead."""
    answers = []
    for attempt in attempts:
        if isinstance(attempt, UserError):
            raise attempt
        answers.append(attempt)
    return answers


def _passages(document: Document, prediction: Prediction) -> Iterator[CitedPassage]:
    seen = (*prediction.read, *prediction.stood_for)
    for rank, (start, end, score) in enumerate(prediction.hits):
        span, made = Span(start, end), prediction.passages.get(rank)
        read = any(r.start < end and start < r.end for r in seen)
        text, kind = (made.text, made.kind) if made else (document.text[start:end], "verbatim")
        yield CitedPassage(span, text, score, cited(document, span), read, kind)


def _spans(finished: FinishedExample, raw: JSON) -> tuple[Span, ...]:
    """Returns the spans of the outputs that are the combiner's answer, the surest first."""
    if isinstance(raw, dict) and (typed := typed_value(raw)):
        return tuple(dict.fromkeys(typed.spans.values()))
    outputs = [call.reply for call in finished.calls if isinstance(call.reply, Output)]
    same = [output for output in outputs if output.span is not None and output.text == raw]
    ranked = sorted(same, key=lambda output: -(output.score or 0.0))
    return tuple(dict.fromkeys(output.span for output in ranked if output.span))
