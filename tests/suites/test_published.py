"""Tests that published numbers match the quotes of their papers."""

import re
from pathlib import Path
from typing import Any

import pytest

from leporello.core.yaml.tree import read_tree

FOLDER = Path(__file__).parents[2] / "leporello" / "suites" / "published"
FILES = sorted(FOLDER.glob("*.yaml"))
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def quoted(quote: str) -> list[float]:
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", quote).replace("*e", "e")
    return [float(number) for number in _NUMBER.findall(plain)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_numbers_are_in_their_quotes_in_order(file: Path) -> None:
    published: Any = read_tree(file).plain()
    assert published["paper"]
    assert published["source"].startswith("https://")
    for name, table in published["tables"].items():
        assert table["title"], name
        names = [row["name"] for row in table["rows"]]
        assert len({*names}) == len(names) > 0, name
        for row in table["rows"]:
            remaining = iter(quoted(row["quote"]))
            for column, numbers in row["numbers"].items():
                assert len(numbers) == len(table["columns"][column]), (name, row["name"], column)
                for number in numbers:
                    is_quoted = number is None or number in remaining  # `in` advances the iterator
                    assert is_quoted, (name, row["name"], column, number)


def test_rulers_averages_follow_from_its_columns() -> None:
    """The mean of a row's numbers is the paper's average, except for rounding."""
    published: Any = read_tree(FOLDER / "ruler.yaml").plain()
    for row in published["tables"]["results"]["rows"]:
        numbers = {k: v[0] for k, v in row["numbers"].items() if not k.startswith("wavg")}
        if stated := numbers.pop("average", None):
            assert sum(numbers.values()) / len(numbers) == pytest.approx(stated, abs=0.07)
