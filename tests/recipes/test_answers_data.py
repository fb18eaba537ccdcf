"""The data of the recipe `answers`: questions, their split, negatives, windows; faults in them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from command_line import write_files
from tiny_questions import SETTINGS, rows, save_base
from transformers import T5Config, T5Model

from leporello.core.errors import UserError
from leporello.retrievers import BM25
from recipes.answers.negatives import nearest_passages
from recipes.answers.questions import (
    Question,
    fingerprints,
    read_questions,
    split,
)
from recipes.answers.recipe import prepare
from recipes.answers.settings import AnswersSettings, Phase
from recipes.command import run_recipe
from recipes.settings import read_settings

WORDS = [f"word{number}" for number in range(4000)]
PHASE = Phase(tokens=100, learning_rate=1e-3)


def question(document: str, start: int) -> Question:
    """Returns a question on sixty words of a made text."""
    passage = " ".join(WORDS[start : start + 60])
    return Question("s", document, f"what is {WORDS[start + 5]}?", passage, ((0, 5),))


def test_what_is_excluded_is_not_trained_on(tmp_path: Path) -> None:
    """A question goes if its passage, or one beside it, is apart; sides stay disjoint by text."""
    made = rows(60)
    made[3]["others"][0] = "secret text"
    made[8]["passage"] += " secret"
    write_files(tmp_path, {"q.jsonl": made})
    (tmp_path / "apart.py").write_text("def is_apart(text):\n    return 'secret' in text\n")
    files = (tmp_path / "q.jsonl",)
    settings = AnswersSettings("b", files, (PHASE,), exclude=tmp_path / "apart.py", validation=0.3)
    data = prepare(settings)
    assert (data.excluded, len(data.train) + len(data.validation)) == (2, 58)
    assert not any("secret" in text for q in data.train for text in (q.passage, *q.others))
    assert not {q.document for q in data.train} & {q.document for q in data.validation}


def test_the_settings_of_our_own_reader_can_be_read() -> None:
    """The file beside the recipe has no fault, and its paths count from its folder."""
    file = Path(run_recipe.__code__.co_filename).parent / "answers" / "settings.yaml"
    settings = read_settings(AnswersSettings, file)
    assert settings.questions[0] == file.parent / "PATH/TO/questions.jsonl.gz"
    assert settings.phases[2].weights == settings.phases[1].weights


WORDS = [f"word{number}" for number in range(4000)]


def test_train_and_validation_share_no_document_nor_text() -> None:
    """Documents under two names are on one side if their text is the same."""
    questions = [question(f"d{i}", 50 * i) for i in range(60)]
    questions += [question(f"copy{i}", 50 * i + 3) for i in range(0, 60, 7)]
    sides = split(questions, 0.3, seed=1)
    assert all(sides)
    documents = [{q.document for q in side} for side in sides]
    assert not documents[0] & documents[1]
    keys = [set().union(*(fingerprints(q.passage) for q in side)) for side in sides]
    assert not keys[0] & keys[1]


def test_negatives_lack_the_answer() -> None:
    """No passage given as one without the answer has it; those that came along stand first."""
    questions = [
        Question("s", "d", "where is the cat", "the cat is in Rome", ((14, 18),)),
        Question("s", "d", "where is the dog", "the dog left rome for the cat", ((4, 7),)),
        Question("s", "e", "where is the cow", "the cow is in the field", ((4, 7),), others=("x",)),
    ]
    found = nearest_passages(questions, BM25(k=9), 3)
    assert found[0] == [questions[2].passage]
    assert found[2][0] == "x"


def test_hotpotqa_gives_rows_with_what_does_not_help(tmp_path: Path) -> None:
    """Both supporting paragraphs are one passage; the paragraph with the answer is another."""
    item: dict[str, Any] = {"_id": "1", "question": "Who?", "answer": "Ann"}
    item["context"] = [["A", ["Ann came."]], ["B", ["Bob."]], ["C", ["Cy."]]]
    item["supporting_facts"] = [["A", 0], ["B", 0]]
    path = tmp_path / "hotpot.json.gz"
    with gzip.open(path, "wt") as file:
        json.dump([item, {**item, "_id": "2", "answer": "yes"}], file)
    both, alone, said = read_questions(path)
    assert {both.passage[start:end] for start, end in both.answers} == {"Ann"}
    assert (alone.passage, said.yes_no) == ("A\nAnn came.", "yes")
    assert both.others == ("C\nCy.",)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"sead": 2}, r"settings\.json:1: there is no setting 'sead'; did you mean 'seed'"),
        ({"questions": ["off.jsonl"]}, r"off\.jsonl:1: the answer 'red' is not at 1"),
        ({"exclude": "base/config.json"}, "exclude: .* must end in .py"),
        ({"base": "./t5"}, "choose an encoder"),
    ],
)
def test_mistakes_are_told_in_a_line(changes: dict[str, Any], told: str, tmp_path: Path) -> None:
    """What is wrong is named with its place, before anything is trained."""
    save_base("bert", tmp_path / "base")
    tiny = T5Config(d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, vocab_size=9)
    T5Model(tiny).save_pretrained(tmp_path / "t5")
    [row, *_] = rows(3)
    write_files(tmp_path, {"questions.jsonl": rows(30)})
    write_files(tmp_path, {"off.jsonl": [{**row, "answers": [[1, "red"]]}]})
    (tmp_path / "settings.json").write_text(json.dumps({**SETTINGS, **changes}))
    with pytest.raises(UserError, match=told):
        run_recipe("answers", tmp_path / "settings.json", tmp_path / "made")
    assert not (tmp_path / "made").exists()
