"""Tests of BABILong, with bAbI's files."""

import re
from pathlib import Path

import pytest
from command_line import write_files
from official_rows import official_input

from leporello.core.errors import ConfigError, UserError
from leporello.tasks import Babilong

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
    names = ("qa1_single-supporting-fact_train.txt", "qa10_indefinite-knowledge_train.txt")
    files = dict(zip(names, (text, ROWS), strict=True))
    write_files(folder / "babilong/tasks_1-20_v1-2/en-10k", files)
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
    story = " ".join(f"This is sentence number {n} of a long and slow story." for n in range(9))
    write_files(tmp_path, {"texts/a.txt": f"Too short. {story}"})
    data, texts = written(tmp_path), tmp_path / "texts"
    task = Babilong("qa1", length=500, background=texts, samples=2, data=data)
    first, second = task.examples()
    assert len(first.document.text.split()) == 200
    assert "Too short" not in first.document.text
    assert first.document.text != second.document.text
    assert task.fingerprint() != Babilong("qa1", length=500, data=tmp_path).fingerprint()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 Ina ran.\n2 Where is Ina?\tgarden\n", "txt:2: is not bAbI's format"),
        ("1 Ina ran.\n2 Where is Ina?\tgarden\t7\n", "txt:2: is not bAbI's format"),
        ("1 Ina ran.\n", "contains no question"),
    ],
)
def test_a_file_that_is_missing_or_not_babis_is_an_error(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(UserError, match="no qa1_"):
        Babilong("qa1", data=tmp_path).fingerprint()
    with pytest.raises((ConfigError, UserError), match=re.escape(message)):
        len(Babilong("qa1", data=written(tmp_path, text)))
