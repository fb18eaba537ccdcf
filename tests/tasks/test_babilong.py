"""Tests of BABILong, with bAbI's files and generated stories."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from official_rows import official_input

from leporello.core.errors import ConfigError, UserError
from leporello.tasks import Babilong
from leporello.tasks.long_context.babilong import generate

PLACES = ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")
# Two stories in bAbI's format, the first with two questions.
ROWS = """1 Ina moved to the garden.
2 Udo went to the office.
3 Where is Ina? \tgarden\t1
4 Ina journeyed to the kitchen.
5 Where is Ina? \tkitchen\t4
1 Udo moved to the hallway.
2 Where is Udo? \thallway\t1
"""


def written(folder: Path, text: str = ROWS) -> Path:
    """Writes a data directory with this file of qa1, and returns it."""
    place = folder / "babilong/tasks_1-20_v1-2/en-10k"
    place.mkdir(parents=True, exist_ok=True)
    (place / "qa1_single-supporting-fact_train.txt").write_text(text)
    (place / "qa10_indefinite-knowledge_train.txt").write_text(ROWS)
    return folder


def test_a_story_contains_the_facts_before_its_question(tmp_path: Path) -> None:
    task = Babilong("qa1", length=400, data=written(tmp_path))
    facts_and_proofs = {}
    for example in task.examples():
        text = example.document.text
        facts = re.findall(r"(?:Ina|Udo) [^.]*\.", text)
        proof = [text[span.start : span.end] for span in example.evidence]
        facts_and_proofs[example.question, example.references] = (len(facts), proof)
        assert len(text.split()) == 100
        rebuilt = official_input(example)
        assert rebuilt.startswith("I will give you context with the facts about positions")
        assert rebuilt.endswith(f"\n</context>\n\nQuestion: {example.question}")
    assert facts_and_proofs == {
        ("Where is Ina?", ("garden",)): (2, ["Ina moved to the garden."]),
        ("Where is Ina?", ("kitchen",)): (3, ["Ina journeyed to the kitchen."]),
        ("Where is Udo?", ("hallway",)): (1, ["Udo moved to the hallway."]),
    }
    bare = Babilong("qa1", length=0, data=tmp_path).example(0)
    assert len(bare.document.text.split()) in (5, 10, 15)


def test_a_background_has_long_sentences_of_which_the_last_is_cut(tmp_path: Path) -> None:
    """Sentences have at least ten tokens, start at random and are repeated."""
    texts = tmp_path / "texts"
    texts.mkdir()
    story = " ".join(f"This is sentence number {n} of a long and slow story." for n in range(9))
    (texts / "a.txt").write_text(f"Too short. {story}")
    task = Babilong("qa1", length=500, facts="made", background=texts, samples=2)
    first, second = task.examples()
    assert len(first.document.text.split()) == 200
    assert "Too short" not in first.document.text
    assert first.document.text != second.document.text
    assert task.fingerprint() != Babilong("qa1", length=500, facts="made").fingerprint()


@pytest.mark.parametrize("name", ["qa1", "qa2", "qa3"])
def test_generated_stories_are_right(name: str) -> None:
    """The answer follows from the facts, and the right number of facts are the proof."""
    for seed in range(200):
        story = generate(name, PLACES, Random(seed))
        assert story.answer == answered(story.facts, story.question)
        proof = [story.facts[number] for number in sorted(story.proof)]
        assert any(story.answer in fact for fact in proof) or name == "qa2"
        assert len(set(story.proof)) == int(name[-1])


def answered(facts: tuple[str, ...], question: str) -> str:
    """Returns the answer to a question, by replaying the facts."""
    place_of: dict[str, str] = {}
    carrier, visited = "", []
    for fact in facts:
        person, *words = fact.rstrip(".").split()
        if "got" in words:
            carrier, place = person, place_of[person]
            visited.append(place)
        elif "dropped" in words:
            carrier = ""
        else:
            place_of[person] = words[-1]
            if person == carrier:
                visited.append(words[-1])
    if name := re.fullmatch(r"Where is ([A-Z]\w+)\?", question):
        return place_of[name[1]]
    return visited[-1] if question.startswith("Where is") else visited[-2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 Ina ran.\n2 Where is Ina?\tgarden\n", "txt:2: is not bAbI's format"),
        ("1 Ina ran.\n2 Where is Ina?\tgarden\t7\n", "txt:2: is not bAbI's format"),
        ("1 Ina ran.\n", "contains no question"),
    ],
)
def test_a_file_that_is_not_babis_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises((ConfigError, UserError), match=re.escape(message)):
        Babilong("qa1", data=written(tmp_path, text)).fingerprint()


def test_a_missing_file_is_an_error_with_advice(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="facts: made"):
        Babilong("qa1", data=tmp_path).fingerprint()
    with pytest.raises(UserError, match="no qa4_"):
        Babilong("qa4", data=tmp_path).fingerprint()
    wrong: Any = {"facts": "made"}
    with pytest.raises(ValueError, match="only for qa1, qa2, qa3"):
        Babilong("qa4", **wrong)
