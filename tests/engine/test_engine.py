"""The engine: pooled reading, failures that stay alone, resume to the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_stages import All, TwoRounds, Words, joined, questions

from leporello.combiners import Stuff
from leporello.config import Pipeline
from leporello.config.metrics import metrics_of
from leporello.core.coverage import PARTS
from leporello.core.errors import UserError
from leporello.core.records import (
    JSON,
    CacheProtocol,
    Chunk,
    Combination,
    Document,
    Example,
    Fit,
    Generates,
    Hit,
    Output,
    Read,
    Search,
    Span,
)
from leporello.engine.limits import Limits
from leporello.engine.shard_rows import rows_of
from leporello.testing.kills import killed_after

SMALL = Limits(max_active=5, window=4)


@dataclass(frozen=True)
class Containing:
    """The chunks that contain the question."""

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        if "broken" in questions:
            raise LookupError("a broken question")
        return [[Hit(c, 1.0) for c in chunks if question in c.text] for question in questions]


@dataclass(frozen=True)
class Echo:
    """Answers with what it read and who its batch mates were, as a float reader may."""

    windows: list[int] = field(default_factory=list)

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        if any(read.question == "unreadable" for read in inputs):
            raise RuntimeError("cannot read this")
        self.windows.append(len(inputs))
        first = joined(inputs[0])
        return [Output(f"{joined(read)}/{first}/{len(inputs)}", score=0.5) for read in inputs]

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]


def _run(
    path: Path,
    examples: Sequence[Example],
    limits: Limits = SMALL,
    cache: CacheProtocol | None = None,
    **stages: Any,
) -> tuple[list[dict[str, Any]], Pipeline]:
    default: dict[str, Any] = {
        "chunker": Words(),
        "retriever": Containing(),
        "reader": Echo(),
        "combiner": TwoRounds(),
    }
    built = Pipeline(**{**default, **stages})
    return rows_of(path, examples, built, limits, cache=cache), built


def test_reads_of_many_examples_are_pooled(tmp_path: Path) -> None:
    """Windows are full although each example has only a few reads a round."""
    _, built = _run(tmp_path / "s.sqlite", questions(40), Limits(16, 8))
    windows = built.reader.windows
    assert sum(windows[:-3]) / len(windows[:-3]) > 7


def test_a_reader_may_want_more_inputs_at_once(tmp_path: Path) -> None:
    """Its class says so, and gets as many of an example's reads together."""

    @dataclass(frozen=True)
    class Quick(Echo):
        window_size = 40

    document = Document("long", " ".join(f"w{n}" for n in range(50)))
    example = Example("e", document, question="w")
    _, built = _run(tmp_path / "s.sqlite", [example], Limits(5, 8), reader=Quick())
    assert max(built.reader.windows) == 40


def test_a_window_never_exceeds_its_limit(tmp_path: Path) -> None:
    """One example with many reads is read in several windows."""
    document = Document("long", " ".join(f"w{n}" for n in range(50)))
    example = Example("e", document, question="w")
    _, built = _run(tmp_path / "s.sqlite", [example], Limits(5, 8))
    assert max(built.reader.windows) == 8


@dataclass(frozen=True)
class Chain:
    """Reads one hit after the other, each with the answer so far."""

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        text = ""
        for hit in hits:
            [output] = yield [Read((hit.chunk, text), example.question)]
            text = output.text
        return text


@pytest.mark.parametrize(
    "combiner", [Stuff(), TwoRounds(), Chain()], ids=lambda c: type(c).__name__
)
def test_a_run_killed_at_every_commit_ends_with_the_same_rows(
    tmp_path: Path, combiner: Any
) -> None:
    """The batches that are left are those of an unbroken run, in groups of five examples too."""
    examples = questions(17)
    whole, _ = _run(tmp_path / "whole.sqlite", examples, combiner=combiner)
    for commits in range(1, 99):
        path = tmp_path / f"killed {commits}.sqlite"
        with killed_after(commits) as killed:
            _run(path, examples, combiner=combiner)
        resumed, _ = _run(path, examples, combiner=combiner)
        assert resumed == whole
        if not killed:
            return
    pytest.fail("it never ends")


def test_batches_come_in_the_order_of_examples_and_places(tmp_path: Path) -> None:
    """All first rounds of a group of examples, then all second ones."""
    asked: list[list[str]] = []

    @dataclass(frozen=True)
    class Noting(Echo):
        def read(self, inputs: Sequence[Read]) -> list[Output]:
            asked.append([joined(read) for read in inputs])
            return [Output(joined(read).upper()) for read in inputs]

    examples = [Example(f"e{n}", Document(f"d{n}", f"a{n} b{n}"), "") for n in range(3)]
    _run(tmp_path / "s.sqlite", examples, Limits(2, 3), reader=Noting(), retriever=All())
    assert asked == [["a0", "b0", "a1"], ["b1"], ["A0+B0", "A1+B1"], ["a2", "b2"], ["A2+B2"]]


