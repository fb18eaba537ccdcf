"""Answers questions about files: one question, or a conversation with everything in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from leporello.cache.dependencies import warn_of_reuse
from leporello.cache.store import Cache
from leporello.config import Config, Pipeline, load_config, loader_of
from leporello.config.loading import check_files
from leporello.core.calls.answers import as_text, items_of
from leporello.core.errors import UserError, check_list
from leporello.core.files import cache_directory
from leporello.core.members import member_document
from leporello.core.records import JSON, Coverage, Document, Example, Read, Span
from leporello.engine.failures import ExampleError
from leporello.engine.progress import Listener, Progress
from leporello.engine.reading import BatchReaders
from leporello.engine.results.finished import FinishedRow, prediction_from_row, prediction_of
from leporello.engine.rounds import Rounds
from leporello.engine.selection import select_document
from leporello.engine.store import MemoryStore
from leporello.jobs.options import AskOptions
from leporello.loaders.collection import find_sources, load_collection
from leporello.loaders.files import load, read_bytes
from leporello.runs.answer import Answer, CitedPassage, Cost, cited_passages, typed_value
from leporello.storage import to_path
from leporello.storage.paths import is_collection, is_there
from leporello.text.looks import looks_english

__all__ = ["Answer", "AskSettings", "CitedPassage", "Session", "ask"]

# Pronouns rarely reach farther back, and each turn lengthens the prompt.
_BEFORE = 3  # earlier questions that a model sees when it rewrites a follow-up
_MOST_ADDED = 200  # characters that a rewrite may add; longer rewrites include the answer
_FOLLOW_UP = (
    "Rewrite the last question so that it can be understood without those before it: put names"
    " where it has pronouns. Write the question alone; where nothing is missing, repeat it."
)
_NOT_UNDERSTOOD = (
    "the model could not rewrite the follow-up question: the original question was used"
)


@dataclass(frozen=True)
class AskSettings(AskOptions):
    """Options of `ask`, with methods that load the config, the stages and the document."""

    def loaded(self, model: str = "") -> Config:
        """Returns the config; see `build`."""
        options = replace(self, model=model or self.model)
        names = [self.pipeline] if self.pipeline else []
        return load_config(self.config, options.settings, names)

    def build(self, model: str = "") -> Pipeline:
        """Returns the stages, with another model of the reader if one is named."""
        loaded = self.loaded(model)
        points = loaded.select([self.pipeline] if self.pipeline else [])
        if len(points) > 1:
            name = self.pipeline or loaded.default_pipeline
            raise UserError(
                f"ask takes one pipeline, and {name!r} is {len(points)} points of a sweep:"
                " name one of them"
            )
        check_files(points)
        for spec in points[0].all_specs():
            if needed := getattr(spec.cls, "needs_of_task", ""):
                raise UserError(
                    f"the pipeline {points[0].name!r} cannot answer questions about files:"
                    f" {spec.name} needs {needed}, which only a task gives; use `run`, or another"
                    f" pipeline, such as {loaded.default_pipeline}"
                )
        if self.cached:
            stages = ((spec.cls, spec.arguments()) for spec in points[0].all_specs())
            warn_of_reuse(cache_directory(), stages)
        return points[0].build()

    def document(self, files: Sequence[Path]) -> Document:
        """Loads files, folders, URLs or names of collections as one document."""
        paths, is_several = self._paths(files)
        cache = Cache(cache_directory()) if self.cached else None
        loader = loader_of(self.loader) if self.loader else None
        if is_several:
            return load_collection(paths, cache=cache, loader=loader)
        return load(paths[0], loader=loader)

    def originals(self, files: Sequence[Path]) -> dict[str, Callable[[], bytes]]:
        """Returns functions that read the files of `document`, by their names in the collection.

        A file that is not in a collection has the empty name.
        """
        paths, is_several = self._paths(files)
        if is_several:
            return {source.name: source.read for source in find_sources(paths).sources}
        return {"": partial(read_bytes, paths[0])}

    def _paths(self, files: Sequence[Path]) -> tuple[list[Path], bool]:
        """Returns the paths of files and collections, and whether they are read as a collection."""
        all_exist = all(is_there(str(file)) for file in files)
        collections = {} if all_exist else self.loaded().collections
        names = {str(file) for file in files if str(file) in collections and not file.exists()}
        paths = [
            to_path(path)
            for file in files
            for path in (collections[str(file)] if str(file) in names else [file])
        ]
        return paths, bool(names) or is_collection(paths)


@dataclass
class Session:
    """A conversation about one document; models and derived data stay in memory.

    A lock lets one thread at a time ask a question.

    Attributes:
        document: The document.
        settings: Options of `ask`.
        stages: Stages of the pipeline.
        turns: Questions as the user wrote them, with answers, oldest first.
    """

    document: Document
    settings: AskSettings = AskSettings()
    stages: Pipeline = field(default=None)  # type: ignore[assignment]  # built if missing
    turns: list[tuple[str, Answer]] = field(default_factory=list)
    _lock: AbstractContextManager[Any] = field(default_factory=threading.RLock, repr=False)

    def __post_init__(self) -> None:
        self.stages = self.stages or self.settings.build()
        self._cache = Cache(cache_directory()) if self.settings.cached else None
        if self._cache:
            self.document.use_cache(self._cache)

    @classmethod
    def open(cls, files: Sequence[Path], settings: AskSettings = AskSettings()) -> Session:
        """Returns a conversation about files, folders or URLs; several are one collection.

        The name of a collection in the config is replaced by the collection's files.
        """
        stages = settings.build()  # reports mistakes before a long file is read
        return cls(settings.document(files), settings, stages)

    def about(self, document: Document) -> Session:
        """Returns a new conversation about another document, with the same models."""
        return replace(self, document=document, turns=[])

    def each(self, question: str) -> Iterator[Answer]:
        """Yields the answer for each file of a collection, in order."""
        for session in self.by_file():
            yield session.ask(question)

    def by_file(self) -> Iterator[Session]:
        """Yields a conversation about each file of a collection; without a collection, itself."""
        for number in range(len(self.document.members)):
            yield self.about(member_document(self.document, number))
        if not self.document.members:
            yield self

    def use_model(self, model: str) -> None:
        """Switches to another model.

        Raises:
            UserError: The model does not exist, or the reader has no model.
        """
        self.stages = self.settings.build(model)

    @property
    def follows_up(self) -> bool:
        """Whether the model rewrites follow-up questions, which only generating readers can."""
        return bool(getattr(self.stages.reader, "generates", False))

    @cached_property
    def _looks_english(self) -> bool:
        return looks_english(self.document.text)

    def ask(self, question: str, listener: Listener | None = None, schema: str = "") -> Answer:
        """Returns the answer to a question; a follow-up is rewritten first.

        Args:
            question: The question; may be empty for pipelines that summarise.
            listener: Receives progress events; None draws a progress bar.
            schema: JSON Schema of the answer, as text; empty for any text.

        Raises:
            UserError: The user made a mistake, or a stage failed; the message has the reason.
        """
        with self._lock:
            # Only a reader that writes: rules for pronouns would be English, and fail in silence.
            rewritten = self._rewritten(question) if self.follows_up and self.turns else question
            [answer] = _all_answers(self.attempts([(rewritten or question, schema)], listener))
            if question and not rewritten:
                answer = replace(answer, notes=(_NOT_UNDERSTOOD, *answer.notes))
            self.turns.append((question, answer))
        return answer

    def answers(self, questions: Sequence[str], listener: Listener | None = None) -> list[Answer]:
        """Returns answers to independent questions, retrieved and read together.

        Args:
            questions: The questions; they do not become turns of the conversation.
            listener: See `ask`.

        Raises:
            UserError: See `ask`; the error of the first question that failed.
        """
        check_list("questions", questions)
        return _all_answers(self.attempts([(question, "") for question in questions], listener))

    def attempts(
        self, questions: Sequence[tuple[str, str]], listener: Listener | None = None
    ) -> list[Answer | UserError]:
        """Returns answers to independent questions, or their errors.

        Args:
            questions: Questions, each with the JSON Schema of its answer, or an empty text.
            listener: See `ask`.
        """
        for question, _ in questions:
            if not isinstance(question, str):
                raise UserError(f"a question is a text, got {question!r:.80}")
        examples = [
            Example(f"q{n}", self.document, question=question, schema=schema)
            for n, (question, schema) in enumerate(questions)
        ]
        with self._lock, ExitStack() as stack:
            if listener is None and examples:
                bar = stack.enter_context(Progress(f"asking {self.document.id}", len(examples)))
                listener = Listener(bar.take)
            # All questions form one shard, so that they share retrieval and batches. No second
            # engine answers programs, agents or libraries (decision 43).
            readers = BatchReaders(self.stages, self._cache)
            rounds = Rounds(readers, MemoryStore(), listener or Listener())
            return [*map(self._answer, examples, rounds.run(examples))]

    def select(self, question: str) -> tuple[tuple[CitedPassage, ...], Coverage]:
        """Returns the passages that are selected for a question, best first, and the coverage.

        Raises:
            UserError: The user made a mistake, or a stage failed; the message has the reason.
        """
        example = Example("q", self.document, question=question)
        with self._lock:
            [selected] = select_document(self.stages, [example])
        if isinstance(selected, ExampleError):
            raise UserError(f"the {selected.stage} failed: {selected.message}")
        prediction = prediction_of(example, selected.hits, (), "", selected.unchunked)
        return tuple(cited_passages(self.document, prediction)), prediction.coverage

    def _rewritten(self, question: str) -> str:
        """Returns a follow-up as a self-contained question; empty if the model fails."""
        # Rewritten questions, so that a pronoun is resolved even if its name is further back.
        turns = [f"{answer.question}\n{answer.text}" for _, answer in self.turns[-_BEFORE:]]
        read = Read(("\n".join(turns),), f"{_FOLLOW_UP}\n{question}")
        [reply] = BatchReaders(self.stages, self._cache).answering.read([read])
        text = getattr(reply, "text", "").strip().partition("\n")[0].strip('"“” ')
        # A small model often answers instead of rewriting, without a question mark.
        is_complete = text.endswith("?") or not question.endswith("?")
        return text if is_complete and len(text) < len(question) + _MOST_ADDED else ""

    def _answer(self, example: Example, finished: FinishedRow) -> Answer | UserError:
        document, statistics = self.document, finished.statistics
        if failure := finished.failure:
            message = f"the {failure['stage']} failed: {failure['error']}"
            return UserError(f"{example.question!r}: {message}" if example.id != "q0" else message)
        assert finished.prediction is not None
        prediction = prediction_from_row(finished.prediction)
        raw: Any = prediction.raw
        cost = statistics.input_tokens, statistics.output_tokens, statistics.dollars
        typed = typed_value(raw) if example.schema else None
        return Answer(
            example.question,
            prediction.prediction,
            tuple(cited_passages(document, prediction)),
            prediction.coverage,
            document,
            notes=(*self._language(), *statistics.notes),
            spans=tuple(dict.fromkeys(typed.spans.values() if typed else _spans(finished, raw))),
            typed=typed,
            confidence=prediction.confidence,
            items=items_of(raw),
            cost=Cost(len(finished.calls), *cost),
        )

    def _language(self) -> Iterator[str]:
        """Yields a note if the reader supports only English and the document looks different."""
        # Such a reader answers in any case, with a confidence that is worth nothing.
        if not self._looks_english and getattr(self.stages.reader, "language", "") == "en":
            yield (
                "the document does not look English, and the reader supports only English: choose"
                " another one with --model or --pipeline (`list pipelines`)"
            )


def ask(
    file: Path,
    question: str,
    *,
    pipeline: str = "",
    config: Sequence[Path] = (),
    overrides: Sequence[str] = (),
    cached: bool = True,
) -> Answer:
    """Answers one question about one document; `Session` answers several questions.

    Args:
        file: A file of any supported format, or its URL.
        question: The question; may be empty for pipelines that summarise.
        pipeline: See `AskSettings`.
        config: See `AskSettings`.
        overrides: See `AskSettings`.
        cached: See `AskSettings`.

    Raises:
        UserError: The user made a mistake, or a stage failed; the message has the reason.
    """
    settings = AskSettings(pipeline, config=config, overrides=overrides, cached=cached)
    return Session.open([file], settings).ask(question)


def _all_answers(attempts: Sequence[Answer | UserError]) -> list[Answer]:
    for attempt in attempts:
        if isinstance(attempt, UserError):
            raise attempt
    return [attempt for attempt in attempts if isinstance(attempt, Answer)]


def _spans(finished: FinishedRow, raw: JSON) -> Iterator[Span]:
    """Yields the spans of the outputs that equal the combiner's answer, highest score first."""
    text = as_text(raw)
    outputs = [call["output"] for call in finished.calls if "span" in call["output"]]
    by_score = sorted(outputs, key=lambda output: -(output["score"] or 0.0))
    return (Span(*output["span"]) for output in by_score if output["text"].strip() == text)
