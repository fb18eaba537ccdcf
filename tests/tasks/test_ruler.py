"""Tests of RULER's texts and metrics, compared with those of the authors' scripts."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import GOLDEN, write_files
from scored import example_of, prediction_of

from benchmarks.ruler import scored
from leporello.config import load_config
from leporello.core.errors import UserError
from leporello.core.official_prompt import OfficialPrompt
from leporello.metrics import METRICS
from leporello.tasks import Ruler
from leporello.tasks.long_context.sources import background

GIVEN: Mapping[str, Any] = json.loads((GOLDEN / "ruler.json").read_text(encoding="utf-8"))
NAMES: tuple[str, ...] = tuple(case["task"] for case in GIVEN["texts"])
NOISE = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
TOWNS = (("Ulm", "Danube"), ("Bonn", "Rhine"), ("Jena", "Saale"))
SQUAD = {
    "data": [
        {"paragraphs": [{"context": f"{town} lies on the {river}. It is old.", "qas": [
            {"question": f"Where does {town} lie?", "is_impossible": False,
             "answers": [{"text": river, "answer_start": len(town) + 13}]},
            {"question": "Who?", "is_impossible": True, "answers": []},
        ]}]}
        for town, river in TOWNS
    ]
}  # fmt: skip
HOTPOT = [
    {
        "question": "Which river does Ina's town lie on?",
        "answer": "Saale",
        "context": [["Ina", ["She was born.", " She lives in Jena."]], ["Jena", ["On the Saale."]]],
        "supporting_facts": [["Ina", 1], ["Jena", 0], ["Jena", 7]],
    }
]


def task_of(name: str, **parameters: Any) -> Ruler:
    return Ruler(name, **parameters)  # type: ignore[arg-type]  # a name of a task


def shape(text: str) -> str:
    """Returns a text without noise, and with placeholders for random values."""
    text = text.replace(NOISE, "")
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "U", text)
    text = re.sub(r"\d+\. \S+", "W", text)
    text = re.sub(r"\d{5,7}", "N", text)
    text = re.sub(r"(?<=for )\S+-[^\s,]+(, (and )?\S+-[^\s,]+)*", "K", text)
    text = re.sub(r"\b(?!VAR)[A-Z]{3,5}\b", "V", text)
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("case", GIVEN["texts"], ids=lambda case: case["task"])
def test_texts_match_those_of_the_authors_scripts(case: Mapping[str, Any], tmp_path: Path) -> None:
    essay = tmp_path / "essay.txt"
    essay.write_text("The sun rose over hills. A man walked by the river. " * 3000)
    task = task_of(case["task"], background=tmp_path, samples=2)
    free = {"cwe": 120, "fwe": 50, "vt": 30}.get(case["task"], 128)
    for example in task.examples():
        prompt = OfficialPrompt.of(example)
        assert prompt
        assert shape(prompt.before) == shape(case["before"])
        assert shape(prompt.suffix) == shape(case["after"])
        assert len(example.references) == case["outputs"]
        if case["task"] != "niah_multikey_2":  # its haystack contains nouns of two words
            assert example.metadata["tokens"] == case["length"] - free


@pytest.mark.parametrize("case", GIVEN["cases"], ids=lambda case: case["id"])
def test_metrics_equal_the_official_ones(case: Mapping[str, Any]) -> None:
    metric = METRICS[case["metric"]]()
    gold = {"gold": {"labels": case.get("labels", [])}}
    statistics = []
    for text, references in zip(case["predictions"], case["references"], strict=True):
        example = example_of(*references, question=case.get("question", ""), metadata=gold)
        statistics.append(metric.statistics(prediction_of(text), example) or {})
    assert metric.aggregate(statistics)[case["metric"]] == pytest.approx(case["score"], abs=0.006)


@pytest.mark.parametrize("name", NAMES)
def test_evidence_is_exact_and_examples_are_deterministic(name: str) -> None:
    for example in task_of(name, length=2048, samples=3).examples():
        text = example.document.text
        proof = [text[span.start : span.end] for span in example.evidence]
        if name.startswith("niah"):
            assert all(p.startswith("One of the special") and p.endswith(".") for p in proof)
            values = [p.partition(" is: ")[2].rstrip(".") for p in proof]
            assert sorted(values) == sorted(example.references)
        if name == "vt":
            assert [p.split()[1] for p in proof] == [*example.references]
        assert not example.fault
    again, shorter = task_of(name, length=2048, samples=9), task_of(name, length=512, samples=3)
    assert again.example(2).document.text == text
    if name not in ("cwe", "fwe"):
        assert shorter.example(2).references == example.references  # at every length
    assert again.fingerprint() != shorter.fingerprint()
    assert task_of(name, length=2048, seed=1).example(2).document.text != text


def test_questions_have_other_documents_as_distractors(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="as squad"):
        task_of("qa_1", data=tmp_path).fingerprint()
    files = {"ruler/squad.json": json.dumps(SQUAD), "ruler/hotpotqa.json": json.dumps(HOTPOT)}
    write_files(tmp_path, files)
    task = task_of("qa_1", data=tmp_path)
    assert len(task) == 3
    for example, river in zip(task.examples(), ("Danube", "Rhine", "Saale"), strict=True):
        text = example.document.text
        assert [text[span.start : span.end] for span in example.evidence] == [river]
        assert text.startswith("Document 1:\n")
        assert len(example.document.parts) == 3
        assert example.question.startswith("Where does")
    [hop] = task_of("qa_2", data=tmp_path).examples()
    proof = [hop.document.text[span.start : span.end] for span in hop.evidence]
    assert proof == [" She lives in Jena.", "On the Saale."]
    assert task.metrics[0] == "string_match_part"
    write_files(tmp_path, {"ruler/squad.json": "[1]"})
    with pytest.raises(UserError, match="neither SQuAD's nor HotpotQA's"):
        task_of("qa_1", data=tmp_path).fingerprint()


def test_a_background_is_any_folder_of_texts(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is neither a text file nor a folder"):
        background(tmp_path, "")
    write_files(tmp_path, {"b.md": "Night fell. All\nslept.", "a.txt": "Rain came."})
    texts = background(tmp_path, "")
    assert texts.sentences == ("Rain came.", "Night fell.", "All slept.")
    assert texts.first(9) == [*texts.sentences, "Rain came.", "Night"]


def test_dividing_finds_what_cutting_loses() -> None:
    """The test measures it at 16,000 words, as `benchmarks.ruler` does."""
    scores = scored(task_of("niah_multikey_2", length=16384, samples=4))
    assert scores["dividing"] == 100
    assert scores["cutting"] < 100


def test_a_tasks_name_may_contain_values() -> None:
    """A length that is too small for the text is a fault of each example."""
    example = task_of("niah_single_1", length=150).example(0)
    assert "more than fit into the length 150" in example.fault
    config = load_config()
    [task] = config.tasks_named(["ruler/vt@length=8192,samples=3"])
    assert (task.name, len(task.spec.build())) == ("ruler/vt@length=8192,samples=3", 3)
    assert len(config.tasks_named(["ruler/niah_*@length=64", "ruler/niah_single_*@length=64"])) == 8
    for wrong, message in (
        ("ruler/vt@lenght=4", "no parameter 'lenght'; did you mean 'length'"),
        ("ruler/vt@length=-4", "length must be greater than 0, got -4"),
        ("ruler/vr@length=4", "there is no task"),
        ("ruler/vt@", "there is no task"),
    ):
        with pytest.raises(UserError, match=re.escape(message)):
            config.tasks_named([wrong])
