"""The kinds of stage, loaders and tasks, as protocols, and what ties them to YAML keys.

A stage is a frozen dataclass with the methods named here; it inherits nothing. Its constructor
is its schema: parameters are checked against the annotations before any work begins, and its
`repr` is its provenance. Constructors are cheap; models load on first use.

The names of a method's parameters say what it wants: `chunk(document)` runs once a document,
`chunk(document, question)` once an example; `retrieve(questions, chunks)` gets texts,
`retrieve(examples, chunks)` whole examples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeAlias, runtime_checkable

from annotated_types import Ge, Gt, Le

from leporello.core.annotations import BACKEND_MARK, MODEL_MARK, ROLE_MARK, SECRET_MARK
from leporello.core.calls.budget import Budget, Ledger
from leporello.core.records import (
    JSON,
    Combination,
    Document,
    DocumentRows,
    Enrichment,
    Example,
    Hit,
    Output,
    Read,
    Span,
)

# The role that reads ask which name none.
ANSWER = "answer"

# Annotations for constructor parameters; the config checks the bounds.
Positive: TypeAlias = Annotated[int, Gt(0)]
Count: TypeAlias = Annotated[int, Ge(0)]
NonNegative: TypeAlias = Annotated[float, Ge(0)]
Share: TypeAlias = Annotated[float, Ge(0), Le(1)]
# A model by hub id, by local path (`./…` counts from the YAML file that says it), or by the name
# of one that comes as a wheel (leporello.models.locate.EMBEDDED). Its content enters the run's
# signature.
ModelSource: TypeAlias = Annotated[str, MODEL_MARK]
# What computes a model: one of leporello.readers.backends.registry, or a class of the user's own.
BackendSource: TypeAlias = Annotated[str, BACKEND_MARK]
# A key or password. A config names the environment variable that holds it, `$OPENAI_API_KEY`; the
# stage gets the value, and what a run leaves on disk has the name.
Secret: TypeAlias = Annotated[str, SECRET_MARK]
# The role of a reader that a stage asks, a key of the pipeline's `readers`; where a pipeline has
# one `reader` alone, that has all roles.
Role: TypeAlias = Annotated[str, ROLE_MARK]

# A metric as a task lists it: its name, or a mapping of `class` and its parameters.
MetricEntry: TypeAlias = str | Mapping[str, Any]
# What a combiner wants of one read: a text, any of several, or nothing to learn.
Targets: TypeAlias = str | tuple[str, ...] | None


class Chunker(Protocol):
    """Divides a document into spans."""

    def chunk(self, document: Document) -> Iterable[Span]:
        """Yields spans in document order; `chunk(document, question)` is allowed too."""
        ...


class Enricher(Protocol):
    """Makes passages of a document's chunks, once for all its questions.

    It asks the readers of the roles that its parameters name (`Role`), and no others; what names
    none asks its parameter `role`, where it has that.
    """

    def enrich(self, document: Document, chunks: Sequence[Any]) -> Enrichment | Sequence[Any]:
        """Returns what is searched in place of the chunks: chunks and passages, in any order.

        A generator may yield lists of `Read`, `Fit` and `Generates` before, as a combiner does, and
        is sent one answer a request.
        """
        ...


class Retriever(Protocol):
    """Selects chunks; all questions of one document come in one call."""

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Any]) -> list[list[Hit]]:
        """Returns the hits of each question, best first; `examples` may stand for `questions`."""
        ...


class Reader(Protocol):
    """Reads inputs, pooled over many examples.

    A class that is quick with an input may say `window_size: ClassVar[int]`: how many it wants in
    one call, where the run's own limit is lower. Four more things a reader may say, each as a
    class attribute or a property:

    - `depends_on_batch: bool`: whether an answer can depend on what else is in the call, as it does
      in the last digits of most networks. True if it does not say; False lets a run read each
      input as soon as there is room for it.
    - `slots: int`, where no answer depends on batch mates: how many calls of `read`, with one input
      each, may be under way at once, from as many threads. 0 if it does not say: one call after
      the other.
    - `schedules_itself: bool`: whether it wants all inputs that wait in one call, since it packs
      them better than a run can. False if it does not say.
    - `generates: bool`: whether it writes what it is asked to, as language models do: then it can
      say what a follow-up question means. False if it does not say.
    """

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output an input, in order."""
        ...

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns how many of the reader's tokens each text has."""
        ...


