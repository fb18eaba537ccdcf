"""Python API: the commands of the command line as typed functions, and the class `Pipeline`.

Heavy libraries are imported only when a model is needed. Functions whose names end with `_async`
run in a thread; after cancellation, the thread ends at its next step.
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
from leporello.analysis.example_trace import ExampleTrace
from leporello.analysis.explain import Explanation, explain
from leporello.analysis.funnel import Funnel, funnels, trace_examples
from leporello.analysis.score import score
from leporello.config import Config, PipelineSpec, TaskSpec
from leporello.config import Pipeline as Stages
from leporello.config import load_config as load_pipelines
from leporello.core.errors import ConfigError, Fault, UserError, check_list
from leporello.core.files import stamp
from leporello.core.records import Document
from leporello.core.yaml.tree import ConfigSource, read_tree
from leporello.engine.progress import Listener, ProgressDisplay, show_progress_with
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
    "Answer", "AskSettings", "CitedPassage", "Comparison", "Config", "ConfigError", "Cost",
    "ExampleTrace", "Explanation", "Fault", "FewShotExamples", "Funnel", "Pipeline",
    "PipelineSpec", "Report", "Result", "Run", "Session", "TaskSpec", "Trained", "UserError",
    "ask", "compare", "compare_async", "explain", "few_shot_examples", "funnels", "load_pipelines",
    "report", "run", "run_async", "score", "trace_examples", "train",
]  # fmt: skip

_Parameters = ParamSpec("_Parameters")
_Returned = TypeVar("_Returned")
_SUFFIXES = (".yaml", ".yml")
# Parameters through which a function can be cancelled.
_STOPS: Mapping[str, Callable[[], Listener | Interrupts]] = {
    "listener": Listener,
    "interrupts": Interrupts,
}


def _as_async(
    function: Callable[_Parameters, _Returned],
) -> Callable[_Parameters, Coroutine[Any, Any, _Returned]]:
    """Returns a coroutine function that runs `function` in a thread, and stops it if cancelled."""
    names = [name for name in signature(function).parameters if name in _STOPS]

    @wraps(function)
    async def call(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Returned:
        stops = {name: _STOPS[name]() for name in names if kwargs.get(name) is None}
        try:
            # The engine is synchronous: a thread works, and a listener ends it at its next step
            # (decision 43).
            return await asyncio.to_thread(function, *args, **{**kwargs, **stops})  # type: ignore[arg-type]  # types depend on the name
        finally:
            for stop in stops.values():
                stop.cancel()

    return call


@dataclass(frozen=True)
class Pipeline:
    """A pipeline that answers questions about documents, and runs on tasks.

    It keeps its models and the last document (text, chunks, index) in memory. It handles one call
    at a time, even from several threads. `answer_async`, `answers_async` and `run_async` are the
    awaitable versions of its methods.

    Attributes:
        settings: Settings from which it was built.
        stages: Built stages; models load on first use.
    """

    settings: AskSettings
    stages: Stages
    _documents: dict[Hashable, Document] = field(default_factory=dict, repr=False, compare=False)
    _lock: Any = field(default_factory=threading.RLock, repr=False, compare=False)

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
        """Returns a pipeline by name, from a YAML file, or from a mapping of the same form.

        Args:
            source: Name of a pipeline, empty for the default pipeline; path of a YAML file; or a
                mapping with the content of a file or of one pipeline:
                `{"extends": "best-sentence"}`.
            name: Name of the pipeline in the file; if empty, its default or only pipeline.
            model: Model of the reader, as for `--model`; if empty, the pipeline's own model.
            config: Further files and mappings, overridden by `source`.
            overrides: Settings as for `--set`, without sweeps: `retriever.k=5`.
            cached: Whether to read and write the cache.
            loader: Loader of files, as YAML: `{class: Text, encoding: cp1252}`.

        Raises:
            UserError: A file or setting is not valid, or the pipeline is missing or ambiguous.
        """
        check_list("config", config)
        # A mapping is read like a file, so that it has the same checks and messages (decision 43).
        declarations, pipeline = _declared(source, name)
        settings = AskSettings(
            pipeline, model=model, config=[*config, *declarations], overrides=overrides,
            cached=cached, loader=loader,
        )  # fmt: skip
        return cls(settings, settings.build())

    def session(self, document: Document | Path | str) -> Session:
        """Returns a new conversation about a document, which understands follow-up questions.

        Args:
            document: A document; the name of a file, folder, pattern, URL or collection; or a text.

        Raises:
            UserError: The file does not exist or cannot be read.
        """
        if not isinstance(document, Document | Path | str):
            raise UserError(f"a document is a path, a text or a Document, got {document!r:.80}")
        key = _key(document)
        with self._lock:
            if key not in self._documents:
                loaded = self._document(document)
                # Only the last document is kept: the text, chunks and indexes of many would fill
                # the memory.
                self._documents.clear()
                self._documents[key] = loaded
            return Session(self._documents[key], self.settings, self.stages, _lock=self._lock)

    def answer(
        self, document: Document | Path | str, question: str, listener: Listener | None = None
    ) -> Answer:
        """Returns the answer to a question, independent of earlier questions.

        Args:
            document: The document, as for `session`.
            question: The question; may be empty for pipelines that summarise.
            listener: Listener for progress events; without one, a progress bar is shown.

        Raises:
            UserError: The input is not valid, or a stage failed.
        """
        return self.answers(document, [question], listener)[0]

    def answers(
        self,
        document: Document | Path | str,
        questions: Sequence[str],
        listener: Listener | None = None,
    ) -> list[Answer]:
        """Returns answers to questions on one document, whose reads are batched.

        Args:
            document: The document, as for `session`.
            questions: The questions, independent of each other.
            listener: Listener for progress events; without one, a progress bar is shown.

        Raises:
            UserError: The input is not valid, or a stage failed for one of the questions.
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
        """Runs the pipeline on tasks and scores it; the function `run` has more options.

        Args:
            tasks: Names of tasks; if empty, the tasks of the pipeline, or else the default task.
            limit: Maximum number of examples per task.
            out: Directory of the run; by default `runs/NAME`.
            update: Whether to replace results of other settings instead of raising an error.
            interrupts: Signals that stop the run, and a way to stop it from another thread.

        Raises:
            UserError: The settings or the data are not valid.
        """
        settings = self.settings
        return run(
            [settings.pipeline] if settings.pipeline else [], tasks, model=settings.model,
            config=settings.config, overrides=settings.overrides, cached=settings.cached,
            limit=limit, out=out, update=update, interrupts=interrupts,
        )  # fmt: skip

    answer_async = _as_async(answer)
    answers_async = _as_async(answers)
    run_async = _as_async(run)

    def _document(self, source: Document | Path | str) -> Document:
        if isinstance(source, Document):
            return source
        text = str(source)
        if isinstance(source, Path) or is_there(text) or text in self.settings.loaded().collections:
            return self.settings.document([to_path(source)])
        if "\n" not in text and Path(text).suffix.lower() in known_suffixes():
            raise UserError(f"{text}: there is no such file; give a text as a Document")
        return Document("text", text)