def test_a_finished_run_reads_nothing_again(tmp_path: Path) -> None:
    """The second run over a full journal calls the reader not once."""
    examples = questions(12)
    _run(tmp_path / "s.sqlite", examples)
    _, built = _run(tmp_path / "s.sqlite", examples)
    assert built.reader.windows == []


def test_a_question_that_breaks_the_retriever_fails_alone(tmp_path: Path) -> None:
    """The other questions on the same document are answered."""
    document = Document("d", "w1 w2")
    examples = [
        Example("good", document, question="w"),
        Example("bad", document, question="broken"),
    ]
    rows, _ = _run(tmp_path / "s.sqlite", examples)
    assert "prediction" in rows[0]
    assert rows[1]["failure"]["stage"] == "retriever"
    assert rows[1]["failure"]["error"] == "LookupError: a broken question"
    assert "in retrieve" in rows[1]["failure"]["traceback"]


def test_an_input_that_breaks_the_reader_fails_alone(tmp_path: Path) -> None:
    """A failing window is halved until the guilty input is alone."""
    document = Document("d", "unreadable w1 w2 w3")
    examples = [Example(f"e{n}", document, question="w") for n in range(5)]
    examples.insert(2, Example("bad", document, question="unreadable"))
    rows, _ = _run(tmp_path / "s.sqlite", examples)
    failed = [row["failure"] for row in rows if "failure" in row]
    assert [(row["id"], row["stage"]) for row in failed] == [("bad", "reader")]
    assert failed[0]["error"] == "RuntimeError: cannot read this"
    assert len(rows) == 6


def test_a_failed_read_is_thrown_into_the_combiner(tmp_path: Path) -> None:
    """A combiner that catches the failed read goes on."""

    @dataclass(frozen=True)
    class Careful:
        def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
            try:
                yield [Read((hits[0].chunk,), "unreadable")]
            except Exception as error:
                return f"caught {error}"
            return "not reached"

    rows, _ = _run(tmp_path / "s.sqlite", questions(1), combiner=Careful())
    assert rows[0]["prediction"]["prediction"] == "caught RuntimeError: cannot read this"


def test_a_failed_example_scores_as_an_empty_prediction(tmp_path: Path) -> None:
    """Its statistics are there, with a score of zero."""
    example = Example("bad", Document("d", "w"), question="broken", references=("w",))
    rows, _ = _run(tmp_path / "s.sqlite", [example])
    [f1] = metrics_of(["f1"]).values()
    assert f1.score(rows[0]["statistics"]["f1"]) == 0.0


def test_what_is_not_read_is_answered_at_once(tmp_path: Path) -> None:
    """`Search` with hits, `Fit` with what fits, `Generates` with whether the reader writes."""

    @dataclass(frozen=True)
    class Curious:
        def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
            more, fits, writes = yield [Search("w1"), Fit(Read(("a", "b", "c"))), Generates()]
            return f"{len(more)} {more[0].chunk.text} {fits} {writes}"

    example = Example("e", Document("d", "w0 w1 w2"), question="w0")
    rows, _ = _run(tmp_path / "s.sqlite", [example], combiner=Curious())
    assert rows[0]["prediction"]["prediction"] == "1 w1 3 False"
    assert [hit[:2] for hit in rows[0]["prediction"]["hits"]] == [[0, 2], [3, 5]]


def test_a_combiner_that_reads_nothing_need_not_be_a_generator(tmp_path: Path) -> None:
    """It returns its answer at once; a value that is no text is written as JSON."""

    @dataclass(frozen=True)
    class Count:
        def combine(self, example: Example, hits: Sequence[Hit]) -> JSON:
            return {"hits": len(hits)}

    example = Example("e", Document("d", "w0 w1"), question="w")
    rows, _ = _run(tmp_path / "s.sqlite", [example], combiner=Count())
    assert rows[0]["prediction"]["prediction"] == '{"hits": 2}'
    assert rows[0]["prediction"]["raw"] == {"hits": 2}


def test_no_stage_sees_references_or_evidence(tmp_path: Path) -> None:
    """The combiner's example has neither, unless its class says that it sees the gold."""

    @dataclass(frozen=True)
    class Peeking:
        def combine(self, example: Example, hits: Sequence[Hit]) -> JSON:
            return len(example.references) + len(example.evidence)

    @dataclass(frozen=True)
    class Oracle(Peeking):
        sees_gold = True

    example = Example("e", Document("d", "w"), references=("r",), evidence=(Span(0, 1),))
    blind, _ = _run(tmp_path / "blind.sqlite", [example], combiner=Peeking())
    seeing, _ = _run(tmp_path / "seeing.sqlite", [example], combiner=Oracle())
    assert (blind[0]["prediction"]["raw"], seeing[0]["prediction"]["raw"]) == (0, 2)