@runtime_checkable
class RendersPrompt(Protocol):
    """What a reader with a window offers besides: the exact prompt, and what fits it."""

    def render(self, read: Read) -> str:
        """Returns the exact text that the model is given, after any cut."""
        ...

    def fit(self, read: Read) -> int:
        """Returns how many leading passages fit the window when rendered."""
        ...


class Batching(Protocol):
    """How a reader packs inputs into micro-batches of its own."""

    @property
    def finds(self) -> bool:
        """Whether sizes are yet to be found, for which the model is loaded."""
        ...

    def sizes(self) -> Mapping[str, int]:
        """Returns sizes that no parameter says: found on this machine, or lowered since."""
        ...

    def settle(self, sizes: Mapping[str, int]) -> None:
        """Uses what `sizes` said in an earlier process, so that batches are the same again."""
        ...

    def counts(self) -> Mapping[str, int]:
        """Returns what came of all so far: the fields of `leporello.reading.Packed`."""
        ...


@runtime_checkable
class PacksBatches(Protocol):
    """What a reader that packs micro-batches offers besides."""

    @property
    def batching(self) -> Batching | None:
        """How it packs; None if, as it is set up, it packs none."""
        ...


@runtime_checkable
class SharesLimits(Protocol):
    """What a reader offers besides whose limits hold for a run, however many processes read."""

    @property
    def budget(self) -> Budget:
        """Limits of what the run may spend."""
        ...

    @property
    def spent(self) -> Ledger:
        """Spending in this process."""
        ...

    def share_limits(self, workers: int, budget: Budget) -> None:
        """Takes this process for one of several that hold the run's limits together.

        Numbers at once and rates are divided by the workers. What may be spent is replaced: from
        now on as much as is given here, whereafter `read` raises `BudgetSpentError`.

        Args:
            workers: Number of all workers that read for the run.
            budget: Limits of what this process may spend in addition to what it has spent.
        """
        ...


@runtime_checkable
class CancelsReads(Protocol):
    """What a reader that waits for others offers besides."""

    def cancel(self) -> None:
        """Ends all reads under way, in whatever thread: they raise `CancelledError`.

        That of `concurrent.futures`; later reads are read.
        """
        ...


@runtime_checkable
class ChecksFiles(Protocol):
    """What a stage whose parameters name files offers besides: its constructor opens none."""

    def check_files(self, data: str) -> None:
        """Looks at the files before any work; also when a config is checked.

        Args:
            data: The fingerprint of the task's data; empty where no task is known.

        Raises:
            UserError: A file is not there, is faulty, or must not be used on that data.
        """
        ...


@runtime_checkable
class Learns(Protocol):
    """What a reader that can be trained offers besides."""

    def learn(
        self, inputs: Sequence[Read], targets: Sequence[str], directory: Path
    ) -> Mapping[str, JSON]:
        """Trains on inputs with the outputs that are wanted, and writes a model.

        Args:
            inputs: Inputs as `read` gets them; passages are texts.
            targets: Wanted outputs, one an input.
            directory: An empty folder; the model's files are written there.

        Returns:
            The constructor parameters that a reader with this model has. Paths within the
            directory begin with `./`.

        Raises:
            UserError: They cannot be learnt from.
        """
        ...


@runtime_checkable
class FineTunes(Protocol):
    """What a reader whose model can be fine-tuned offers besides.

    A name and not a method, so that what trains a model is no part of what its answers depend on.
    """

    @property
    def trainer(self) -> str:
        """`module:function`, which takes the reader and a `leporello.core.training.TuningJob`.

        It returns a `TuningResult`. Empty if the reader, as it is set up, has none to fine-tune.
        """
        ...


@runtime_checkable
class Supervises(Protocol):
    """What a combiner whose reader can be trained offers besides."""

    def supervise(self, example: Example, reads: Sequence[Read]) -> Sequence[Targets]:
        """Returns what each read of the first round should come to.

        None leaves a read out of training; of several texts the first is learnt, or each, as
        `train: {references: …}` says. The example comes with its references and evidence.
        """
        ...


