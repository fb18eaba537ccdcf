"""Texts put in order: by pairs, by coherence, by their place in the source."""

from __future__ import annotations

import json
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
from official_rows import sorting_row
from tiny_models import save

from leporello.api import run
from leporello.chunkers import FixedTokens, Parts
from leporello.combiners import OrderByCoherence, OrderByMatch, OrderByPairs
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.core.errors import ReadError
from leporello.core.records import Document, Example, Hit, Output, Read, Search, Span
from leporello.retrievers import BM25
from leporello.tasks import ReportSumSort

WORDS = st.lists(st.sampled_from(["one", "two", "ox", ""]), max_size=7)


def example(texts: Sequence[str], label: str = "") -> Example:
    """Returns an example whose document's parts are these texts."""
    parts, text = [], ""
    for number, own in enumerate(texts, 1):
        labelled = f"{label} {number}:\n{own}" if label else own
        parts.append(Span(len(text), len(text) + len(labelled)))
        text += labelled + "\n\n"
    return Example("e", Document("d", text, parts=tuple(parts)))


def hits(of: Example) -> list[Hit]:
    """Returns its parts, the last one first: order is no rank here."""
    return [Hit(chunk, 0.0) for chunk in reversed(divide(Parts(), of.document))]


def drive(
    combiner: Any, of: Example, said: Callable[[Read], Output], found: Any = None
) -> tuple[str, list[list[Read]]]:
    """Runs a combiner to its end, without hits where it searches."""
    return one_example.drive(combiner, of, [] if found else hits(of), said, found)


def texts_of(read: Read) -> tuple[str, str]:
    """Returns the two texts of a read of `OrderByPairs`."""
    if read.pair:
        return read.pair
    _, one, _, other = read.passages
    return one.text, other.text  # type: ignore[union-attr]  # both are chunks


def scored(odds: float) -> Output:
    """Returns log-probabilities with these log odds, but for what they have in common."""
    return Output("", scores=(min(0.0, odds), min(0.0, -odds)))


def by_alphabet(read: Read) -> Output:
    """Says that the text which sorts first comes first, with a liking for the first named."""
    one, other = texts_of(read)
    return scored(0.5 if one < other else -2.5)


def ids(said: str) -> list[int]:
    """Returns the numbers of an answer."""
    return [int(number) for number in said.split(",")] if said else []


@pytest.mark.parametrize("pairs", ["all", "sort"])
def test_asking_both_ways_cancels_a_liking_for_the_first_named(pairs: Any) -> None:
    """The order is right though the reader mostly says A or B by position."""
    of = example(list("dbeac"))

    def likes_a(read: Read) -> Output:
        one, other = texts_of(read)
        return scored(3.0 if one < other else 2.0)

    assert drive(OrderByPairs(pairs), of, likes_a)[0] == "4, 2, 5, 1, 3"
    assert drive(OrderByPairs(pairs, both_ways=False), of, likes_a)[0] == "1, 2, 3, 4, 5"


def test_all_pairs_are_one_round_and_outvote_a_wrong_comparison() -> None:
    """One comparison that is wrong, and not surer than the others, changes nothing."""

    def wrong_once(read: Read) -> Output:
        one, other = texts_of(read)
        flipped = {one, other} == {"a", "e"}
        return scored(1.0 if (one < other) != flipped else -1.0)

    said, rounds = drive(OrderByPairs(), example(list("dbeac")), wrong_once)
    assert said == "4, 2, 5, 1, 3"
    assert [len(each) for each in rounds] == [5 * 4]


def test_sorting_asks_n_log_n_pairs_the_merges_of_a_level_side_by_side() -> None:
    """64 texts take no more than 64 * 6 comparisons, the first half of these in one round."""
    texts = [f"{(n * 37) % 64:02}" for n in range(64)]
    said, rounds = drive(OrderByPairs("sort", both_ways=False), example(texts), by_alphabet)
    assert [texts[n - 1] for n in ids(said)] == sorted(texts)
    assert sum(map(len, rounds)) <= 64 * 6
    assert len(rounds[0]) == 32
    assert len(rounds) <= 1 + 3 + 7 + 15 + 31 + 63


