"""Tests of putting texts in order: by pairs, by coherence, and by place in the source."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import one_example
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from official_rows import official_input, sorting_row
from retrieval import joined, reversed_parts
from row_files import write_rows

from leporello.api import run
from leporello.chunkers import FixedTokens
from leporello.combiners import OrderByCoherence, OrderByMatch, OrderByPairs
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.core.errors import ReadError
from leporello.core.records import Document, Example, Hit, Output, Read, Search
from leporello.retrievers import BM25
from leporello.tasks import ReportSumSort

BOTH = (OrderByPairs(), OrderByCoherence())
PAIRS = OrderByPairs("pair", both_ways=False)
WORDS = st.lists(st.sampled_from(["one", "two", "ox", ""]), max_size=7)


def example(texts: Sequence[str], label: str = "") -> Example:
    """Returns an example whose document has the texts as parts, with optional labels."""
    labelled = [f"{label} {n}:\n{text}" for n, text in enumerate(texts, 1)] if label else texts
    parts = tuple(chunk.span for chunk in joined(labelled, "\n\n"))
    return Example("e", Document("d", "\n\n".join(labelled), parts=parts))


def drive(
    combiner: Any, example: Example, answer: Callable[[Read], Output], search: Any = None
) -> tuple[str, list[list[Read]]]:
    first = [] if search else reversed_parts(example)
    return one_example.drive(combiner, answer, example, first, search)


def texts_of(read: Read) -> tuple[str, str]:
    if read.pair:
        return read.pair
    _, first, _, second = read.passages
    return first.text, second.text  # type: ignore[union-attr]  # both are chunks


def scored(odds: float) -> Output:
    return Output("", scores=(min(0.0, odds), min(0.0, -odds)))


def by_alphabet(read: Read) -> Output:
    """Orders two texts by alphabet, with a bias towards one position."""
    first, second = texts_of(read)
    return scored(0.5 if first < second else -2.5)


def ids(answer: str) -> list[int]:
    return [int(number) for number in answer.split(",")] if answer else []


def test_asking_both_ways_cancels_a_bias_towards_the_first_text() -> None:
    shuffled = example(list("dbeac"))

    def biased(read: Read) -> Output:
        first, second = texts_of(read)
        return scored(3.0 if first < second else 2.0)

    assert drive(OrderByPairs(), shuffled, biased)[0] == "4, 2, 5, 1, 3"
    assert drive(OrderByPairs(both_ways=False), shuffled, biased)[0] == "1, 2, 3, 4, 5"


def test_all_pairs_are_read_in_one_round_and_outvote_a_wrong_comparison() -> None:
    """A wrong comparison changes nothing if it is not more certain than the others."""

    def wrong_once(read: Read) -> Output:
        first, second = texts_of(read)
        flipped = {first, second} == {"a", "e"}
        return scored(1.0 if (first < second) != flipped else -1.0)

    answer, rounds = drive(OrderByPairs(), example(list("dbeac")), wrong_once)
    assert answer == "4, 2, 5, 1, 3"
    assert [len(reads) for reads in rounds] == [5 * 4]


def test_a_pair_classifier_reads_pairs_and_their_chunks() -> None:
    def probability(read: Read) -> Output:
        first, second = texts_of(read)
        return Output("", score=1.0 if first < second else 0.0)

    answer, [[read, *_]] = drive(OrderByPairs(ask="pair"), example(list("ba")), probability)
    assert answer == "2, 1"
    assert read.pair == ("b", "a")
    assert [getattr(passage, "text", "") for passage in read.passages] == ["b", "a"]


@pytest.mark.parametrize(
    ("combiner", "output", "message"),
    [
        (OrderByPairs(ask="pair"), Output("", -7.0), "such as PairClassifier"),
        (OrderByPairs(), Output("A", 0.1), "a reader that scores choices, such as CausalLM"),
        (OrderByCoherence(), Output("a"), "use the reader LogLikelihood"),
        (OrderByMatch(), Output("a"), "use OrderByPairs or OrderByCoherence"),  # without choices
    ],
)
def test_unsuitable_readers_and_examples_are_refused(
    combiner: Any, output: Output, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        drive(combiner, example(list("ba")), lambda _: output)


def test_labels_that_reveal_the_given_order_are_not_read() -> None:
    """`Summary 1:` is left out if all texts have a label in order; numbers of chapters stay."""
    _, [[read, *_]] = drive(OrderByPairs(), example(list("ab"), "Summary"), by_alphabet)
    assert texts_of(read) == ("a", "b")
    _, [[read, *_]] = drive(OrderByPairs(), example(["Act 2: a", "Act 1: b"]), by_alphabet)
    assert texts_of(read) == ("Act 2: a", "Act 1: b")
    many = f"x {'1' * 5000}: a"  # more digits than Python converts to a number
    _, [[read, *_]] = drive(OrderByPairs(), example([many, "b"]), by_alphabet)
    assert texts_of(read) == (many, "b")


@pytest.mark.parametrize("combiner", BOTH)
def test_missing_parts_and_too_many_parts_are_refused(combiner: Any) -> None:
    many = example([f"text {n}" for n in range(301)])
    with pytest.raises(ValueError, match="use the chunker Parts and the retriever All"):
        next(combiner.combine(many, reversed_parts(many)[:2]))
    with pytest.raises(ValueError, match="301 passages are 90,300 pairs to read"):
        next(combiner.combine(many, reversed_parts(many)))


def chain(read: Read) -> Output:
    """Scores a text higher after its predecessor in the alphabet."""
    [passage] = read.passages
    text = passage if isinstance(passage, str) else passage.text
    letters = text.split()
    follows = len(letters) > 1 and ord(letters[1]) - ord(letters[0]) == 1
    return Output("", score=-10.0 * len(letters) - sum(map(ord, letters)) + 3.0 * follows)


@pytest.mark.parametrize("count", [2, 5, 14])
def test_coherence_finds_the_order_with_the_largest_gain(count: int) -> None:
    # A permutation, since 3 and the count are coprime.
    letters = [chr(ord("a") + n * 3 % count) for n in range(count)]
    answer, rounds = drive(OrderByCoherence(), example(letters), chain)
    assert [letters[n - 1] for n in ids(answer)] == sorted(letters)
    assert [len(reads) for reads in rounds] == [count * count]


@settings(max_examples=60)
@given(texts=WORDS, seed=st.integers(0, 9), failing=st.integers(0, 3), label=st.booleans())
@pytest.mark.parametrize("combiner", [*BOTH, PAIRS])
def test_the_answer_is_a_permutation_for_any_outputs(
    combiner: Any, texts: list[str], seed: int, failing: int, label: bool
) -> None:
    """If some reads fail, there is a warning; if all fail, their error is raised."""
    chance = np.random.default_rng(seed)
    failures, outputs = [0], [0]

    def nonsense(read: Read) -> Output:
        if crc32(repr([getattr(p, "span", p) for p in read.passages]).encode()) % 4 < failing:
            failures[0] += 1
            raise ReadError("cannot read this")
        outputs[0] += 1
        value = float(chance.choice([0.0, 0.5, 1.0]))
        return Output("", score=value, scores=(value, 1 - value))

    examined = example(texts, "Summary" if label else "")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            answer, _ = drive(combiner, examined, nonsense)
        except ReadError:
            assert failures[0]
            assert not outputs[0]
            return
    assert sorted(ids(answer)) == list(range(1, len(texts) + 1))
    assert bool(warned) == bool(failures[0])


@pytest.mark.parametrize("combiner", BOTH)
def test_other_reads_decide_if_some_fail(combiner: Any) -> None:
    def no_b(read: Read) -> Output:
        text = "".join(getattr(passage, "text", str(passage)) for passage in read.passages)
        if "b" in text.removeprefix("Passage"):
            raise ReadError("cannot read this")
        return chain(read) if isinstance(combiner, OrderByCoherence) else by_alphabet(read)

    with pytest.warns(UserWarning, match="some reads of passages to compare failed"):
        answer, _ = drive(combiner, example(list("dbc")), no_b)
    assert ids(answer).index(3) < ids(answer).index(1)


REPORT = "The fox sleeps. A mill burns down. The king of cats arrives. Nobody pays the miller."
SUMMARIES = ("the king arrives", "nobody pays", "a fox is asleep: it sleeps", "burns: the mill")
ROW = sorting_row("a", REPORT, SUMMARIES, "3, 4, 1, 2")


def search_in(example: Example, k: int = 20) -> Callable[[Search], tuple[Hit, ...]]:
    chunks = divide(FixedTokens(4), example.document)

    def answer(search: Search) -> tuple[Hit, ...]:
        query = Example("s", example.document, question=search.question)
        return tuple(retrieve(BM25(k), [query], chunks)[0])

    return answer


def unread(read: Read) -> Output:
    raise AssertionError(read)


def test_matching_orders_choices_by_their_places_in_the_document() -> None:
    report = Example("e", Document("d", REPORT), choices=SUMMARIES)
    assert drive(OrderByMatch(), report, unread, search_in(report))[0] == "3, 4, 1, 2"


def test_a_choice_that_is_not_found_is_ordered_as_if_in_the_middle() -> None:
    choices = ("xyzzy", *SUMMARIES[:3])
    report = Example("e", Document("d", REPORT), choices=choices)
    with pytest.warns(UserWarning, match="found no place for some of the texts"):
        answer, _ = drive(OrderByMatch(), report, unread, search_in(report))
    assert answer == "4, 1, 2, 3"
    with pytest.warns(UserWarning, match="found no place"):
        assert drive(OrderByMatch(), report, unread, lambda _: ())[0] == "1, 2, 3, 4"


def test_matching_weighs_other_hits_by_their_scores() -> None:
    """A best hit with a small lead does not decide alone."""
    letters = Example("e", Document("d", "abcdefgh"), choices=("x", "y"))
    chunks = [letters.document.chunk(n, n + 1) for n in range(8)]
    answers = {
        "x": (Hit(chunks[0], 1.0), Hit(chunks[6], 0.99), Hit(chunks[7], 0.99)),
        "y": (Hit(chunks[4], 2.0), Hit(chunks[1], -3.0)),
    }
    answer = lambda search: answers[search.question]  # noqa: E731 -- short
    assert drive(OrderByMatch(), letters, unread, answer)[0] == "2, 1"


def test_the_task_has_the_report_as_document_and_summaries_as_choices(tmp_path: Path) -> None:
    second = sorting_row("b", REPORT, "xy", "2, 1")
    task = ReportSumSort(write_rows(tmp_path / "rows.jsonl", ROW, second))
    example_a, example_b = task.examples()
    assert len(task) == 2
    assert example_a.document is example_b.document
    assert (example_a.document.text, example_a.document.parts) == (REPORT, ())
    assert example_a.choices == SUMMARIES
    assert example_a.references == ("3, 4, 1, 2",)
    assert official_input(example_a) == ROW["input"]
    assert task.normalise("3 > 4 > 1 > 2", example_a) == "3, 4, 1, 2"


def test_without_the_source_the_summaries_are_the_document(tmp_path: Path) -> None:
    task = ReportSumSort(write_rows(tmp_path / "rows.jsonl", ROW), source=False)
    [summaries] = task.examples()
    parts = [summaries.document.text[part.start : part.end] for part in summaries.document.parts]
    assert parts == [f"Summary {n}:\n{text}" for n, text in enumerate(SUMMARIES, 1)]
    assert "fox sleeps" not in summaries.document.text
    assert summaries.choices == ()


def test_an_invalid_row_does_not_affect_other_rows(tmp_path: Path) -> None:
    bare, short = (sorting_row(name, REPORT, SUMMARIES, "1, 2") for name in "ab")
    bare["inner_docs_start_indices"] = []
    good = sorting_row("c", REPORT, "xy", "2, 1")
    task = ReportSumSort(write_rows(tmp_path / "rows.jsonl", bare, short, good))
    faults = {example.id: example.fault for example in task.examples()}
    assert "no summaries" in faults["a"]
    assert "does not order 4 summaries" in faults["b"]
    assert faults["c"] == ""


def test_built_in_pipelines_for_ordering_run(tmp_path: Path, tiny: Callable[[str], str]) -> None:
    """One uses the source; others use tiny models, whose answers are only permutations."""
    data = write_rows(tmp_path / "rows.jsonl", ROW)
    config = tmp_path / "own.yaml"
    config.write_text(
        f"tasks:\n  near: {{class: ReportSumSort, path: {data}}}\n"
        f"  alone: {{class: ReportSumSort, path: {data}, source: false}}\n",
        encoding="utf-8",
    )
    four = ["chunker.size=4"]
    options: dict[str, Any] = {"config": [config], "workers": 0}
    out = tmp_path / "near"
    summary = run(["report-sum-sort-bm25"], ["near"], overrides=four, out=out, **options)
    assert summary.results[0].scores == {"concordance_index": 100.0}
    names = [f"zero-book-sum-sort-{name}" for name in ("pairs", "coherence")]
    sets = [f"reader.model={tiny('llama')}", "reader.max_input_tokens=200"]
    summary = run(names, ["alone"], overrides=sets, out=tmp_path / "alone", **options)
    for name in names:
        [prediction] = summary.predictions(name, "alone")
        assert sorted(ids(prediction.prediction)) == [1, 2, 3, 4]
