"""Protocols of stages, loaders and tasks, and the YAML keys that declare them.

A stage is a frozen dataclass with the methods of its protocol; it inherits nothing. The
constructor is the schema: parameters are checked against its annotations before the run starts,
and the `repr` of a stage is its provenance. Constructors are cheap; models load on first use.

The parameter names of a method determine its arguments: `chunk(document)` runs once per document,
`chunk(document, question)` once per example; `retrieve(questions, chunks)` receives texts,
`retrieve(examples, chunks)` receives examples.
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

ANSWER = "answer"  # the role of reads that do not name one

# Annotations for constructor parameters; the config checks the bounds.
Positive: TypeAlias = Annotated[int, Gt(0)]
Count: TypeAlias = Annotated[int, Ge(0)]
NonNegative: TypeAlias = Annotated[float, Ge(0)]
Share: TypeAlias = Annotated[float, Ge(0), Le(1)]
# A model: a hub id, a local path (`./…` is relative to the YAML file), or the name of a model that
# is installed as a wheel (`models.locate.EMBEDDED`). Its content enters the run's signature.
ModelSource: TypeAlias = Annotated[str, MODEL_MARK]
# A backend that runs a model: a name in leporello.readers.backends.backend, or a user's class.
BackendSource: TypeAlias = Annotated[str, BACKEND_MARK]
# A key or password. A config names the environment variable that holds it, `$OPENAI_API_KEY`; the
# stage receives the value, and the files of a run contain the name.
Secret: TypeAlias = Annotated[str, SECRET_MARK]
# The role of the reader that a stage calls: a key of the pipeline's `readers`. In a pipeline with a
# single `reader`, that reader has all roles.
Role: TypeAlias = Annotated[str, ROLE_MARK]

# A metric as a task lists it: its name, or a mapping of `class` and its parameters.
MetricEntry: TypeAlias = str | Mapping[str, Any]
# Training targets of one read: a text, alternative texts, or None to leave the read out.
Targets: TypeAlias = str | tuple[str, ...] | None


class Chunker(Protocol):
    """Divides a document into spans."""

    def chunk(self, document: Document) -> Iterable[Span]:
        """Yields spans in document order; `chunk(document, question)` is allowed too."""


class Enricher(Protocol):
    """Makes passages from a document's chunks, once for all its questions.

    An enricher calls only the readers of the roles that its parameters name (`Role`). A request
    without a role goes to the role in its parameter `role`, if it has one.
    """

    def enrich(self, document: Document, chunks: Sequence[Any]) -> Enrichment | Sequence[Any]:
        """Returns the chunks and passages to search instead of `chunks`, in any order.

        A generator may first yield lists of `Read`, `Fit` and `Generates`, as a combiner does, and
        is sent one answer per request.
        """


class Retriever(Protocol):
    """Ranks chunks; one call receives all questions on a document."""

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Any]) -> list[list[Hit]]:
        """Returns the hits of each question, best first; may take `examples` for `questions`."""


class Reader(Protocol):
    """Answers reads; the reads of many examples are batched.

    A fast reader may set `window_size: ClassVar[int]`, the batch size that it prefers, for when the
    run's own limit is lower. It may also define these class attributes or properties:

    - `depends_on_batch: bool`: whether an answer can depend on the other reads of the batch, as it
      does in the last digits of most networks. The default is True; False lets a run start each
      read as soon as there is room for it.
    - `slots: int`: number of concurrent calls of `read`, each with one read and in its own thread,
      for a reader whose answers do not depend on the batch. The default 0 means one call at a time.
    - `schedules_itself: bool`: whether the reader takes all waiting reads in one call because it
      packs them better than a run can. The default is False.
    - `generates: bool`: whether the reader follows instructions, as language models do; if so, it
      can rewrite a follow-up question. The default is False.
    """

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output per read, in order."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of tokens of each text, as the reader's tokenizer counts them."""


@runtime_checkable
class RendersPrompt(Protocol):
    """Optional: readers with an input window, which can show the exact prompt of a read."""

    def render(self, read: Read) -> str:
        """Returns the exact text that the model receives, after truncation."""

    def fit(self, read: Read) -> int:
        """Returns how many of the first passages fit into the input window, with the prompt."""


class Batching(Protocol):
    """Micro-batches that a reader packs: its attribute `batching`, which may be None."""

    @property
    def finds(self) -> bool:
        """Whether batch sizes are still to be measured, which loads the model."""

    def sizes(self) -> Mapping[str, int]:
        """Returns the sizes that no parameter sets: measured on this machine, or lowered since."""

    def settle(self, sizes: Mapping[str, int]) -> None:
        """Uses the sizes of an earlier process, so that the batches are the same again."""

    def counts(self) -> Mapping[str, int]:
        """Returns the totals so far: `leporello.engine.reading.ReadStatistics.packed`."""


@runtime_checkable
class SharesLimits(Protocol):
    """Optional: readers of servers, whose limits apply to all processes of a run together."""

    @property
    def budget(self) -> Budget:
        """Spending limits of the run."""

    @property
    def spent(self) -> Ledger:
        """Spending in this process."""

    def share_limits(self, workers: int, budget: Budget) -> None:
        """Reduces the limits to this process's share of the run's limits.

        Concurrency and rates are divided by `workers`, the number of workers that read for the run.
        `budget` replaces the spending limits; once it is spent, `read` raises `BudgetSpentError`.
        """

    def cancel(self) -> None:
        """Cancels the current reads of all threads: they raise `CancelledError`.

        The error is the class of `concurrent.futures`. Later reads are not affected.
        """


