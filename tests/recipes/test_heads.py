"""The recipes `choices` and `statements`: train the heads that readers load from data files."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_head import PlainHead
from row_files import json_lines, write_rows

from leporello.core.errors import UserError
from leporello.readers.embedded.choices import ChoiceRanker
from leporello.readers.embedded.statements import StatementJudge
from recipes.choices import recipe as choices_recipe
from recipes.command import run_recipe
from recipes.settings import exclusion
from recipes.statements import recipe as statements_recipe

HYPOTHESES = {"nda-1": "Copies may be made.", "nda-2": "Staff may be told."}
CLAUSES = {
    ("nda-1", "Entailment"): "Copies may be made freely.",
    ("nda-1", "Contradiction"): "No copies shall be made.",
    ("nda-2", "Entailment"): "Staff may be told of it.",
}


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the encoder by rules."""
    for module in (choices_recipe, statements_recipe):
        monkeypatch.setattr(module, "SpanHead", PlainHead)


def contract(number: int) -> dict[str, Any]:
    """Returns a contract in ContractNLI's format; a third each allow, forbid or omit copies."""
    choices = {
        "nda-1": ("Entailment", "Contradiction", "NotMentioned")[number % 3],
        "nda-2": ("Entailment", "NotMentioned")[number % 2],
    }
    clauses = [f"Agreement {number} binds both.", "Law number nine applies."]
    clauses += [CLAUSES[item] for item in choices.items() if item in CLAUSES]
    text, spans = "", []
    for clause in clauses:
        spans.append([len(text), len(text) + len(clause)])
        text += clause + "\n"
    annotations = {
        key: {
            "choice": choice,
            "spans": [clauses.index(CLAUSES[key, choice])] if (key, choice) in CLAUSES else [],
        }
        for key, choice in choices.items()
    }
    annotated = [{"annotations": annotations}]
    return {"id": number, "text": text, "spans": spans, "annotation_sets": annotated}


@pytest.fixture(name="contracts")
def _contracts(tmp_path: Path) -> Path:
    """Writes files of contracts, evidence and settings; returns the first."""
    labels = {key: {"hypothesis": text} for key, text in HYPOTHESES.items()}
    data = {"documents": [contract(i) for i in range(24)], "labels": labels}
    (tmp_path / "train.json").write_text(json.dumps(data))
    with (tmp_path / "more.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["concatenated_spans", "hypothesis", "label"])
        writer.writerow(["No copies shall be made.\nIt ends.", HYPOTHESES["nda-1"], 1])
        writer.writerow(["Copies are art.", HYPOTHESES["nda-2"], 2])
    settings = {"contracts": ["train.json"], "evidence": ["more.csv"], "encoder": ".", "size": 256}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    return tmp_path / "train.json"


def test_a_judge_learns_from_contracts(contracts: Path) -> None:
    folder = contracts.parent
    summary = run_recipe("statements", folder / "settings.json", folder / "made")
    assert summary["contracts"] == 24
    assert summary["evidence"] == 1
    assert summary["validation"]["known_accuracy"] > summary["validation"]["known_commonest"]
    judge = StatementJudge(folder / "made/statements", PlainHead())
    for clause, label in (("Copies may be made freely.", 1), ("No copies shall be made.", 2)):
        judgement = judge.judge(HYPOTHESES["nda-1"], [clause])
        assert int(np.argmax(judgement.probabilities)) == label
    with pytest.raises(UserError, match="--update replaces it"):
        run_recipe("statements", folder / "settings.json", folder / "made")


def story(number: int) -> dict[str, str]:
    """Returns a question on a story in SCROLLS' format; the right option joins two things."""
    options = [f"a boat {number}", "nobody", "never", f"the sea, and the wind {number}"]
    listed = "".join(f" ({k}) {o}\n" for k, o in zip("ABCD", options, strict=True))
    text = f"Who sings?\n\n{listed}\n\nStory {number % 6} is old."
    return {"input": text, "output": options[3]}


@pytest.fixture(name="choices")
def _choices(tmp_path: Path) -> Path:
    """Returns a file of settings, beside its data."""
    write_rows(tmp_path / "quality.jsonl", *map(story, range(24)))
    with (tmp_path / "cosmos.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "context", "question", *(f"answer{i}" for i in range(4)), "label"])
        options = ("wind, and sea", 1), ("None of the above choices.", 0)
        for number, (option, label) in enumerate(options):
            writer.writerow([number, "It rains.", "Why?", "clouds", option, "a", "b", label])
    names = ("Ann", "Bob", "Cid", "Dan")
    rows = [
        {"set": "fairytaleqa", "document_id": "d", "question": f"who is {i}?",
         "passage": f"it is {name}", "answers": [[6, name]]}
        for i, name in enumerate(names)
    ]  # fmt: skip
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(json_lines(rows)))
    settings = {"encoder": ".", "quality": "quality.jsonl", "cosmos": "cosmos.csv"}
    (tmp_path / "settings.json").write_text(json.dumps({**settings, "questions": "rows.jsonl.gz"}))
    return tmp_path / "settings.json"


def test_a_ranker_learns_the_form_of_right_options(choices: Path) -> None:
    summary = run_recipe("choices", choices, choices.parent / "made")
    assert summary["questions"] == [24, 1, 1]
    assert summary["validation"]["accuracy"] == 1
    ranker = ChoiceRanker(choices.parent / "made/choices", PlainHead())
    choice = ranker.choose("Who?", ("a hen", "a cow", "a cat, and a dog"), ())
    assert max(choice.probabilities) == choice.probabilities[2]


def test_a_python_file_decides_which_texts_are_excluded(tmp_path: Path) -> None:
    (tmp_path / "apart.py").write_text("def is_apart(text, share):\n    return len(text) > share")
    excluded = exclusion(tmp_path / "apart.py", 3)
    assert excluded("long")
    assert not excluded("it")
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(UserError, match="no function `is_apart`"):
        exclusion(tmp_path / "empty.py", 3)


@pytest.mark.parametrize(
    "recipe", ["choices", "plots", "polarity", "statements", "style", "summaries", "verdicts"]
)
def test_missing_settings_are_reported_with_their_file(recipe: str, tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("nonsense: 1\n", encoding="utf-8")
    with pytest.raises(
        UserError, match=r"settings\.yaml.*there is no setting 'nonsense'"
    ) as raised:
        run_recipe(recipe, settings, tmp_path / "out")
    assert "needs the setting" in str(raised.value)
    assert not (tmp_path / "out").exists()