def test_a_pair_classifier_is_given_pairs_and_their_chunks() -> None:
    """With `ask: pair` a read has both texts, and the score is taken for a probability."""

    def likely(read: Read) -> Output:
        one, other = texts_of(read)
        return Output("", score=1.0 if one < other else 0.0)

    said, [[read, *_]] = drive(OrderByPairs(ask="pair"), example(list("ba")), likely)
    assert said == "2, 1"
    assert read.pair == ("b", "a")
    assert [getattr(passage, "text", "") for passage in read.passages] == ["b", "a"]
    with pytest.raises(ValueError, match="a pair of texts, such as PairClassifier"):
        drive(OrderByPairs(ask="pair"), example(list("ba")), lambda _: Output("", score=-7.0))
    with pytest.raises(ValueError, match="a reader that scores choices, such as CausalLM"):
        drive(OrderByPairs(), example(list("ba")), lambda _: Output("A", score=0.1))


def test_labels_that_tell_the_given_order_are_not_read() -> None:
    """`Summary 1:` falls away where all have one; a chapter's own number does not."""
    _, [[read, *_]] = drive(OrderByPairs(), example(list("ab"), "Summary"), by_alphabet)
    assert texts_of(read) == ("a", "b")
    _, [[read, *_]] = drive(OrderByPairs(), example(["Act 2: a", "Act 1: b"]), by_alphabet)
    assert texts_of(read) == ("Act 2: a", "Act 1: b")
    many = f"x {'1' * 5000}: a"  # more digits than Python makes a number of
    _, [[read, *_]] = drive(OrderByPairs(), example([many, "b"]), by_alphabet)
    assert texts_of(read) == (many, "b")


@pytest.mark.parametrize("combiner", [OrderByPairs(), OrderByCoherence()])
def test_hits_that_are_not_all_parts_are_refused(combiner: Any) -> None:
    """An order of some of the summaries would be no order of all."""
    of = example(list("abc"))
    with pytest.raises(ValueError, match="use the chunker Parts and the retriever All"):
        next(combiner.combine(of, hits(of)[:2]))


@pytest.mark.parametrize("combiner", [OrderByPairs(), OrderByCoherence()])
def test_very_many_are_not_compared_each_with_each(combiner: Any) -> None:
    """Rather than to ask for millions of reads, it says what to do."""
    of = example([f"text {n}" for n in range(301)])
    with pytest.raises(ValueError, match="301 passages are 90,300 pairs to read"):
        next(combiner.combine(of, hits(of)))
    assert next(OrderByPairs(pairs="sort").combine(of, hits(of)))


def chain(read: Read) -> Output:
    """Finds a text likelier behind the one before it in the alphabet."""
    [passage] = read.passages
    text = passage if isinstance(passage, str) else passage.text
    letters = text.split()
    follows = len(letters) > 1 and ord(letters[1]) - ord(letters[0]) == 1
    return Output("", score=-10.0 * len(letters) - sum(map(ord, letters)) + 3.0 * follows)


@pytest.mark.parametrize("count", [2, 5, 14])
def test_coherence_finds_the_path_whose_steps_gain_most(count: int) -> None:
    """What is likely by itself does not matter; up to 12 exactly, beyond with a beam."""
    letters = [chr(ord("a") + n * 3 % count) for n in range(count)]  # coprime: a shuffle
    assert len(set(letters)) == count
    said, rounds = drive(OrderByCoherence(), example(letters), chain)
    assert [letters[n - 1] for n in ids(said)] == sorted(letters)
    assert [len(each) for each in rounds] == [count * count]


def test_coherence_needs_scores() -> None:
    """A reader that only writes cannot say how likely a text is."""
    with pytest.raises(ValueError, match="use the reader LogLikelihood"):
        drive(OrderByCoherence(), example(list("ab")), lambda _: Output("a"))


