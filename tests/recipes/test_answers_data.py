"""The data of the recipe `answers`: questions, their split, negatives and errors in them."""

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
from recipes.answers.questions import Question, fingerprints, read_questions, split
from recipes.answers.recipe import prepare
from recipes.answers.settings import AnswersSettings, Phase
from recipes.command import run_recipe
from recipes.settings import read_settings

WORDS = [f"word{number}" for number in range(4000)]
PHASE = Phase(tokens=100, learning_rate=1e-3)


def question(document: str, start: int) -> Question:
    """Returns a question on sixty words of an invented text."""
    passage = " ".join(WORDS[start : start + 60])
    return Question("s", document, f"what is {WORDS[start + 5]}?", passage, ((0, 5),))


def test_excluded_passages_are_not_trained_on(tmp_path: Path) -> None:
    questions = rows(60)
    questions[3]["others"][0] = "secret text"
    questions[8]["passage"] += " secret"
    write_files(tmp_path, {"q.jsonl": questions})
    (tmp_path / "apart.py").write_text("def is_apart(text):\n    return 'secret' in text\n")
    files = (tmp_path / "q.jsonl",)
    settings = AnswersSettings("b", files, (PHASE,), exclude=tmp_path / "apart.py", validation=0.3)
    data = prepare(settings)
    assert (data.excluded, len(data.train) + len(data.validation)) == (2, 58)
    assert not any("secret" in text for q in data.train for text in (q.passage, *q.others))
    assert not {q.document for q in data.train} & {q.document for q in data.validation}


def test_the_settings_of_the_built_in_reader_are_valid() -> None:
    file = Path(run_recipe.__code__.co_filename).parent / "answers" / "settings.yaml"
    settings = read_settings(AnswersSettings, file)
    assert settings.questions[0] == file.parent / "PATH/TO/questions.jsonl.gz"
    assert settings.phases[2].weights == settings.phases[1].weights


def test_train_and_validation_share_no_document_nor_text() -> None:
    questions = [question(f"d{i}", 50 * i) for i in range(60)]
    questions += [question(f"copy{i}", 50 * i + 3) for i in range(0, 60, 7)]
    sides = split(questions, 0.3, seed=1)
    assert all(sides)
    documents = [{q.document for q in side} for side in sides]
    assert not documents[0] & documents[1]
    keys = [set().union(*(fingerprints(q.passage) for q in side)) for side in sides]
    assert not keys[0] & keys[1]


def test_negatives_lack_the_answer() -> None:
    questions = [
        Question("s", "d", "where is the cat", "the cat is in Rome", ((14, 18),)),
        Question("s", "d", "where is the dog", "the dog left rome for the cat", ((4, 7),)),
        Question("s", "e", "where is the cow", "the cow is in the field", ((4, 7),), others=("x",)),
    ]
    negatives = nearest_passages(questions, BM25(k=9), 3)
    assert negatives[0] == [questions[2].passage]
    assert negatives[2][0] == "x"


def test_hotpotqa_gives_questions_with_distractors(tmp_path: Path) -> None:
    item: dict[str, Any] = {"_id": "1", "question": "Who?", "answer": "Ann"}
    item["context"] = [["A", ["Ann came."]], ["B", ["Bob."]], ["C", ["Cy."]]]
    item["supporting_facts"] = [["A", 0], ["B", 0]]
    path = tmp_path / "hotpot.json.gz"
    with gzip.open(path, "wt") as file:
        json.dump([item, {**item, "_id": "2", "answer": "yes"}], file)
    both, single, yes = read_questions(path)
    assert {both.passage[start:end] for start, end in both.answers} == {"Ann"}
    assert (single.passage, yes.yes_no) == ("A\nAnn came.", "yes")
    assert both.others == ("C\nCy.",)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sead": 2}, r"settings\.json:1: there is no setting 'sead'; did you mean 'seed'"),
        ({"questions": ["off.jsonl"]}, r"off\.jsonl:1: the answer 'red' is not at 1"),
        ({"exclude": "base/config.json"}, "exclude: .* must end in .py"),
        ({"base": "./t5"}, "choose an encoder"),
    ],
)
def test_a_mistake_is_one_line(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    save_base("bert", tmp_path / "base")
    tiny = T5Config(d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, vocab_size=9)
    T5Model(tiny).save_pretrained(tmp_path / "t5")
    [row, *_] = rows(3)
    write_files(tmp_path, {"questions.jsonl": rows(30)})
    write_files(tmp_path, {"off.jsonl": [{**row, "answers": [[1, "red"]]}]})
    (tmp_path / "settings.json").write_text(json.dumps({**SETTINGS, **changes}))
    with pytest.raises(UserError, match=message):
        run_recipe("answers", tmp_path / "settings.json", tmp_path / "made")
    assert not (tmp_path / "made").exists()
