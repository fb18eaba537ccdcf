"""The recipe `verdicts`: claims made of questions, and the judge that learns from them."""

from __future__ import annotations

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
    ("question", "answer", "made"),
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
def test_a_question_and_its_answer_make_a_claim(
    question: str, answer: str, made: str | None
) -> None:
    """By rules, whose verbs may be bare; what fits no rule makes none."""
    assert claim(question, answer) == made


def facts(count: int = 40) -> list[dict[str, object]]:
    """Returns questions on passages of two documents each, one in three for yes or no."""
    made: list[dict[str, object]] = []
    for i in range(count):
        passage = f"W{i} was built in {1000 + i}. W{i + 1} was sold in {2000 + i}."
        row = {"set": "plain", "document_id": f"d{i % 20}", "passage": passage}
        year = str(1000 + i)
        answers = [[passage.index(year), year]]
        made.append({**row, "question": f"When was W{i} built?", "answers": answers})
        made.append({**row, "set": "asked", "question": f"was W{i} built?", "yes_no": "yes"})
    return made


def test_a_judge_is_trained_and_read_as_a_difference(tmp_path: Path) -> None:
    """What its upper layers learnt is written; train and validation share no document."""
    save_base("bert", tmp_path / "base")
    phase = Phase(tokens=100, learning_rate=1e-3)
    base = load_base(AnswersSettings(str(tmp_path / "base"), (Path("rows"),), (phase,)))
    ship(AnswerNetwork(base.encoder), base, tmp_path / "answers", "card")
    write_files(tmp_path, {"rows.jsonl": facts()})
    settings = {"encoder": "answers", "questions": ["rows.jsonl"], "frozen": 1, "validation": 0.3}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    known, held = _pairs_of(read_settings(VerdictsSettings, tmp_path / "settings.json"))
    assert known
    assert {pair.document for pair in known}.isdisjoint(pair.document for pair in held)
    done = run_recipe("verdicts", tmp_path / "settings.json", tmp_path / "made")
    assert done["pairs"] > 20
    plain = Encoder(tmp_path / "answers")
    judge = Encoder(tmp_path / "answers", tmp_path / "made/verdicts")
    window = TextPair([5, 6], [7, 8, 9])
    one, other = (e.scores([window])[0]["label"] for e in (plain, judge))
    assert one.shape == other.shape == (4,)
    assert not np.allclose(one, other)
