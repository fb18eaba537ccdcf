"""Tests of OpenAI-MRCR, GraphWalks, NoLiMa and L-Eval: official rows, scores and faults."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import GOLDEN
from needle_rows import GRAPH, TURNS, conversation, graph_walks, mrcr, needles, walk

from leporello import Coverage, Document, Example, Prediction
from leporello.config.metrics import metrics_of
from leporello.core.errors import ConfigError, UserError
from leporello.core.official_prompt import OfficialPrompt

CASES = list(json.loads((GOLDEN / "needles.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("case", CASES)
def test_scores_equal_those_of_the_official_definitions(case: dict[str, Any]) -> None:
    """As in the data cards and the authors' code; GraphWalks' card without its two faults."""
    [metric] = metrics_of([case["metric"]]).values()
    gold = case.get("reference")
    references = (gold,) if gold is not None else tuple(case["references"])
    metadata = {"gold": {"prefix": case.get("prefix")}}
    example = Example("x", Document("d", ""), references=references, metadata=metadata)
    text = case["prediction"]
    prediction = Prediction("x", text, text, (), (), Coverage(0, 0, 0, 0), "")
    statistics = metric.statistics(prediction, example)
    assert statistics is not None
    assert metric.score(statistics) == pytest.approx(case["score"], abs=1e-4)


def test_a_conversation_is_the_document_and_its_last_message_the_question(tmp_path: Path) -> None:
    """The random letters are gold, so no stage sees them elsewhere than in the question."""
    [example] = mrcr(tmp_path, conversation()).examples()
    assert example.question == TURNS[-1][1]
    assert example.document.text.startswith("User: Write a poem about tapirs.\n\nAssistant: Slow.")
    assert example.references == ("xY9Lone.",)
    prompt = OfficialPrompt.of(example)
    assert prompt
    assert prompt.around(example.document.text).endswith(f"Lone.\n\nUser: {TURNS[-1][1]}")


def test_a_graph_is_the_document_and_the_operation_the_question(tmp_path: Path) -> None:
    """The official prompt is the row's, to the character; the older column is read too."""
    old = walk(answer=["uvwx"])
    del old["answer_nodes"]
    [example] = graph_walks(tmp_path / "a", walk()).examples()
    assert example.document.text == "uvwx -> alke\nefgh -> uvwx"
    assert example.question.startswith("Find the parents of node alke.")
    assert json.loads(example.references[0]) == ["uvwx"]
    prompt = OfficialPrompt.of(example)
    assert prompt
    assert prompt.around(example.document.text) == GRAPH
    [older] = graph_walks(tmp_path / "b", old).examples()
    assert older.references == example.references


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (conversation(prompt="hello"), "2needle_0.parquet.*1.*not JSON"),
        (conversation(prompt="[]"), "'prompt' must be a JSON list of at least two messages"),
        (conversation(answer=None), "'answer' must be text"),
    ],
)
def test_a_row_of_another_version_names_file_and_field(
    row: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """Before any example is read."""
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        [*mrcr(tmp_path, row).examples()]


def test_a_row_without_gold_fails_alone(tmp_path: Path) -> None:
    """An answer without its random letters cannot be scored; the message names the row."""
    faulty, valid = mrcr(tmp_path, conversation(answer="Lone."), conversation()).examples()
    assert "2needle_0.parquet:1: `answer` does not begin" in faulty.fault
    assert not faulty.references
    assert not valid.fault


def test_a_graph_without_edges_names_the_field(tmp_path: Path) -> None:
    """A prompt of another form cannot be divided."""
    with pytest.raises(ConfigError, match="field 'prompt' must contain"):
        [*graph_walks(tmp_path, walk(prompt="Hello")).examples()]


def test_needles_are_hidden_at_every_depth(tmp_path: Path) -> None:
    """The needle is a line's end, as in the official texts, and the evidence."""
    task = needles(tmp_path)
    examples = [*task.examples()]
    assert len(examples) == len(task) == 5 * 26
    for number, example in enumerate(examples):
        span = example.evidence[0]
        needle = example.document.text[span.start : span.end]
        [character] = example.references
        assert needle == f"Actually, {character} lives next to the Semper Opera."
        assert example.question == "Which character has been to Dresden?"
        assert example.document.text[span.end] == "\n"
        before = len(example.document.text[: span.start].split())
        assert before == pytest.approx(500 * (number % 26) / 25, abs=14)
    assert {reference for e in examples for reference in e.references} == {
        "Yuki",
        "Stuart",
        "Katie",
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"needle": "A needle."}, "needle_set.json: is not.*test 0401_T1 has no gold_answers"),
        ({"tests": {"T1": {}}}, "needle_set.json: is not.*field 'input_args' is missing"),
    ],
)
def test_needles_of_another_version_name_file_and_field(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """Also a test without gold."""
    with pytest.raises(UserError, match=message):
        len(needles(tmp_path, **changes))


def test_a_book_that_is_too_short_names_the_length(tmp_path: Path) -> None:
    """And a missing one its source."""
    task = needles(tmp_path)
    with pytest.raises(UserError, match=r"rand_book_1.txt: has 2,800 tokens, too few for length"):
        replace(task, length=10_000).example(25)
    (tmp_path / "nolima/haystack/rand_shuffle/rand_book_5.txt").unlink()
    with pytest.raises(UserError, match=r"no .*rand_book_5.txt.*amodaresi/NoLiMa"):
        task.fingerprint()
