"""Tests of the Shuffle Test: sentences, shuffles and the metric, as in the authors' code."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from command_line import GOLDEN
from hypothesis import given
from hypothesis import strategies as st
from row_files import write_rows
from scored import example_of, prediction_of

from leporello.core.errors import ConfigError, UserError
from leporello.core.records import Example
from leporello.metrics.shuffle_accuracy import ShuffleAccuracy, interval
from leporello.tasks import ShuffleTest
from leporello.tasks.shuffle_test import sentences_of, shuffles

CASES: list[Any] = json.loads((GOLDEN / "shuffle_test.json").read_text(encoding="utf-8"))
SHUFFLED = [case for case in CASES if "shuffled" in case]
SENTENCES = st.lists(st.text("ab.", min_size=1, max_size=3), max_size=12)
STORY = "Ina fixed the pump. It ran all night. By morning the cellar was dry.  Nobody thanked her."


def written(folder: Path, *rows: Mapping[str, Any] | str) -> Path:
    return write_rows(folder / "rows.jsonl", *rows)


def gold_of(example: Example) -> dict[str, Any]:
    """Returns the description of an example for the metric."""
    gold: Any = example.metadata["gold"]
    return dict(gold["shuffle_test"])


def aggregated(scores: Mapping[str, Mapping[int, Sequence[object]]]) -> dict[str, float]:
    """Returns the metric's scores, given each document's scores by block size, 0 for originals."""
    metric = ShuffleAccuracy()
    statistics = []
    for name, sizes in scores.items():
        for size, values in sizes.items():
            gold: dict[str, Any] = {"document": name, "block_size": size, "unchanged": not size}
            example = example_of(metadata={"gold": {"shuffle_test": gold}})
            statistics += [metric.statistics(prediction_of(str(v)), example) for v in values]
    return metric.aggregate([entry for entry in statistics if entry is not None])


@pytest.mark.parametrize("case", SHUFFLED, ids=lambda case: str(case["id"]))
def test_sentences_and_shuffles_equal_those_of_the_authors_code(case: Mapping[str, Any]) -> None:
    unit: Any = "line" if case["sent_split"] == "line" else "sentence"
    sentences = sentences_of(case["doc"], unit)
    assert sentences == case["sentences"]
    size, chance = case["block_size"], Random(case["seed"])
    assert -(-len(sentences) // size) == case["n_blocks"]
    orders = ["\n".join(order) for order in shuffles(sentences, size, 3, chance)]
    if case["returned_unchanged"]:
        assert orders == ["\n".join(sentences)] * 3
    else:
        assert orders == case["shuffled"]


@given(sentences=SENTENCES, size=st.integers(1, 8), seed=st.integers(0, 99))
def test_shuffles_keep_blocks_in_another_order(sentences: list[str], size: int, seed: int) -> None:
    numbered = [f"{n} {sentence}" for n, sentence in enumerate(sentences)]
    blocks = [tuple(numbered[i : i + size]) for i in range(0, len(numbered), size)]
    for order in shuffles(numbered, size, 3, Random(seed)):
        assert Counter(order) == Counter(numbered)
        assert (order != numbered) == (len(blocks) > 1)
        joined = "\n".join(order)
        assert all("\n".join(block) in joined for block in blocks)
    again = [list(shuffles(numbered, size, 2, Random(seed))) for _ in range(2)]
    assert again[0] == again[1]


def test_a_text_and_its_shuffles_are_examples_with_separate_documents(tmp_path: Path) -> None:
    task = ShuffleTest(written(tmp_path, {"id": "d", "text": STORY}), (1, 2), shuffles=2)
    examples = list(task.examples())
    assert [e.id for e in examples] == ["d/original", "d/1-0", "d/1-1", "d/2-0", "d/2-1"]
    assert [e.document.id for e in examples] == [e.id for e in examples]
    assert len(task) == len(examples)
    original, *others = (sorted(e.document.text.split("\n")) for e in examples)
    assert all(lines == original for lines in others)
    assert len({e.document.text for e in examples[:3]}) == 3
    assert [e.references for e in examples] == [("original",), *[("shuffled",)] * 4]
    assert [e.group for e in examples] == ["original", "k=1", "k=1", "k=2", "k=2"]
    assert gold_of(examples[3]) == {"document": "d", "block_size": 2, "unchanged": False}
    bare = examples[3].without_gold()
    assert (bare.references, bare.metadata) == ((), {})


def test_shuffles_depend_only_on_seed_text_and_block_size(tmp_path: Path) -> None:
    row = {"id": "d", "text": STORY}
    alone = ShuffleTest(written(tmp_path, row), (3,), shuffles=1)
    [_, wanted] = [e.document.text for e in alone.examples()]
    more = ShuffleTest(written(tmp_path, {"id": "c", "text": STORY}, row), (1, 3), shuffles=4)
    texts = {e.id: e.document.text for e in more.examples()}
    assert texts["d/3-0"] == wanted
    first = [f"c/1-{n}" for n in range(4)]
    reseeded = ShuffleTest(more.path, (1, 3), shuffles=4, seed=1)
    assert {e.id: e.document.text for e in reseeded.examples()} != texts
    assert [texts[name] for name in first] != [texts[name.replace("c", "d", 1)] for name in first]


def test_original_and_shuffles_have_one_sentence_per_line(tmp_path: Path) -> None:
    """White space of the original would give it away."""
    path = written(tmp_path, {"text": f" {STORY}"})
    [original, *_] = ShuffleTest(path, truncate_sentences=3).examples()
    beginning, _ = STORY.split("  ")
    assert original.document.text == beginning.replace(". ", ".\n")


def test_a_document_of_one_block_is_its_own_shuffle(tmp_path: Path) -> None:
    """It counts as the same for all scores."""
    for example in ShuffleTest(written(tmp_path, {"text": ""}, {"text": " One only. "})).examples():
        assert gold_of(example)["unchanged"]
        assert (gold_of(example)["document"], example.document.text) == ("0", "One only.")


def test_all_faulty_rows_are_reported_with_their_lines(tmp_path: Path) -> None:
    twice = ({"id": "a", "text": "x"}, {"id": "a", "text": "y"})
    wrong = ({"id": 3, "text": "x"}, {"id": "b", "text": 4}, {"txet": "x"}, "[]", "{")
    path = written(tmp_path, *twice, *wrong)
    with pytest.raises(ConfigError) as raised:
        ShuffleTest(path).check()
    faults = [str(fault).removeprefix(f"{path}:") for fault in raised.value.faults]
    expected = (
        "2: id 'a' is a duplicate of line 1",
        "3: field 'id' must be text, got 3",
        "4: field 'text' must be text, got 4",
        "5: field 'text' is missing; the row has txet",
        *("6:", "7:"),
    )
    assert all(f.startswith(start) for f, start in zip(faults, expected, strict=True))
    ShuffleTest(written(tmp_path, {"other": "x", "text": "y"})).check()


def test_invalid_files_and_parameters_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such file"):
        ShuffleTest(tmp_path / "none.jsonl").check()
    with pytest.raises(UserError, match="has no rows"):
        ShuffleTest(written(tmp_path, "", "  ")).check()
    with pytest.raises(UserError, match="do not match"):
        ShuffleTest(tmp_path / "rows.jsonl", split="test").check()
    place = tmp_path / "{split}.jsonl"
    with pytest.raises(UserError, match="do not match"):
        ShuffleTest(place).check()
    ShuffleTest(written(tmp_path, {"text": "x"}).parent / "{split}.jsonl", split="rows").check()
    with pytest.raises(ValueError, match="block_sizes must be different sizes"):
        ShuffleTest(place, block_sizes=(1, 1))


def test_pairs_are_compared_within_their_document_and_block_size() -> None:
    scores = aggregated({"a": {0: [-9], 1: [-10, -11], 2: [-8]}, "b": {0: [-1], 1: [-5], 2: [-2]}})
    assert (scores["accuracy[1]"], scores["accuracy[2]"]) == (100.0, 50.0)
    assert scores["shuffle_accuracy"] == 75.0
    assert scores["missing"] == 0


@pytest.mark.parametrize("lost", ["", "nan", "inf", "no number"])
def test_missing_pairs_are_counted_and_are_not_right(lost: str) -> None:
    """Without an original all pairs of a document are missing, without a shuffle one pair."""
    scores = aggregated({"a": {0: [lost], 1: [-9, -9]}, "b": {0: [-1], 1: [-5, lost]}})
    assert scores["missing"] == 75.0
    assert scores["accuracy[1]"] == 25.0
    only = aggregated({"a": {1: [-9]}})
    assert (only["missing"], only["accuracy[1]"]) == (100.0, 0.0)


def test_a_text_that_cannot_be_shuffled_is_the_same_for_all_scores() -> None:
    """The authors' code also compares such a text with itself."""
    metric = ShuffleAccuracy()
    base = {"document": "a", "unchanged": True}
    statistics = [{**base, "block_size": n, "score": score} for n, score in ((0, 1.0), (1, -9.0))]
    scores = metric.aggregate(statistics)
    assert (scores["same"], scores["accuracy[1]"]) == (100.0, 0.0)


