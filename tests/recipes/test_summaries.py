"""The recipe `summaries`: learns weights from rows, without excluded documents."""

from pathlib import Path

import pytest
from command_line import write_files

from leporello.core.errors import UserError
from leporello.models.weights import ModelFolder
from leporello.readers.embedded.summaries import Summariser
from recipes.command import run_recipe

SETTINGS = """
exclude: apart.py
seed: 0
questions: 20
kinds:
  report:
    penalty: 0.1
    redundancy: 1
    words: 12
    sets:
      - {source: gov_report, path: reports.jsonl, share: 1}
"""


def report(name: str, summary: str) -> dict[str, str]:
    """Returns a report whose last sentences are its summary."""
    filler = [f"Nobody {name} knows number {i} of many quiet pages here." for i in range(8)]
    text = " ".join([*filler, summary, summary.upper()])
    return {"id": name, "input": text, "output": summary}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder with settings and two reports, one of which is excluded."""
    rows = [
        report("alpha", "This report finds that wolves eat sheep, farmers, and rye."),
        report("beta", "This report finds that rivers carry salt, timber, and mail."),
    ]
    code = "def is_apart(text):\n    return 'beta' in text\n"
    write_files(tmp_path, {"reports.jsonl": rows, "settings.yaml": SETTINGS, "apart.py": code})
    return tmp_path


def test_the_summariser_loads_the_fitted_weights(folder: Path) -> None:
    fit = run_recipe("summaries", folder / "settings.yaml", folder / "out")
    assert fit["questions"] == {"report": {"gov_report": 1}}
    run_recipe("summaries", folder / "settings.yaml", folder / "again")
    files = [folder / out / "summaries" / "weights.json" for out in ("out", "again")]
    assert files[0].read_bytes() == files[1].read_bytes()
    text = report("gamma", "This report finds that owls hear mice, voles, and shrews.")["input"]
    summary = Summariser(ModelFolder(folder / "out" / "summaries")).summarise([text])
    assert "owls hear mice" in summary.text.lower()


def test_mistakes_are_reported(folder: Path) -> None:
    settings = folder / "settings.yaml"
    for right, wrong, message in (
        ("source: gov_report", "source: gov_reports", "no source 'gov_reports'; did you mean"),
        ("path: reports.jsonl", "path: absent.jsonl", "absent.jsonl cannot be read"),
        ("report:\n", "meeting:\n", "no usable rows of the kind 'meeting'"),
    ):
        settings.write_text(SETTINGS.replace(right, wrong), encoding="utf-8")
        with pytest.raises(UserError, match=message):
            run_recipe("summaries", settings, folder / "out")