@settings(max_examples=60)
@given(texts=WORDS, seed=st.integers(0, 9), failing=st.integers(0, 3), label=st.booleans())
@pytest.mark.parametrize(
    "combiner",
    [
        OrderByPairs(),
        OrderByPairs("sort"),
        OrderByPairs("sort", "pair", both_ways=False),
        OrderByCoherence(),
    ],
)
def test_whatever_the_reader_says_the_answer_is_a_permutation(
    combiner: Any, texts: list[str], seed: int, failing: int, label: bool
) -> None:
    """Of no texts, of one, of equal ones, with scores from nowhere and reads that fail."""
    chance = np.random.default_rng(seed)
    failed, answered = [0], [0]

    def nonsense(read: Read) -> Output:
        if crc32(repr([getattr(p, "span", p) for p in read.passages]).encode()) % 4 < failing:
            failed[0] += 1
            raise ReadError("cannot read this")
        answered[0] += 1
        value = float(chance.choice([0.0, 0.5, 1.0]))
        return Output("", score=value, scores=(value, 1 - value))

    of = example(texts, "Summary" if label else "")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            said, _ = drive(combiner, of, nonsense)
        except ReadError:
            assert failed[0]
            assert not answered[0]
            return
    assert sorted(ids(said)) == list(range(1, len(texts) + 1))
    assert bool(told) == bool(failed[0])


@pytest.mark.parametrize("combiner", [OrderByPairs(), OrderByPairs("sort"), OrderByCoherence()])
def test_what_cannot_be_read_decides_nothing_and_is_noted(combiner: Any) -> None:
    """One failed read costs its own comparison; if all fail, so does the example."""

    def no_b(read: Read) -> Output:
        text = "".join(getattr(passage, "text", str(passage)) for passage in read.passages)
        if "b" in text.removeprefix("Passage"):
            raise ReadError("cannot read this")
        return chain(read) if isinstance(combiner, OrderByCoherence) else by_alphabet(read)

    def never(_: Read) -> Output:
        raise ReadError("out of order")

    with pytest.warns(UserWarning, match="some reads of passages to compare failed"):
        said, _ = drive(combiner, example(list("dbc")), no_b)
    assert sorted(ids(said)) == [1, 2, 3]
    assert ids(said).index(3) < ids(said).index(1)
    with pytest.raises(ReadError, match="out of order"):
        drive(combiner, example(list("dbc")), never)


# -- with the source ----------------------------------------------------------------------------

REPORT = "The fox sleeps. A mill burns down. The king of cats arrives. Nobody pays the miller."
SUMMARIES = ("the king arrives", "nobody pays", "a fox is asleep: it sleeps", "burns: the mill")


def located(of: Example, k: int = 20) -> Callable[[Search], tuple[Hit, ...]]:
    """Returns how a search in the document is answered."""
    chunks = divide(FixedTokens(4), of.document)

    def found(search: Search) -> tuple[Hit, ...]:
        asked = Example("s", of.document, question=search.question)
        return tuple(retrieve(BM25(k), [asked], chunks)[0])

    return found


def unread(read: Read) -> Output:
    """Is never called."""
    raise AssertionError(read)


def test_matching_orders_choices_by_where_they_stand_in_the_document() -> None:
    """Each is searched for by its own text, and nothing is read."""
    of = Example("e", Document("d", REPORT), choices=SUMMARIES)
    asked: list[str] = []
    found = located(of)

    def noted(search: Search) -> tuple[Hit, ...]:
        asked.append(search.question)
        return found(search)

    assert drive(OrderByMatch(), of, unread, noted)[0] == "3, 4, 1, 2"
    assert asked == list(SUMMARIES)


def test_a_choice_that_is_not_found_stands_between_those_at_either_end() -> None:
    """It might stand anywhere, which is noted; if none is found, they stay as they are."""
    choices = ("xyzzy", *SUMMARIES[:3])
    of = Example("e", Document("d", REPORT), choices=choices)
    with pytest.warns(UserWarning, match="found no place for some of the texts"):
        said, _ = drive(OrderByMatch(), of, unread, located(of))
    assert said == "4, 1, 2, 3"
    with pytest.warns(UserWarning, match="found no place"):
        assert drive(OrderByMatch(), of, unread, lambda _: ())[0] == "1, 2, 3, 4"


def test_matching_weighs_other_hits_by_their_scores() -> None:
    """A best hit that is hardly better does not decide alone, unless sharpness says so."""
    of = Example("e", Document("d", "abcdefgh"), choices=("x", "y"))
    chunks = [of.document.chunk(n, n + 1) for n in range(8)]
    said = {
        "x": (Hit(chunks[0], 1.0), Hit(chunks[6], 0.99), Hit(chunks[7], 0.99)),
        "y": (Hit(chunks[4], 2.0), Hit(chunks[1], -3.0)),
    }
    found = lambda search: said[search.question]  # noqa: E731 -- as short as it is
    assert drive(OrderByMatch(), of, unread, found)[0] == "2, 1"
    assert drive(OrderByMatch(sharpness=200.0), of, unread, found)[0] == "1, 2"


