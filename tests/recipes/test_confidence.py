"""The recipe `confidence`, on questions about a few short passages."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import write_files

from leporello.core.errors import UserError
from leporello.core.records import Read
from leporello.readers import Embedded
from recipes.command import run_recipe

KEEPERS = ("Ann Dunning", "Grigor Sande", "Otto Kern", "Greta Holm", "Wanda Pohl", "Ned Frack")


def _row(place: str, keeper: str, answer: str) -> Mapping[str, Any]:
    passage = f"The ferry at {place} was kept by {keeper} for nine years."
    return {
        "set": "ferries", "document_id": place, "question": f"Who kept the ferry at {place}?",
        "passage": passage, "answers": [[passage.index(answer), answer]],
    }  # fmt: skip


@pytest.fixture(name="settings")
def _settings(tmp_path: Path) -> Path:
    """Settings with questions of which every second one has another answer than the reader's."""
    rows = [
        _row(f"Quern{n}", keeper, "nine years" if n % 2 else keeper)
        for n, keeper in enumerate(KEEPERS)
    ]
    settings = {"questions": [str(tmp_path / "rows.jsonl")], "sets": {"ferries": 6}, "passages": 3}
    write_files(tmp_path, {"rows.jsonl": rows, "settings.json": [settings]})
    return tmp_path / "settings.json"


def test_the_copy_of_the_model_has_the_fitted_confidence(settings: Path, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    record = run_recipe("confidence", settings, folder)
    assert (record["answers"], record["parameter"]) == (6, "reader.model")
    assert {"ece", "auc", "sure", "sure_share"} == {*record["validation"]}
    config = json.loads((folder / "answers" / "config.json").read_text())
    assert config["confidence"] == record["confidence"]
    passage = "The ferry at Quern7 was kept by Lena Voss for nine years."
    [output] = Embedded(model=str(folder)).read([Read((passage,), "Who kept the ferry?")])
    assert output.text == "Lena Voss"
    assert output.probability == pytest.approx(0.5, abs=0.3)


def test_a_set_without_questions_is_reported(settings: Path, tmp_path: Path) -> None:
    """A misspelt name must not leave a set out."""
    values = json.loads(settings.read_text())
    settings.write_text(json.dumps({**values, "sets": {"fery": 6}}))
    with pytest.raises(UserError, match="no file has answered questions of the set 'fery'"):
        run_recipe("confidence", settings, tmp_path / "made")
    assert not (tmp_path / "made").exists()
