"""Which text of a story comes first: with the shipped weights, and how these are learnt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leporello.core.calls.stage_calls import read as checked_read
from leporello.core.records import Read
from leporello.readers import Precedence
from leporello.training.recipes import run_recipe

FIRST = "The story begins in a small town, where a young man named Tom lives with his mother."
LAST = "In the end he kills the guard, reveals the truth and the story ends with his escape."


def test_a_beginning_comes_before_an_end() -> None:
    """The shipped weights know one from the other; turned round, the probability is the rest."""
    pairs = [(FIRST, LAST), (LAST, FIRST)]
    reads = [Read(pair, pair=pair) for pair in pairs]
    right, wrong = (output.score for output in checked_read(Precedence(), reads))
    assert right is not None
    assert wrong is not None
    assert right > 0.5 > wrong
    assert right + wrong == pytest.approx(1)


def test_a_pair_is_needed() -> None:
    """Passages without a pair are refused."""
    with pytest.raises(ValueError, match="pairs of texts"):
        Precedence().read([Read((FIRST,))])


def test_the_recipe_learns_from_summaries(tmp_path: Path) -> None:
    """Stories that `exclude` knows teach nothing, and words of few stories are left out."""
    told = run_recipe("plots", _stories(tmp_path), tmp_path / "made")
    assert (told["stories"], told["excluded"]) == (4, 1)
    words = (tmp_path / "made/plots/words.txt").read_text().splitlines()
    assert {"one", "five", "one begins"} <= {*words}
    assert not {"secret", "zora"} & {*words}
    reader = Precedence(str(tmp_path / "made"))
    assert reader.place("One begins.") < reader.place("Five ends.")


def _stories(folder: Path) -> Path:
    """Writes stories with summaries in SQuALITY's form, and the settings."""
    plot = "One begins. Two goes on. Three goes on. Four goes on. Five ends."
    texts = [plot] * 3 + [f"{plot} Zora.", f"{plot} Secret."]
    rows = [
        {
            "metadata": {"passage_id": str(number)},
            "document": text,
            "questions": [{"responses": [{"response_text": text}]}],
        }
        for number, text in enumerate(texts)
    ]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "apart.py").write_text("def is_apart(text):\n    return 'Secret' in text\n")
    settings = folder / "settings.json"
    told = {"data": [str(folder / "train.jsonl")], "exclude": str(folder / "apart.py")}
    settings.write_text(json.dumps(told))
    return settings