def test_matching_without_choices_says_what_to_use() -> None:
    """Parts of a document are not sought in it."""
    with pytest.raises(ValueError, match="use OrderByPairs or OrderByCoherence"):
        next(OrderByMatch().combine(example(list("ab")), []))


# -- searches -----------------------------------------------------------------------------------


# -- the task, and runs -------------------------------------------------------------------------


def written(folder: Path, *rows: Any) -> Path:
    """Writes a file of rows."""
    path = folder / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in rows), encoding="utf-8")
    return path


def test_the_task_has_the_report_as_document_and_summaries_as_choices(tmp_path: Path) -> None:
    """Rows on one report share it; the prompt around it is whole."""
    from leporello.core.official_prompt import OfficialPrompt

    first, second = (
        sorting_row("a", REPORT, SUMMARIES, "3, 4, 1, 2"),
        sorting_row("b", REPORT, "xy", "2, 1"),
    )
    task = ReportSumSort(written(tmp_path, first, second))
    one, other = task.examples()
    assert len(task) == 2
    assert one.document is other.document
    assert (one.document.text, one.document.parts) == (REPORT, ())
    assert one.choices == SUMMARIES
    assert one.references == ("3, 4, 1, 2",)
    prompt = OfficialPrompt.of(one)
    assert prompt
    assert prompt.around(one.document.text) == first["input"]
    assert task.normalise("3 > 4 > 1 > 2", one) == "3, 4, 1, 2"


def test_without_the_source_the_summaries_are_the_document(tmp_path: Path) -> None:
    """As in BookSumSort: they are its parts."""
    [alone] = ReportSumSort(
        written(tmp_path, sorting_row("a", REPORT, SUMMARIES, "3, 4, 1, 2")), source=False
    ).examples()
    parts = [alone.document.text[part.start : part.end] for part in alone.document.parts]
    assert parts == [f"Summary {n}:\n{text}" for n, text in enumerate(SUMMARIES, 1)]
    assert "fox sleeps" not in alone.document.text
    assert alone.choices == ()


def test_a_row_that_is_no_ordering_fails_alone(tmp_path: Path) -> None:
    """Summaries that are not told, gold of another length."""
    bare, short = (
        sorting_row("a", REPORT, SUMMARIES, "1, 2"),
        sorting_row("b", REPORT, SUMMARIES, "1, 2"),
    )
    bare["inner_docs_start_indices"] = []
    good = sorting_row("c", REPORT, "xy", "2, 1")
    faults = {e.id: e.fault for e in ReportSumSort(written(tmp_path, bare, short, good)).examples()}
    assert "no summaries" in faults["a"]
    assert "does not order 4 summaries" in faults["b"]
    assert faults["c"] == ""


def test_the_pipelines_order_what_the_task_has(tmp_path: Path) -> None:
    """With the source by matching; without it by tiny models, whose answers are permutations."""
    save("Llama", tmp_path / "tiny")
    data = written(tmp_path, sorting_row("a", REPORT, SUMMARIES, "3, 4, 1, 2"))
    config = tmp_path / "own.yaml"
    config.write_text(
        f"tasks:\n  near: {{class: ReportSumSort, path: {data}}}\n"
        f"  alone: {{class: ReportSumSort, path: {data}, source: false}}\n",
        encoding="utf-8",
    )
    four = ["chunker.size=4"]
    done = run(
        ["report-sum-sort-bm25"],
        ["near"],
        config=[config],
        overrides=four,
        out=tmp_path / "near",
        workers=0,
    )
    assert done.results[0].scores == {"concordance_index": 100.0}
    names = [f"zero-book-sum-sort-{name}" for name in ("pairs", "pairs-sorted", "coherence")]
    tiny = [f"reader.model={tmp_path / 'tiny'}", "reader.max_input_tokens=200"]
    done = run(names, ["alone"], config=[config], overrides=tiny, out=tmp_path / "alone", workers=0)
    for name in names:
        [said] = done.predictions(name, "alone")
        assert sorted(ids(said.prediction)) == [1, 2, 3, 4]
