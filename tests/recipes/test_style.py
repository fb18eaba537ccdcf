"""The recipe `style`: its training documents, exclusions and files."""

import json
from itertools import groupby
from pathlib import Path
from random import Random

import pytest
from command_line import write_files

from leporello.core.errors import UserError
from leporello.readers import PairClassifier
from recipes.command import run_recipe
from recipes.style.recipe import glued, read_works


def _works(folder: Path, authors: int) -> Path:
    chance, rows = Random(0), []
    for number in range(authors):
        words = [f"{letter}{number}w" for letter in "abcdefgh"]
        lines = [" ".join(chance.choices(words, k=60)) for _ in range(12)]
        rows.append({"author": f"author {number}", "text": "\n".join(lines)})
    apart = f"def is_apart(text):\n    return 'a{authors - 1}w' in text\n"
    settings = {"works": str(folder / "works.jsonl"), "exclude": str(folder / "apart.py")}
    write_files(folder, {"works.jsonl": rows, "apart.py": apart, "settings.json": [settings]})
    return folder / "settings.json"


def test_documents_have_segments_of_two_to_four_authors(tmp_path: Path) -> None:
    _works(tmp_path, 6)
    works, _ = read_works(tmp_path / "works.jsonl")
    for example in glued(works, 8, seed=1):
        gold = json.loads(example.references[0])
        assert len(gold) == len(example.document.parts)
        assert [*dict.fromkeys(gold)] == [*range(1, max(gold) + 1)]
        assert 2 <= max(gold) <= 4
        assert len([*groupby(gold)]) <= 6


@pytest.mark.integration
def test_the_reader_loads_the_trained_model(tmp_path: Path) -> None:
    summary = run_recipe("style", _works(tmp_path, 7), tmp_path / "made")
    assert (summary["authors"], summary["excluded"]) == (6, 1)
    PairClassifier(str(tmp_path / "made/style")).load()
    (few := tmp_path / "few").mkdir()  # another folder, since a Python file is imported only once
    with pytest.raises(UserError, match="there are 3 authors"):
        run_recipe("style", _works(few, 4), tmp_path / "other")
