"""The recipe `verdicts`: turns questions into claims, and trains a judge on them."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import write_files
from tiny_questions import save_base

from leporello.combiners.deciding.verify import claim
from leporello.readers.embedded.encoder import Encoder, TextPair
from recipes.answers.base import load_base
from recipes.answers.network import AnswerNetwork
from recipes.answers.settings import AnswersSettings, Phase
from recipes.answers.ship import ship
from recipes.command import run_recipe
from recipes.settings import read_settings
from recipes.verdicts.recipe import VerdictsSettings, _pairs_of


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        ("Who signed the treaty?", "Ann", "Ann signed the treaty."),
        ("When was the mill built?", "1871", "The mill was built in 1871."),
        ("Where did Bo go?", "to Lyon", "Bo go to Lyon."),
        ("What are they playing?", "chess", "They are playing chess."),
        ("What was painted red?", "the boat", "The boat was painted red."),
        ("In which city is the museum?", "Lyon", "The museum is Lyon."),
        ("How many boats did Ann have?", "two", "Ann have two boats."),
        ("Why did it rain?", "clouds", None),
        ("Who is older, Ann or Bo?", "Ann", None),
        ("Who?", "Ann", None),
    ],
)
def test_question_and_answer_make_a_claim(question: str, answer: str, expected: str | None) -> None:
    assert claim(question, answer) == expected


def facts(count: int = 40) -> list[dict[str, object]]:
    """Returns two questions on each passage: one for a year, and one for yes or no."""
    questions: list[dict[str, object]] = []
    for i in range(count):
        passage = f"W{i} was built in {1000 + i}. W{i + 1} was sold in {2000 + i}."
        row = {"set": "plain", "document_id": f"d{i % 20}", "passage": passage}
        year = str(1000 + i)
        answers = [[passage.index(year), year]]
        questions.append({**row, "question": f"When was W{i} built?", "answers": answers})
        questions.append({**row, "set": "asked", "question": f"was W{i} built?", "yes_no": "yes"})
    return questions


def test_a_judge_is_trained_and_read_as_a_difference(tmp_path: Path) -> None:
    """The recipe writes the changed upper layers; train and validation share no document."""
    save_base("bert", tmp_path / "base")
    phase = Phase(tokens=100, learning_rate=1e-3)
    base = load_base(AnswersSettings(str(tmp_path / "base"), (Path("rows"),), (phase,)))
    ship(AnswerNetwork(base.encoder), base, tmp_path / "answers", "card")
    write_files(tmp_path, {"rows.jsonl": facts()})
    settings = {"encoder": "answers", "questions": ["rows.jsonl"], "frozen": 1, "validation": 0.3}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    train, validation = _pairs_of(read_settings(VerdictsSettings, tmp_path / "settings.json"))
    assert train
    assert {pair.document for pair in train}.isdisjoint(pair.document for pair in validation)
    summary = run_recipe("verdicts", tmp_path / "settings.json", tmp_path / "made")
    assert summary["pairs"] > 20
    encoder = Encoder(tmp_path / "answers")
    judge = Encoder(tmp_path / "answers", tmp_path / "made/verdicts")
    pair = TextPair([5, 6], [7, 8, 9])
    before, after = (network.scores([pair])[0]["label"] for network in (encoder, judge))
    assert before.shape == after.shape == (4,)
    assert not np.allclose(before, after)