def test_the_ledger_counts_what_was_selected_read_and_cut(tmp_path: Path) -> None:
    """Characters of the hits, of what the reader says that it saw, and of the rest."""

    @dataclass(frozen=True)
    class Short:
        def read(self, inputs: Sequence[Read]) -> list[Output]:
            return [Output("x", read=(Span(0, 2),), cut=3) for _ in inputs]

        def count(self, texts: Sequence[str]) -> list[int]:
            return [0 for _ in texts]

    example = Example("e", Document("d", "w0 w11 z"), question="w")
    rows, _ = _run(tmp_path / "s.sqlite", [example], reader=Short(), combiner=Stuff())
    ledger = rows[0]["prediction"]["coverage"]
    assert {name: ledger[name] for name in ("selected", "read", "cut")} == {
        "selected": 5,
        "read": 2,
        "cut": 3,
    }
    assert sum(ledger[part] for part in PARTS) == 8
    assert rows[0]["prediction"]["read"] == [[0, 2]]


def test_a_document_is_divided_once_for_all_its_questions(tmp_path: Path) -> None:
    """The chunker runs once a document, the retriever gets all questions in one call."""
    divided: list[str] = []

    @dataclass(frozen=True)
    class Counting(Words):
        def chunk(self, document: Document) -> Iterator[Span]:
            divided.append(document.id)
            return super().chunk(document)

    _run(tmp_path / "s.sqlite", questions(30, documents=3), chunker=Counting())
    assert divided == ["d0", "d1", "d2"]


def test_a_chunker_that_asks_for_the_question_runs_once_an_example(tmp_path: Path) -> None:
    """Its chunks may differ from question to question."""

    @dataclass(frozen=True)
    class Around:
        def chunk(self, document: Document, question: str) -> Iterator[Span]:
            start = document.text.index(question)
            yield Span(start, start + len(question))

    document = Document("d", "w0 w1 w2")
    examples = [Example(q, document, question=q) for q in ("w0", "w2")]
    rows, _ = _run(tmp_path / "s.sqlite", examples, chunker=Around())
    assert [row["prediction"]["hits"] for row in rows] == [[[0, 2, 1.0]], [[6, 8, 1.0]]]


def test_a_mistake_of_the_users_stops_the_run_and_keeps_what_is_done(tmp_path: Path) -> None:
    """A `UserError` in a stage is no failed example; finished examples stay in the journal."""

    @dataclass(frozen=True)
    class Unplugged(Echo):
        def read(self, inputs: Sequence[Read]) -> list[Output]:
            if len(self.windows) == 3:
                raise UserError("the model is gone")
            return super().read(inputs)

    path = tmp_path / "s.sqlite"
    with pytest.raises(UserError, match="the model is gone"):
        _run(path, questions(40), reader=Unplugged())
    whole, _ = _run(tmp_path / "whole.sqlite", questions(40))
    resumed, _ = _run(path, questions(40))
    assert resumed == whole


def test_scores_that_are_no_numbers_are_no_scores(tmp_path: Path) -> None:
    """NaN never reaches a file, since JSON has no such number."""

    @dataclass(frozen=True)
    class Unsure(Echo):
        def read(self, inputs: Sequence[Read]) -> list[Output]:
            return [Output("x", score=float("nan")) for _ in inputs]

    rows, _ = _run(tmp_path / "s.sqlite", questions(1), reader=Unsure())
    assert rows[0]["calls"][0]["output"]["score"] is None


def test_numpy_numbers_are_as_good_as_python_ones(tmp_path: Path) -> None:
    """Offsets of a chunker that computes with arrays are written as plain numbers."""

    @dataclass(frozen=True)
    class Arrays:
        def chunk(self, document: Document) -> Iterator[Span]:
            offsets: Any = np.array([0, 2])
            yield Span(*offsets)

    rows, _ = _run(tmp_path / "s.sqlite", questions(1), chunker=Arrays())
    assert rows[0]["prediction"]["hits"] == [[0, 2, 1.0]]


def test_a_retriever_that_batches_questions_is_resumed_alike(tmp_path: Path) -> None:
    """All questions of a document are asked again together, also those already answered."""

    @dataclass(frozen=True)
    class Batching(Containing):
        def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
            hits = super().retrieve(questions, chunks)
            return [[Hit(hit.chunk, float(len(questions))) for hit in found] for found in hits]

    examples = questions(20)
    whole, _ = _run(tmp_path / "whole.sqlite", examples, retriever=Batching())
    for commits in range(1, 20, 3):
        path = tmp_path / f"killed {commits}.sqlite"
        with killed_after(commits):
            _run(path, examples, retriever=Batching())
        resumed, _ = _run(path, examples, retriever=Batching())
        assert resumed == whole


def test_a_task_may_bring_answers_into_the_form_that_its_metric_reads(tmp_path: Path) -> None:
    """The prediction is normalised, what the combiner returned is kept."""
    example = Example("e", Document("d", "w"), question="w", references=("W",))
    built = Pipeline(Words(), Containing(), Echo(), Stuff())
    [row] = rows_of(
        tmp_path / "s.sqlite", [example], built,
        metrics=["exact_match"],
        normalise=lambda text, asked: f"{text[:1].upper()}{asked.question[1:]}",
    )  # fmt: skip
    assert (row["prediction"]["prediction"], row["prediction"]["raw"]) == ("W", "w/w/1")
    [metric] = metrics_of(["exact_match"]).values()
    assert metric.score(row["statistics"]["exact_match"]) == 100