def test_the_interval_is_wilsons_where_pairs_are_independent() -> None:
    """For 81 of 100 documents with one pair each it is 72.2 to 87.5."""
    low, high = interval([[n < 81] for n in range(100)])
    assert (round(low, 3), round(high, 3)) == (0.722, 0.875)


def test_correlated_pairs_of_a_document_count_less() -> None:
    """Ten equal pairs count like one pair; independent pairs narrow the interval."""
    single = interval([[n < 15] for n in range(20)])
    equal = interval([[n < 15] * 10 for n in range(20)])
    assert equal == pytest.approx(single, abs=0.02)
    chance = Random(0)
    mixed = interval([[chance.random() < 0.75 for _ in range(10)] for _ in range(20)])
    assert mixed[1] - mixed[0] < 0.6 * (equal[1] - equal[0])
    perfect = interval([[True] * 10 for _ in range(20)])
    assert perfect == interval([[True] for _ in range(20)])
    assert 0.8 < perfect[0] < perfect[1] == 1.0


def test_a_single_example_has_no_accuracy(tmp_path: Path) -> None:
    metric = ShuffleAccuracy()
    [example, *_] = ShuffleTest(written(tmp_path, {"text": STORY})).examples()
    statistics = metric.statistics(prediction_of("-1.5"), example)
    assert statistics is not None
    assert (statistics["score"], metric.score(statistics)) == (-1.5, 100.0)
    assert metric.aggregate([statistics]) == {}
