"""Contracts of loaders, tasks and metrics."""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

import pytest

from leporello.core.calls.contracts import load_with
from leporello.core.errors import UserError
from leporello.core.protocols import Sharded
from leporello.core.records import Document, Example, Prediction, Read
from leporello.engine.results.finished import empty_prediction
from leporello.engine.task_examples import checked_metrics, examples_of, normalizer_of
from leporello.metrics import GoldError, check_metrics
from leporello.metrics.protocol import Asks
from leporello.testing.contract import Maker, PlugInContract, alike, description_of, fail
from leporello.testing.texts import DOCUMENTS, QUESTIONS, Echo, examples_on

_ROUNDING = 1e-6
_BROKEN = {"zeros": bytes(500), "no text at all": bytes(range(256)) * 3, "nothing": b""}


class LoaderContract(PlugInContract):
    """A loader returns a document for a valid file, and a document or a UserError for another.

    Attributes:
        files: Bytes of valid files by name: some of each format that it reads.
    """

    files: ClassVar[Mapping[str, bytes]] = {}

    @pytest.fixture
    def inputs(self, maker: Maker, tmp_path: Path) -> Sequence[Path]:
        """Returns the paths of the valid files."""
        folder, files = tmp_path / "valid", self.files_of(maker())
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        return [folder / name for name in files]

    def files_of(self, loader: Any) -> Mapping[str, bytes]:
        """Returns the files, or a file of plain text if `files` is empty."""
        suffix = next(iter(getattr(loader, "suffixes", ())), ".txt")
        return self.files or {f"plain{suffix}": b"A heading\n\nSome words, and a stop.\n"}

    @staticmethod
    def work(instance: Any, inputs: Sequence[Path]) -> list[Any]:
        """Returns the fields of each document."""
        return [_fields(instance.load(path)) for path in inputs]

    def test_spans_lie_within_the_text(self, maker: Maker, inputs: Sequence[Path]) -> None:
        """Spans of sections, parts and places are valid, and the loader changes no files."""
        loader, [first, *_] = maker(), inputs
        before = {path: path.read_bytes() for path in inputs}
        for path in inputs:
            try:
                load_with(loader, path)
            except UserError as error:
                fail(loader, f"failed on a valid file: {error}")
        if {path: path.read_bytes() for path in first.parent.iterdir()} != before:
            fail(loader, "changes the folder that it reads from")

    def test_what_is_no_such_file_is_told(self, maker: Maker, inputs: Sequence[Path]) -> None:
        """A broken, empty or missing file gives a document, or a `UserError` with its name."""
        loader = maker()
        for path in inputs:
            content = path.read_bytes()
            half = {"half a file": content[: len(content) // 2]}
            for what, broken in {**_BROKEN, **half, "no file": None}.items():
                path.unlink()
                if broken is not None:
                    path.write_bytes(broken)
                message = path.name
                try:
                    loader.load(path)
                except UserError as error:
                    message = str(error)
                except Exception as error:  # the author's class may raise anything
                    message = description_of(error)
                if path.name not in message:
                    fail(
                        loader,
                        f"failed on {what} ({message:.300}): raise leporello.core.errors.UserError"
                        " with the file's name and the fix",
                    )
                path.touch()


class TaskContract(PlugInContract):
    """A task yields examples with unique ids, the same each time and in every division."""

    @staticmethod
    def work(instance: Any, inputs: None) -> Any:
        """Returns the fingerprint and the fields of all examples."""
        del inputs
        examples = examples_of(instance, type(instance).__name__)
        return instance.fingerprint(), [_fields(example) for example in examples]

    def test_its_parameters_are_known(self, maker: Maker) -> None:
        """The fingerprint of a task depends on its data only."""
        task = maker()
        if not task.fingerprint() or task.fingerprint() != maker().fingerprint():
            fail(task, "must return a fingerprint: a text that is equal for equal data")

    def test_examples_on_one_document_stand_together(self, maker: Maker) -> None:
        """Consecutive examples are about one document, which is then divided and indexed once."""
        task = maker()
        examples = [*examples_of(task, type(task).__name__)]
        ids = [document.id for document, _ in groupby(examples, lambda e: e.document)]
        if len(set(ids)) < len(ids) or not ids:
            fail(
                task,
                "must yield the examples on one document one after the other with one Document"
                f" object, and documents with unique ids: {ids!r:.200}",
            )
        check_metrics(checked_metrics(task))
        if normalise := normalizer_of(task):
            for text in ("", "an answer", "\0 \ud800 👩‍👩‍👧"):
                normalise(text, examples[0])

    def test_a_layout_finds_the_same_examples(self, maker: Maker) -> None:
        """A class with `layout` and `examples_of` is tested with one and two documents at once."""
        task = maker()
        expected = type(self).work(task, None)[1]
        if hasattr(task, "__len__") and len(task) != len(expected):
            fail(task, f"has the length {len(task)}, but yields {len(expected)} examples")
        rows = [*task.layout()] if isinstance(task, Sharded) else []
        for size in (1, 2) if rows else ():
            parts = [(rows[n : n + size], n) for n in range(0, len(rows), size)]
            if [_fields(e) for part, n in parts for e in task.examples_of(part, n)] != expected:
                fail(
                    task,
                    f"`examples_of` with {size} documents of its layout at a time must yield the"
                    " examples of `examples`: otherwise scores depend on the number of workers",
                )


class MetricContract(PlugInContract):
    """A metric computes JSON statistics of each example, and numbers of many examples.

    Attributes:
        examples: Examples with references.
        answers: Answers that are scored for each example.
    """

    examples: ClassVar[tuple[Example, ...]] = tuple(examples_on(DOCUMENTS, QUESTIONS))
    answers: ClassVar[tuple[str, ...]] = ("", "cat", "no", "a red cat 12", "\0 \ud800 👩‍👩‍👧")

    @pytest.fixture
    def inputs(self) -> Sequence[tuple[str, Example]]:
        """Returns each answer with each example."""
        return [(answer, example) for example in self.examples for answer in self.answers]

    @staticmethod
    def work(instance: Any, inputs: Sequence[tuple[str, Example]]) -> list[Any]:
        """Returns the statistics of each answer, and two scores of statistics read from JSON."""
        statistics = []
        for answer, example in inputs:
            prediction = dataclasses.replace(empty_prediction(example), prediction=answer)
            with suppress(GoldError):
                statistics.append(_statistics(instance, prediction, example))
        stored = [json.loads(json.dumps(row)) for row in statistics if row is not None]
        return [*statistics, *(_aggregate(instance, rows) for rows in (stored, stored[:1]))]

    def test_files_hold_its_statistics_and_scores_are_numbers(
        self, maker: Maker, inputs: Sequence[tuple[str, Example]]
    ) -> None:
        """Storing or reordering the statistics does not change the score."""
        metric = maker()
        *statistics, scores, _ = self.results(metric, inputs)
        numbers = scores.values() if isinstance(scores, Mapping) else [scores]
        if not all(isinstance(n, (int, float)) and math.isfinite(n) for n in numbers):
            fail(metric, f"must aggregate to a number or to named numbers, not to {scores!r:.200}")
        rows = [row for row in statistics if row is not None]
        for variant, how in ((rows, "before and after JSON"), (rows[::-1], "in reverse order")):
            if not alike(_aggregate(metric, variant), scores, _ROUNDING):
                fail(metric, f"gives different scores for the same statistics {how}")


def _aggregate(metric: Any, rows: Sequence[Any]) -> Any:
    return metric.aggregate(rows) if rows else {}  # some metrics cannot score these examples


def _statistics(metric: Any, prediction: Prediction, example: Example) -> Any:
    """Returns a metric's statistics of an example; `Echo` answers the metric's requests."""
    if not isinstance(metric, Asks):
        return metric.statistics(prediction, example)
    asking, replies = metric.ask(prediction, example), None
    while True:
        try:
            requests = asking.send(replies) if replies else next(asking)
        except StopIteration as stop:
            return stop.value
        replies = Echo().read([request for request in requests if isinstance(request, Read)])


def _fields(record: Document | Example) -> list[Any]:
    """Returns the fields of a record; a document is replaced by its fields."""
    values = (getattr(record, f.name) for f in dataclasses.fields(record) if f.init)
    return [_fields(value) if isinstance(value, Document) else value for value in values]