run_async = _as_async(run)
compare_async = _as_async(compare)


def _key(document: Document | Path | str) -> Hashable:
    """Returns the key of a document's session, which changes if its file changes."""
    path = (
        Path(document) if not isinstance(document, Document) and is_there(str(document)) else None
    )
    if path is None or not path.is_file():
        # A folder, pattern or URL gets a new session each time; its loaded files are cached.
        return object() if path or isinstance(document, Path) else document
    return str(path.resolve()), stamp(path)


def _declared(
    source: str | Path | Mapping[str, Any], name: str
) -> tuple[Sequence[ConfigSource], str]:
    """Returns the sources that declare a pipeline, in addition to built-in ones, and its name."""
    if isinstance(source, Mapping) and "pipelines" not in source:
        return [{"pipelines": {(name or "mine"): source}}], name or "mine"
    if isinstance(source, str) and Path(source).suffix.lower() not in _SUFFIXES:
        if source and name:
            raise UserError(f"name={name!r} needs a file as source, but {source!r} is a pipeline")
        return [], source or name
    if not isinstance(source, str | Path | Mapping):
        raise UserError(f"a source is a name, a path or a mapping, got {source!r:.80}")
    file = to_path(source) if isinstance(source, str) else source
    tree = read_tree(file)
    names = [*tree.at("pipelines").items]
    default = tree.at("default", "pipeline").plain()
    if not name and not default and len(names) != 1:
        choices = ", ".join(names) or "none"
        raise UserError(f"choose a pipeline with name=…; the source declares: {choices}")
    return [file], name or str(default or names[0])


def _progress_bar(title: str, examples: int | None) -> ProgressDisplay | None:
    from leporello.cli.options import progress_bar

    return progress_bar(title, examples)


show_progress_with(_progress_bar)  # the same progress bar as on the command line