class Combiner(Protocol):
    """Recombines: hits -> reader inputs -> one answer."""

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination | JSON:
        """A generator that yields lists of requests (`Read`, …), and returns the answer.

        It is sent one answer a request: an `Output` for a `Read`, a tuple of hits for a
        `Search`, a number for a `Fit`, a bool for `Generates`. The `ReadError` of a read that
        failed is thrown into it; a class with `takes_failed_reads = True` is sent it in place of
        the `Output` instead. A combiner that reads nothing may return the answer at once.
        """
        ...


class Task(Protocol):
    """Where examples come from; declared under `tasks:` rather than in a pipeline.

    A task that also has `__len__` lets the progress bar tell the time left. One that has
    `normalise(text, example) -> str` brings answers into the form that its metrics read, for
    pipelines with `normalised: true`; what the combiner returned is kept beside it.
    """

    @property
    def metrics(self) -> tuple[MetricEntry, ...]:
        """Names of metrics, or mappings of `class` and its parameters."""
        ...

    def examples(self) -> Iterator[Example]:
        """Yields the examples; those on one document stand together and share it."""
        ...

    def fingerprint(self) -> str:
        """Returns a hash of the data; raises if any of it is faulty."""
        ...


class Loader(Protocol):
    """Makes a document of a file.

    One with `suffixes: ClassVar[tuple[str, ...]]` is asked for files that are named so; one without
    for all.
    """

    def load(self, path: Path) -> Document:
        """Returns the document: text, outline, places, and what of the file is lost.

        Raises:
            UserError: The file cannot be read as a document.
        """
        ...


@runtime_checkable
class Sharded(Protocol):
    """What a task offers besides whose documents can be found without reading those before them.

    Both methods speak of the documents in the order of `examples`. A class that overrides
    `examples` alone is taken for one that offers neither. One that has `closed(document, fault)`
    besides yields the examples on a document without opening it, each with this fault: for a
    document over whose opening workers die.
    """

    def layout(self) -> Iterator[DocumentRows]:
        """Yields where the examples on each document stand; builds no text."""
        ...

    def examples_of(self, documents: Sequence[DocumentRows], first: int) -> Iterator[Example]:
        """Yields the examples on documents of the layout, perhaps on another machine.

        Args:
            documents: Documents that follow each other. Of the last, `examples` may be fewer than
                the layout says: it is enough to yield so many.
            first: Number of the first of them in the task, from 0.
        """
        ...


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of stage.

    Attributes:
        key: The key of a pipeline in YAML.
        package: The package in which plain class names are looked up.
        methods: Names of the methods that a class of this kind must have.
        protocol: The protocol that a nested stage is annotated with.
        default: Class used where a pipeline has no such key; None if it must be given, empty if it
            is then left out.
        table: Name of the package's mapping of names to classes; empty where its `__all__` names
            the classes.
    """

    key: str
    package: str
    methods: tuple[str, ...]
    protocol: type = object
    default: str | None = None
    table: str = ""

    @property
    def title(self) -> str:
        """Classes of this kind, as `list` calls them."""
        return f"{self.key}s"

    @property
    def group(self) -> str:
        """The group of entry points under which packages offer such classes."""
        return f"leporello.{self.key}s"


KINDS: Mapping[str, Kind] = {
    kind.key: kind
    for kind in (
        Kind("chunker", "leporello.chunkers", ("chunk",), Chunker, "Whole"),
        Kind("enricher", "leporello.enrichers", ("enrich",), Enricher, ""),
        Kind("retriever", "leporello.retrievers", ("retrieve",), Retriever, "All"),
        Kind("reader", "leporello.readers", ("read", "count"), Reader, None),
        Kind("combiner", "leporello.combiners", ("combine",), Combiner, "Stuff"),
    )
}

LOADER = Kind("loader", "leporello.loaders", ("load",), Loader)
TASK = Kind("task", "leporello.tasks", ("examples", "fingerprint"), Task)
METRIC = Kind("metric", "leporello.metrics", ("statistics", "aggregate"), table="METRICS")
BACKEND = Kind(
    "backend", "leporello.readers.backends.registry", ("check", "load", "write"), table="BACKENDS"
)
TRACKER = Kind("tracker", "leporello.analysis.export.trackers", ("track",), table="TRACKERS")
SECTION = Kind("report_section", "leporello.report.sections", ("section",), table="SECTIONS")
ALL_KINDS = (*KINDS.values(), LOADER, TASK, METRIC, BACKEND, TRACKER, SECTION)
