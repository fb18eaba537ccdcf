"""Contract of the stages of a pipeline, which process documents and questions."""

import copy
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from unittest.mock import patch

import pytest

from leporello.cache.store import Cache
from leporello.config import Pipeline
from leporello.core.environment.classes import find_class
from leporello.core.protocols import KINDS
from leporello.core.records import Document, Example, Span
from leporello.engine.shard_rows import Rows, rows_of
from leporello.engine.store import Store
from leporello.testing.contract import Maker, PlugInContract, fail, steps
from leporello.testing.texts import DOCUMENTS, ODD, QUESTIONS, Echo, examples_on, long_text

_SHORT, _TIMES = 2_000, 8  # characters of a short text, and factor of the longer text
_MOST = 3  # times as long as linear: allows n log n, but not the square of n
_NOTICED = 2.0  # seconds; a shorter time is always accepted
_Result = TypeVar("_Result")


class TextContract(PlugInContract):
    """Tests of a chunker, enricher, retriever, reader or combiner.

    Attributes:
        kind: Key of the stage in a pipeline.
        documents: Documents of the examples.
        questions: Questions about each document.
        examples: Examples to use instead of those from documents and questions, unless empty.
        huge: Number of characters of the longest text: fewer than a million for slow models.
        refusals: Errors that the stage may raise for odd text.
        around: Other stages of the pipeline by key, which replace those of this package.
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
        """Returns the inputs of the stage for all examples."""
        return self.inputs_of(self.cases())

    def cases(self) -> Sequence[Example]:
        """Returns copies of the examples, without memoised values."""
        return copy.deepcopy(self.examples or [*examples_on(self.documents, self.questions)])

    def inputs_of(self, examples: Sequence[Example]) -> Any:
        """Returns the inputs of the stage for examples."""
        return examples

    def case(self, text: str, question: str = QUESTIONS[0]) -> Any:
        """Returns the inputs of the stage for a question on a text with three parts."""
        return self.inputs_of([_example("example", text, question)])

    def pipeline(self, stage: Any) -> Pipeline:
        """Returns a pipeline with the stage in it."""
        default = {
            "chunker": _built_in("chunker", "Sentences")(size=30),
            "retriever": _built_in("retriever", "First")(k=4),
            "reader": Echo(),
            "combiner": _built_in("combiner", "Stuff")(),
        }
        return Pipeline(**{**default, **self.around, self.kind: stage})

    def rows(self, stage: Any, path: Path, cache: Cache | None = None) -> Rows:
        """Returns the rows of a run of the examples; fails the test if an example fails."""
        examples = self.cases()
        for example in examples:
            if cache:
                example.document.use_cache(cache)
        rows = rows_of(path, examples, self.pipeline(stage), cache=cache)
        if failed := [row["failure"] for row in rows if "failure" in row]:
            fail(stage, f"failed in a run: {failed[0]['stage']}: {failed[0]['error']}")
        return rows

    def test_any_text_is_worked_on(self, maker: Maker) -> None:
        """Texts are empty or contain emoji, combining or control characters, NUL or CRLF."""
        stage = maker()
        try:
            type(self).work(stage, self.inputs_of([_example(*odd) for odd in ODD]))
        except Exception:  # run the texts one by one to find the one that fails
            for name, text, question in ODD:
                what = f"odd text ({name}), which is valid input"
                self.results(stage, self.case(text, question), what, self.refusals)

    def test_time_grows_with_the_length_and_not_with_its_square(self, maker: Maker) -> None:
        """Time is the number of executed lines, which does not depend on other processes."""
        stage, short = maker(), min(_SHORT, self.huge // _TIMES)
        self.results(stage, self.case("a b"))  # loads models
        few = steps(partial(self.results, stage, self.case(long_text(short))))
        most, longer = _MOST * _TIMES * few, self.case(long_text(short * _TIMES))
        if steps(partial(self.results, stage, longer), most) > most:
            fail(
                stage,
                f"runs {few:,} lines for {short:,} characters and more than {most:,} for {_TIMES}"
                " times as many: a book would take days; find the loop within a loop",
            )

    def test_time_for_a_line_of_a_megabyte(self, maker: Maker) -> None:
        """Measures CPU time, to include loops in libraries; `-k "not time"` skips it."""
        stage, before = maker(), 0.0
        for size in (self.huge // _TIMES**2, self.huge // _TIMES, self.huge):
            inputs, start = self.case(long_text(size, " ")), time.process_time()
            self.results(stage, inputs, f"a line of {size:,} characters")
            seconds = time.process_time() - start
            if before and seconds > max(_NOTICED, _MOST * _TIMES * before):
                fail(
                    stage,
                    f"took {seconds:.1f} s for a line of {size:,} characters, and {before:.1f} s"
                    " for an eighth of it; does each step copy or search the remaining text?",
                )
            before = seconds

    def test_a_killed_run_goes_on_to_the_same_results(self, maker: Maker, tmp_path: Path) -> None:
        """The run resumes from its store, whatever it contains."""
        expected = self.rows(maker(), tmp_path / "whole.sqlite")
        for rows in resumed(lambda store: self.rows(maker(), store), tmp_path, (2, 4)):
            self.agree(maker(), expected, rows, "in a run that was killed")

    def test_a_cache_gives_what_was_made(self, maker: Maker, tmp_path: Path) -> None:
        """Results with an empty and a filled cache are those without a cache."""
        expected, cache = self.rows(maker(), tmp_path / "made.sqlite"), Cache(tmp_path / "cache")
        for state in ("cold", "warm"):
            rows = self.rows(maker(), tmp_path / f"{state}.sqlite", cache)
            self.agree(maker(), expected, rows, f"with a {state} cache")


def _example(name: str, text: str, question: str) -> Example:
    ends = [len(text) * third // 3 for third in range(4)]
    return Example(name, Document(name, text, parts=tuple(map(Span, ends, ends[1:]))), question)


def _built_in(key: str, name: str) -> Any:
    return find_class(name, KINDS[key], Path(), ours=True)


class KilledError(BaseException):
    """Simulates a kill; not an Exception, so that no stage catches it."""


@contextmanager
def killed_after(commits: int) -> Iterator[list[bool]]:
    """Ends the block at the first commit after a number of commits; yields a list.

    The list contains True once the block has been ended.
    """
    commit, number, killed = Store.commit, 0, list[bool]()

    def count_or_kill(store: Store) -> None:
        nonlocal number
        if number == commits:
            killed[:] = [True]
            raise KilledError
        if store._rows or store._database.in_transaction:
            number += 1
        commit(store)

    with suppress(KilledError), patch.object(Store, "commit", count_or_kill):
        yield killed


def resumed(
    run: Callable[[Path], _Result], folder: Path, commits: Iterable[int] | None = None
) -> Iterator[_Result]:
    """Yields the results of runs that were killed after these numbers of commits, and resumed.

    `run` runs with a store at a path in the folder. Without numbers, every commit is tried.
    """
    for number in count() if commits is None else commits:
        path = folder / f"killed after {number}.sqlite"
        with killed_after(number) as killed:
            run(path)
        if not killed:
            return
        yield run(path)