@runtime_checkable
class ChecksFiles(Protocol):
    """Optional: stages whose parameters name files, which constructors do not open."""

    def check_files(self, data: str) -> None:
        """Checks the files before the run starts, and when a config is validated.

        `data` is the fingerprint of the task's data, empty without a task. Raises UserError if a
        file is missing, invalid, or not allowed for that data.
        """


@runtime_checkable
class Learns(Protocol):
    """Optional: readers that can be trained."""

    def learn(
        self, inputs: Sequence[Read], targets: Sequence[str], directory: Path
    ) -> Mapping[str, JSON]:
        """Trains on reads and their target outputs, and writes a model.

        Args:
            inputs: Reads as `read` receives them; passages are texts.
            targets: Target outputs, one per read.
            directory: Empty folder for the model's files.

        Returns:
            Constructor parameters of a reader that uses the model. Paths within the directory
            begin with `./`.

        Raises:
            UserError: The reads and targets cannot be used for training.
        """


@runtime_checkable
class FineTunes(Protocol):
    """Optional: readers whose model can be fine-tuned.

    The trainer is a name, not a method, so that the fingerprint of a reader excludes training code.
    """

    @property
    def trainer(self) -> str:
        """Name of the training function, as `module:function`.

        The function takes the reader and a `leporello.core.training.TuningJob`, and returns a
        `TuningResult`. Empty if the reader's parameters name no model that can be fine-tuned.
        """


@runtime_checkable
class Supervises(Protocol):
    """Optional: combiners that derive training targets for their reader."""

    def supervise(self, example: Example, reads: Sequence[Read]) -> Sequence[Targets]:
        """Returns the target outputs of the reads of the first round.

        None leaves a read out of training. `train: {references: …}` selects the first of several
        alternative texts, or all of them. The example includes its references and evidence.
        """


class Combiner(Protocol):
    """Makes reads from hits, and one answer from their outputs."""

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination | JSON:
        """Generator that yields lists of requests (`Read`, …), and returns the answer.

        It is sent one answer per request: an `Output` for a `Read`, a tuple of hits for a
        `Search`, a number for a `Fit`, a bool for `Generates`. The `ReadError` of a failed read is
        thrown into the generator; a class with `takes_failed_reads = True` is sent the error
        instead of the `Output`. A combiner without requests may return the answer directly.
        """


class Task(Protocol):
    """Source of examples, declared under `tasks:` rather than in a pipeline.

    The progress bar estimates the remaining time if a task defines `__len__`. In pipelines with
    `normalised: true`, a task's `normalise(text, example) -> str` converts answers to the form that
    its metrics expect; the combiner's answer is stored too.
    """

    @property
    def metrics(self) -> tuple[MetricEntry, ...]:
        """Names of metrics, or mappings with `class` and its parameters."""

    def examples(self) -> Iterator[Example]:
        """Yields the examples; those on one document are consecutive and share its object."""

    def fingerprint(self) -> str:
        """Returns a hash of the data; raises an error if the data is invalid."""


class Loader(Protocol):
    """Loads a file as a document.

    A loader with `suffixes: ClassVar[tuple[str, ...]]` loads files with these suffixes; a loader
    without loads all files.
    """

    def load(self, path: Path) -> Document:
        """Returns the document of a file; raises UserError if it cannot be read as one."""


@runtime_checkable
class Sharded(Protocol):
    """Optional: tasks that can open a document without reading the documents before it.

    Both methods use the document order of `examples`. They are ignored in a class that overrides
    only `examples`. A task may also define `closed(document, fault)`, which yields the examples on
    a document without opening it, each with this fault; it is called for a document that crashes
    the workers that open it.
    """

    def layout(self) -> Iterator[DocumentRows]:
        """Yields the rows of each document's examples, without building text."""

    def examples_of(self, documents: Sequence[DocumentRows], first: int) -> Iterator[Example]:
        """Yields the examples on documents of the layout, perhaps on another machine.

        Args:
            documents: Consecutive documents. `examples` of the last one may be lower than in the
                layout: only so many examples are needed.
            first: Index of the first of these documents in the task, from 0.
        """


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of stage."""

    key: str  # key of a pipeline in YAML
    package: str  # package in which plain class names are looked up
    methods: tuple[str, ...]  # names of the methods that a class of this kind must have
    protocol: type = object  # protocol that annotates a nested stage
    # Class if the key is missing; None: the key is required; empty: no such stage.
    default: str | None = None
    # Name of the package's mapping of names to classes; empty if `__all__` lists them.
    table: str = ""

    @property
    def title(self) -> str:
        """Plural of the kind, as `list` shows it."""
        return f"{self.key}s"

    @property
    def group(self) -> str:
        """Group of entry points under which other packages register classes of this kind."""
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
    "backend", "leporello.readers.backends.backend", ("check", "load", "write"), table="BACKENDS"
)
ALL_KINDS = (*KINDS.values(), LOADER, TASK, METRIC, BACKEND)
