"""The verbs as typed functions, and `Pipeline`: what the command line does, from Python.

Nothing heavy is imported until a model is needed. What ends with `_async` works in a thread, and
ends there at its next step if it is cancelled.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from leporello.analysis.comparison.comparison import compare
from leporello.analysis.comparison.tables import Comparison
from leporello.analysis.explain import Explanation, explain
from leporello.analysis.funnel.collect import trace_examples
from leporello.analysis.funnel.counts import Funnel, funnels
from leporello.analysis.funnel.example_trace import ExampleTrace
from leporello.analysis.score import score
from leporello.config import Config, PipelineSpec, TaskSpec
from leporello.config import Pipeline as Stages
from leporello.config import load_config as load_pipelines
from leporello.core.errors import ConfigError, Fault, UserError
from leporello.core.records import Document
from leporello.core.yaml.tree import ConfigSource, Tree, read_tree
from leporello.engine.progress import Cancellable, Listener, ProgressDisplay, show_progress_with
from leporello.jobs.interrupts import Interrupts
from leporello.jobs.results import Result
from leporello.loaders.files import known_suffixes
from leporello.report import Report, report
from leporello.runs.answer import Answer, CitedPassage, Cost
from leporello.runs.ask import AskSettings, Session, ask
from leporello.runs.run import Run, run
from leporello.storage import to_path
from leporello.storage.paths import is_there
from leporello.training import FewShotExamples, Trained, few_shot_examples, train

__all__ = [
    "Answer",
    "AskSettings",
    "CitedPassage",
    "Comparison",
    "Config",
    "ConfigError",
    "Cost",
    "ExampleTrace",
    "Explanation",
    "Fault",
    "FewShotExamples",
    "Funnel",
    "Pipeline",
    "PipelineSpec",
    "Report",
    "Result",
    "Run",
    "Session",
    "TaskSpec",
    "Trained",
    "UserError",
    "ask",
    "compare",
    "compare_async",
    "explain",
    "few_shot_examples",
    "funnels",
    "load_pipelines",
    "report",
    "run",
    "run_async",
    "score",
    "trace_examples",
    "train",
]

_Parameters = ParamSpec("_Parameters")
_Returned = TypeVar("_Returned")
_SUFFIXES = (".yaml", ".yml")
_STOPS: Mapping[str, Callable[[], Cancellable | Interrupts]] = {
    "listener": Cancellable,
    "interrupts": Interrupts,
}


def _async_of(
    function: Callable[_Parameters, _Returned],
) -> Callable[_Parameters, Coroutine[Any, Any, _Returned]]:
    """Returns a function that works in a thread, and is told there when nobody waits any more."""
    stops = [name for name in signature(function).parameters if name in _STOPS]

    @wraps(function)
    async def call(*args: _Parameters.args, **named: _Parameters.kwargs) -> _Returned:
        own = {name: _STOPS[name]() for name in stops if named.get(name) is None}
        try:
            return await asyncio.to_thread(function, *args, **{**named, **own})  # type: ignore[arg-type]  # as its parameters say
        finally:
            for stop in own.values():
                stop.cancel()

    return call


@dataclass(frozen=True)
class Pipeline:
    """A pipeline: it answers questions about documents, and runs on tasks.

    What is derived from the document that was asked last (its text, chunks, index) is kept, and so
    are models; it answers one call at a time, whatever thread calls. `answer_async`,
    `answers_async` and `run_async` are the same to await.

    Attributes:
        settings: Settings with which it was made.
        stages: Stages, built; models load on first use.
    """

    settings: AskSettings
    stages: Stages
    _sessions: dict[Hashable, Session] = field(default_factory=dict, repr=False, compare=False)
    _lock: Any = field(default_factory=threading.Lock, repr=False, compare=False)

    @classmethod
    def from_yaml(
        cls,
        source: str | Path | Mapping[str, Any] = "",
        name: str = "",
        *,
        model: str = "",
        config: Sequence[ConfigSource] = (),
        overrides: Sequence[str] = (),
        cached: bool = True,
        loader: str = "",
    ) -> Pipeline:
        """Returns a pipeline by its name, of a YAML file, or of a mapping that says what one would.

        Args:
            source: Name of a pipeline, the default one if empty; path of a YAML file; or a mapping,
                a whole file's or that of one pipeline: `{"extends": "best-sentence"}`.
            name: Name of the pipeline in the file; its default or only one if empty.
            model: Model that reads, as for `--model`; the pipeline's own if empty.
            config: Other files and mappings, beneath `source`.
            overrides: Settings as those of `--set`: `retriever.k=5`; they must not sweep.
            cached: Whether to use and fill the cache.
            loader: Loader of the files that it is for, as YAML: `{class: Text, encoding: cp1252}`.

        Raises:
            UserError: A mistake in a file or setting; there is no such pipeline, or several.
        """
        own, named = _declared(source, name)
        settings = AskSettings(
            named, model=model, config=[*config, *own], overrides=overrides, cached=cached,
            loader=loader,
        )  # fmt: skip
        return cls(settings, settings.build())

    def session(self, document: Document | Path | str) -> Session:
        """Returns a new conversation about a document, which understands follow-ups.

        Args:
            document: A document; a file, folder, pattern, URL or collection; else a text.

        Raises:
            UserError: There is no such file, or it cannot be read.
        """
        key = _key(document)
        with self._lock:
            if key not in self._sessions:
                loaded = self._document(document)
                known = [*self._sessions.values()]
                self._sessions.clear()
                first = known[0] if known else Session(loaded, self.settings, self.stages)
                self._sessions[key] = first.about(loaded)
            session = self._sessions[key]
        return session.about(session.document)

    def answer(
        self, document: Document | Path | str, question: str, listener: Listener | None = None
    ) -> Answer:
        """Returns the answer to a question, which stands alone.

        Args:
            document: The document, as for `session`.
            question: The question; may be empty for pipelines that summarise.
            listener: Listener that is told of each step; a bar is drawn without.

        Raises:
            UserError: A mistake of the user's, or a stage that failed, with its reason.
        """
        return self.answers(document, [question], listener)[0]

    def answers(
        self,
        document: Document | Path | str,
        questions: Sequence[str],
        listener: Listener | None = None,
    ) -> list[Answer]:
        """Returns answers to questions on one document, selected and read together.

        Args:
            document: The document, as for `session`.
            questions: The questions, each of which stands alone.
            listener: Listener as that of `answer`.

        Raises:
            UserError: As `answer`; of the first question that has no answer.
        """
        return self.session(document).answers(questions, listener)

    def run(
        self,
        tasks: Sequence[str] = (),
        *,
        limit: int | None = None,
        out: Path | None = None,
        update: bool = False,
        interrupts: Interrupts | None = None,
    ) -> Run:
        """Runs it on tasks and scores it; the function `run` takes more.

        Args:
            tasks: Names of tasks; if empty the pipeline's own, or else the default one.
            limit: Number of examples a task at most.
            out: Directory of the run; by default `runs/NAME`.
            update: Whether to do again what was made otherwise, rather than refuse.
            interrupts: Signals that end it; whoever cancels them does, too.

        Raises:
            UserError: Any mistake of the user's.
        """
        made = self.settings
        return run(
            [made.pipeline] if made.pipeline else [], tasks, model=made.model, config=made.config,
            overrides=made.overrides, cached=made.cached, limit=limit, out=out, update=update,
            interrupts=interrupts,
        )  # fmt: skip

    answer_async = _async_of(answer)
    answers_async = _async_of(answers)
    run_async = _async_of(run)

    def _document(self, source: Document | Path | str) -> Document:
        if isinstance(source, Document):
            return source
        text = str(source)
        if isinstance(source, Path) or is_there(text) or text in self.settings.loaded().collections:
            return self.settings.document([to_path(source)])
        if "\n" not in text and Path(text).suffix.lower() in known_suffixes():
            raise UserError(f"{text}: there is no such file; give a text as a Document")
        return Document("text", text)


run_async = _async_of(run)
compare_async = _async_of(compare)


def _key(document: Document | Path | str) -> Hashable:
    """Returns what a document is known by: another one if its file has changed."""
    path = (
        Path(document) if not isinstance(document, Document) and is_there(str(document)) else None
    )
    if path is None or not path.is_file():
        # A folder, pattern or URL is looked at each time; what each file became is kept.
        return object() if path or isinstance(document, Path) else document
    status = path.stat()
    return str(path.resolve()), status.st_mtime_ns, status.st_size


def _declared(
    source: str | Path | Mapping[str, Any], name: str
) -> tuple[Sequence[ConfigSource], str]:
    """Returns what declares a pipeline besides the built-in file, and its name."""
    if isinstance(source, Mapping) and "pipelines" not in source:
        return [{"pipelines": {(name or "mine"): source}}], name or "mine"
    if isinstance(source, str) and Path(source).suffix.lower() not in _SUFFIXES:
        if source and name:
            raise UserError(f"name={name!r} is for a file; {source!r} is a pipeline's name already")
        return [], source or name
    file = to_path(source) if isinstance(source, str) else source
    tree = read_tree(file)
    empty = Tree({}, None, 0)
    own = [*tree.items.get("pipelines", empty).items]
    default = tree.items.get("default", empty).items.get("pipeline", empty).plain()
    if not name and not default and len(own) != 1:
        told = ", ".join(own) or "none"
        raise UserError(f"which pipeline? It declares: {told}; say so with name=…")
    return [file], name or str(default or own[0])


def _progress_bar(title: str, examples: int | None) -> ProgressDisplay | None:
    from leporello.cli.options import progress_bar

    return progress_bar(title, examples)


show_progress_with(_progress_bar)  # on a terminal or not, as from the command line
