"""What holds for the stages of a pipeline, which work on documents and questions."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from leporello.cache.store import Cache
from leporello.config import Pipeline
from leporello.core.environment.classes import find_class
from leporello.core.protocols import KINDS
from leporello.core.records import Document, Example, Span
from leporello.engine.shard_rows import Rows, rows_of
from leporello.testing.contract import Maker, PlugInContract, fail, steps
from leporello.testing.kills import resumed
from leporello.testing.texts import DOCUMENTS, ODD, QUESTIONS, Echo, examples_on, long_text

_SHORT, _TIMES = 2_000, 8  # characters, and how many times as many a text has that is likened
_MOST = 3  # times as much as linear: n log n is fine, the square of n is not
_NOTICED = 2.0  # seconds of computing, below which nobody minds


class TextContract(PlugInContract):
    """What a chunker, enricher, retriever, reader or combiner is tried on.

    Attributes:
        kind: Key of a pipeline that it stands under.
        documents: Documents that are worked on.
        questions: Questions that are asked of each.
        examples: Examples to work on instead; made of documents and questions where empty.
        huge: Number of characters of the longest text: fewer than a million for slow models.
        refusals: Errors by which it may refuse odd text.
        around: Stages of the pipeline that it is tried in, by key; ours where there are none.
    """

    kind: ClassVar[str]
    documents: ClassVar[tuple[Document, ...]] = DOCUMENTS
    questions: ClassVar[tuple[str, ...]] = QUESTIONS
    examples: ClassVar[tuple[Example, ...]] = ()
    huge: ClassVar[int] = 1_000_000
    refusals: ClassVar[tuple[type[Exception], ...]] = ()
    around: ClassVar[Mapping[str, Any]] = {}

    @pytest.fixture
    def inputs(self) -> Any:
        """Returns what the stage gets of the examples."""
        return self.inputs_of(self.cases())

    def cases(self) -> Sequence[Example]:
        """Returns copies of the examples, for which nothing is remembered."""
        return copy.deepcopy(self.examples or [*examples_on(self.documents, self.questions)])

    def inputs_of(self, examples: Sequence[Example]) -> Any:
        """Returns what the stage gets of examples."""
        return examples

    def case(self, text: str, question: str = QUESTIONS[0]) -> Any:
        """Returns what the stage gets of one text, which has three parts, and a question."""
        return self.inputs_of([_example("example", text, question)])

    def pipeline(self, stage: Any) -> Pipeline:
        """Returns a pipeline with the stage in it."""
        usual = {
            "chunker": _built_in("chunker", "Sentences")(size=30),
            "retriever": _built_in("retriever", "BM25")(k=4),
            "reader": Echo(),
            "combiner": _built_in("combiner", "Stuff")(),
        }
        return Pipeline(**{**usual, **self.around, self.kind: stage})

    def rows(self, stage: Any, path: Path, cache: Cache | None = None) -> Rows:
        """Returns what a run of the examples comes to; fails if one does."""
        examples = self.cases()
        for example in examples:
            if cache:
                example.document.use_cache(cache)
        rows = rows_of(path, examples, self.pipeline(stage), cache=cache)
        if failed := [row["failure"] for row in rows if "failure" in row]:
            fail(stage, f"failed in a run: {failed[0]['stage']}: {failed[0]['error']}")
        return rows

    def test_any_text_is_worked_on(self, maker: Maker) -> None:
        """Empty, emoji, combining and control characters, NUL, CRLF, from right to left."""
        stage = maker()
        try:
            type(self).work(stage, self.inputs_of([_example(*odd) for odd in ODD]))
        except Exception:  # told by the one that is guilty
            for what, text, question in ODD:
                told = f"odd text ({what}), which is no fault"
                self.worked(stage, self.case(text, question), told, self.refusals)

    def test_time_grows_with_the_length_and_not_with_its_square(self, maker: Maker) -> None:
        """Counted in lines of Python that run, which no other process changes."""
        stage, short = maker(), min(_SHORT, self.huge // _TIMES)
        self.worked(stage, self.case("a b"))  # loads models
        few = steps(partial(self.worked, stage, self.case(long_text(short))))
        most, longer = _MOST * _TIMES * few, self.case(long_text(short * _TIMES))
        if steps(partial(self.worked, stage, longer), most) > most:
            fail(
                stage,
                f"runs {few:,} lines for {short:,} characters and more than {most:,} for {_TIMES}"
                " times as many: a book would take days; find the loop within a loop",
            )

    def test_time_for_a_line_of_a_megabyte(self, maker: Maker) -> None:
        """By the clock, so that loops within libraries show; `-k "not time"` leaves it out."""
        stage, before = maker(), 0.0
        for size in (self.huge // _TIMES**2, self.huge // _TIMES, self.huge):
            inputs, started = self.case(long_text(size, " ")), time.process_time()
            self.worked(stage, inputs, f"a line of {size:,} characters")
            took = time.process_time() - started
            if before and took > max(_NOTICED, _MOST * _TIMES * before):
                fail(
                    stage,
                    f"took {took:.1f} s for a line of {size:,} characters, and {before:.1f} s for"
                    " an eighth of it; does it copy or search the rest of the text at each step?",
                )
            before = took

    def test_a_killed_run_goes_on_to_the_same_results(self, maker: Maker, tmp_path: Path) -> None:
        """From whatever the store held by then."""
        expected = self.rows(maker(), tmp_path / "whole.sqlite")
        for rows in resumed(lambda store: self.rows(maker(), store), tmp_path, (2, 4)):
            self.agree(maker(), expected, rows, "in a run that was killed")

    def test_a_cache_gives_what_was_made(self, maker: Maker, tmp_path: Path) -> None:
        """Cold and warm: chunks, indexes and outputs that are kept are those made anew."""
        expected, cache = self.rows(maker(), tmp_path / "made.sqlite"), Cache(tmp_path / "cache")
        for state in ("cold", "warm"):
            rows = self.rows(maker(), tmp_path / f"{state}.sqlite", cache)
            self.agree(maker(), expected, rows, f"with a {state} cache")


def _example(name: str, text: str, question: str) -> Example:
    ends = [len(text) * third // 3 for third in range(4)]
    return Example(name, Document(name, text, parts=tuple(map(Span, ends, ends[1:]))), question)


def _built_in(key: str, name: str) -> Any:
    return find_class(name, KINDS[key], Path(), ours=True)
