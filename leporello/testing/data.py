"""The contracts of loaders, tasks and metrics."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

import pytest

from leporello.core.calls.loader_calls import load_with
from leporello.core.errors import UserError
from leporello.core.protocols import Sharded
from leporello.core.records import Document, Example, Prediction, Read
from leporello.engine.results.serialization import empty_prediction
from leporello.engine.task_examples import checked_metrics, examples_of, normalizer_of
from leporello.metrics import GoldError, check_metrics
from leporello.metrics.protocol import Asks
from leporello.testing.contract import Maker, PlugInContract, alike, fail, told_of
from leporello.testing.texts import DOCUMENTS, QUESTIONS, Echo, examples_on

_ROUNDING = 1e-6
_NOT_SOUND = {"zeros": bytes(500), "no text at all": bytes(range(256)) * 3, "nothing": b""}


class LoaderContract(PlugInContract):
    """A document of a sound file, a document or one plain error of any other.

    Attributes:
        files: Bytes of sound files by name: some of each kind that it reads.
    """

    files: ClassVar[Mapping[str, bytes]] = {}

    @pytest.fixture
    def inputs(self, maker: Maker, tmp_path: Path) -> Sequence[Path]:
        """Returns the sound files' paths."""
        folder, files = tmp_path / "sound", self.files_of(maker())
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        return [folder / name for name in files]

    def files_of(self, made: Any) -> Mapping[str, bytes]:
        """Returns the files, or one of plain text where none are said."""
        suffix = next(iter(getattr(made, "suffixes", ())), ".txt")
        return self.files or {f"plain{suffix}": b"A heading\n\nSome words, and a stop.\n"}

    @staticmethod
    def work(made: Any, inputs: Sequence[Path]) -> list[Any]:
        """Returns all that each document tells."""
        return [_fields(made.load(path)) for path in inputs]

    def test_spans_lie_within_the_text(self, maker: Maker, inputs: Sequence[Path]) -> None:
        """Those of sections, parts and places; and nothing in the folder is changed."""
        made, [first, *_] = maker(), inputs
        before = {path: path.read_bytes() for path in inputs}
        for path in inputs:
            try:
                load_with(made, path)
            except UserError as error:
                fail(made, f"failed on a sound file: {error}")
        if {path: path.read_bytes() for path in first.parent.iterdir()} != before:
            fail(made, "changes the folder that it reads from")

    def test_what_is_no_such_file_is_told(self, maker: Maker, inputs: Sequence[Path]) -> None:
        """Half a file, zeros, nothing, none: a document still, or a `UserError` that names it."""
        made = maker()
        for path in inputs:
            content = path.read_bytes()
            half = {"half a file": content[: len(content) // 2]}
            for what, other in {**_NOT_SOUND, **half, "no file": None}.items():
                path.unlink()
                if other is not None:
                    path.write_bytes(other)
                told = path.name
                try:
                    made.load(path)
                except UserError as error:
                    told = str(error)
                except Exception as error:  # whatever the author's class raises
                    told = told_of(error)
                if path.name not in told:
                    fail(
                        made,
                        f"failed on {what} ({told:.300}): raise leporello.core.errors.UserError"
                        " with the file's name and what to do",
                    )
                path.touch()


class TaskContract(PlugInContract):
    """Examples with ids of their own, the same ones each time, however they are cut."""

    @staticmethod
    def work(made: Any, inputs: None) -> Any:
        """Returns its fingerprint and all examples."""
        del inputs
        return made.fingerprint(), [_fields(e) for e in examples_of(made, type(made).__name__)]

    def test_its_parameters_are_known(self, maker: Maker) -> None:
        """A task is known by the fingerprint of its data."""
        made = maker()
        if not made.fingerprint() or made.fingerprint() != maker().fingerprint():
            fail(made, "must return a fingerprint: a text that the same data always have")

    def test_examples_on_one_document_stand_together(self, maker: Maker) -> None:
        """They share the document, so that it is divided and indexed once."""
        made = maker()
        examples = [*examples_of(made, type(made).__name__)]
        ids = [document.id for document, _ in groupby(examples, lambda e: e.document)]
        if len(set(ids)) < len(ids) or not ids:
            fail(
                made,
                "must yield examples, those on one document one after the other with one Document"
                f" object, and no two documents of one id: {ids!r:.200}",
            )
        check_metrics(checked_metrics(made))
        if normalise := normalizer_of(made):
            for text in ("", "an answer", "\0 \ud800 👩‍👩‍👧"):
                normalise(text, examples[0])

    def test_a_layout_finds_the_same_examples(self, maker: Maker) -> None:
        """Where the class has `layout` and `examples_of`: by one document, and by two."""
        made = maker()
        whole = type(self).work(made, None)[1]
        if hasattr(made, "__len__") and len(made) != len(whole):
            fail(made, f"has the length {len(made)}, and yields {len(whole)} examples")
        rows = [*made.layout()] if isinstance(made, Sharded) else []
        for size in (1, 2) if rows else ():
            parts = [(rows[n : n + size], n) for n in range(0, len(rows), size)]
            if [_fields(e) for part, n in parts for e in made.examples_of(part, n)] != whole:
                fail(
                    made,
                    f"yields other examples by `examples_of`, given {size} documents of its layout"
                    " at a time, than by `examples`: several machines would score something else",
                )


class MetricContract(PlugInContract):
    """Numbers of each example, which files can hold, and of many.

    Attributes:
        examples: Examples with what they are scored against.
        answers: Answers that are scored against each.
    """

    examples: ClassVar[tuple[Example, ...]] = tuple(examples_on(DOCUMENTS, QUESTIONS))
    answers: ClassVar[tuple[str, ...]] = ("", "cat", "no", "a red cat 12", "\0 \ud800 👩‍👩‍👧")

    @pytest.fixture
    def inputs(self) -> Sequence[tuple[str, Example]]:
        """Returns each answer to each example."""
        return [(answer, example) for example in self.examples for answer in self.answers]

    @staticmethod
    def work(made: Any, inputs: Sequence[tuple[str, Example]]) -> list[Any]:
        """Returns the statistics of each answer, as a file holds them, and what they come to."""
        statistics = []
        for answer, example in inputs:
            prediction = dataclasses.replace(empty_prediction(example), prediction=answer)
            with suppress(GoldError):
                statistics.append(_statistics(made, prediction, example))
        kept = [json.loads(json.dumps(each)) for each in statistics if each is not None]
        return [*statistics, made.aggregate(kept), made.aggregate(kept[:1])]

    def test_files_hold_its_statistics_and_scores_are_numbers(
        self, maker: Maker, inputs: Sequence[tuple[str, Example]]
    ) -> None:
        """What is read from a file is scored as what was made; the order is of no account."""
        made = maker()
        *statistics, scores, _ = self.worked(made, inputs)
        numbers = scores.values() if isinstance(scores, Mapping) else [scores]
        if not all(isinstance(n, (int, float)) and math.isfinite(n) for n in numbers):
            fail(made, f"must aggregate to a number or to named numbers, not to {scores!r:.200}")
        made_now = [each for each in statistics if each is not None]
        for other, how in (
            (made_now, "than were read from a file"),
            (made_now[::-1], "in reverse"),
        ):
            if not alike(made.aggregate(other), scores, _ROUNDING):
                fail(made, f"comes to other scores by statistics {how}")


def _statistics(made: Any, prediction: Prediction, example: Example) -> Any:
    """Returns what a metric says of an example; one that asks is answered by a simple reader."""
    if not isinstance(made, Asks):
        return made.statistics(prediction, example)
    asking, replies = made.ask(prediction, example), None
    while True:
        try:
            requests = asking.send(replies) if replies else next(asking)
        except StopIteration as stop:
            return stop.value
        replies = Echo().read([request for request in requests if isinstance(request, Read)])


def _fields(record: Document | Example) -> list[Any]:
    """Returns what a record tells, its document by its content."""
    values = (getattr(record, f.name) for f in dataclasses.fields(record) if f.init)
    return [_fields(value) if isinstance(value, Document) else value for value in values]
