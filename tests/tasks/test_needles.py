"""Tests of OpenAI-MRCR, GraphWalks, NoLiMa and HELMET: official rows, scores and faults."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import GOLDEN
from needle_rows import GRAPH, TURNS, conversation, graph_walks, helmet, mrcr, needles, walk
from official_rows import official_input
from scored import example_of, score_of

from leporello.config.metrics import metrics_of
from leporello.core.errors import ConfigError, UserError
from leporello.core.official_prompt import OfficialPrompt
from leporello.core.protocols import Task
from leporello.tasks import Helmet

CASES = list(json.loads((GOLDEN / "needles.json").read_text(encoding="utf-8")))
HELMET = json.loads((GOLDEN / "helmet.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES)
def test_scores_equal_those_of_the_official_definitions(case: dict[str, Any]) -> None:
    """As in the data cards and the authors' code; GraphWalks' card without its two faults."""
    [metric] = metrics_of([case["metric"]]).values()
    gold = case.get("reference")
    references = (gold,) if gold is not None else tuple(case.get("references", ()))
    metadata = {"gold": {name: case.get(name) for name in ("prefix", "relevance")}}
    score = score_of(metric, case["prediction"], example_of(*references, metadata=metadata))
    assert score == pytest.approx(case["score"], abs=1e-4)


def test_a_conversation_is_the_document_and_its_last_message_the_question(tmp_path: Path) -> None:
    [example] = mrcr(tmp_path, conversation()).examples()
    assert example.question == TURNS[-1][1]
    assert example.document.text.startswith("User: Write a poem about tapirs.\n\nAssistant: Slow.")
    assert example.references == ("xY9Lone.",)
    assert official_input(example).endswith(f"Lone.\n\nUser: {TURNS[-1][1]}")


def test_a_graph_is_the_document_and_the_operation_the_question(tmp_path: Path) -> None:
    """The official prompt is the row's, to the character; the older column is read too."""
    old = {name: value for name, value in walk(answer=["uvwx"]).items() if name != "answer_nodes"}
    [example] = graph_walks(tmp_path / "a", walk()).examples()
    assert example.document.text == "uvwx -> alke\nefgh -> uvwx"
    assert example.question.startswith("Find the parents of node alke.")
    assert json.loads(example.references[0]) == ["uvwx"]
    assert official_input(example) == GRAPH
    [older] = graph_walks(tmp_path / "b", old).examples()
    assert older.references == example.references


@pytest.mark.parametrize(
    ("make", "row", "message"),
    [
        (mrcr, conversation(prompt="hello"), "2needle_0.parquet.*1.*not JSON"),
        (mrcr, conversation(prompt="[]"), "'prompt' must be a JSON list of at least two messages"),
        (mrcr, conversation(answer=None), "'answer' must be text"),
        (graph_walks, walk(prompt="Hello"), "field 'prompt' must contain"),
    ],
)
def test_a_row_of_another_version_names_file_and_field(
    make: Callable[..., Task], row: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        [*make(tmp_path, row).examples()]


def test_a_row_without_gold_fails_alone(tmp_path: Path) -> None:
    """An answer without its random letters cannot be scored; the message names the row."""
    faulty, valid = mrcr(tmp_path, conversation(answer="Lone."), conversation()).examples()
    assert "2needle_0.parquet:1: `answer` does not begin" in faulty.fault
    assert not faulty.references
    assert not valid.fault


def test_needles_are_hidden_at_every_depth(tmp_path: Path) -> None:
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
    characters = {reference for example in examples for reference in example.references}
    assert characters == {"Yuki", "Stuart", "Katie"}


def test_needles_of_another_version_name_file_and_field(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"needle_set.json: is not.*0401_T1 has no gold_answers"):
        len(needles(tmp_path, needle="A needle."))
    with pytest.raises(UserError, match=r"needle_set.json: is not.*'input_args' is missing"):
        len(needles(tmp_path, tests={"T1": {}}))


def test_a_book_that_is_too_short_names_the_length(tmp_path: Path) -> None:
    task = needles(tmp_path)
    with pytest.raises(UserError, match=r"rand_book_1.txt: has 2,800 tokens, too few for length"):
        replace(task, length=10_000).example(25)
    (tmp_path / "nolima/haystack/rand_shuffle/rand_book_5.txt").unlink()
    with pytest.raises(UserError, match=r"no .*rand_book_5.txt.*amodaresi/NoLiMa"):
        task.fingerprint()


@pytest.mark.parametrize("name", HELMET)
def test_prompts_of_helmet_equal_those_of_the_official_code(name: Any, tmp_path: Path) -> None:
    """The same questions and worked examples are drawn, and the prompts are equal."""
    examples = [*Helmet(name, 8192, data=helmet(tmp_path)).examples()]
    prompts = [(OfficialPrompt.of(e), e.document.text) for e in examples]
    texts = sorted(prompt.around(text) for prompt, text in prompts if prompt)
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    assert {"examples": len(texts), "sha256": digest} == HELMET[name]


@pytest.mark.parametrize(
    ("name", "file", "row", "message"),
    [
        ("json_kv", "json_kv/test_k105_dep6", {"question": "k1"}, "1.*'context' is missing"),
        ("json_kv", "json_kv/test_k105_dep6", {"context": "c", "question": "k", "demos": [1]},
         "1.*is not a row of helmet/json_kv"),
        ("kilt_nq", "kilt/nq-dev-multikilt_1000_k50_dep6", {"question": "?", "ctxs": [{}]},
         "1.*is not a row of helmet/kilt_nq: has no field 'title'"),
    ],
)  # fmt: skip
def test_a_row_of_another_version_of_helmet_names_file_line_and_field(
    name: Any, file: str, row: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = helmet(tmp_path) / f"helmet/{file}.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(ConfigError, match=f"(?s){path.name}:{message}"):
        [*Helmet(name, 8192, data=tmp_path).examples()]


def test_missing_files_of_helmet_name_their_source(tmp_path: Path) -> None:
    task = Helmet("kilt_nq", 8192, data=tmp_path)
    with pytest.raises(UserError, match=r"k50_dep6.jsonl; download it from .*princeton-nlp/HELMET"):
        [*task.examples()]
    (helmet(tmp_path) / "helmet/kilt/nq-train-multikilt_1000_k3_dep6.jsonl").unlink()
    with pytest.raises(UserError, match=r"nq-train.*download it from"):
        [*task.examples()]
