"""The published numbers: each stands in the line that is quoted beside it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from leporello.core.yaml.tree import read_tree

FOLDER = Path(__file__).parents[2] / "leporello" / "suites" / "published"
FILES = sorted(FOLDER.glob("*.yaml"))
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def quoted(quote: str) -> list[float]:
    """Returns the numbers of a quote in its order."""
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", quote).replace("*e", "e")
    return [float(found) for found in _NUMBER.findall(plain)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_number_stands_in_its_quote_in_order(file: Path) -> None:
    """Every row has a quote, and its numbers are found there one after the other."""
    published: Any = read_tree(file).plain()
    assert published["paper"]
    assert published["source"].startswith("https://")
    for name, table in published["tables"].items():
        assert table["title"], name
        names = [row["name"] for row in table["rows"]]
        assert len({*names}) == len(names) > 0, name
        for row in table["rows"]:
            left = iter(quoted(row["quote"]))
            for column, numbers in row["numbers"].items():
                assert len(numbers) == len(table["columns"][column]), (name, row["name"], column)
                for number in numbers:
                    there = number is None or number in left  # `in` goes on from where it stood
                    assert there, (name, row["name"], column, number)


def test_all_benchmarks_have_their_numbers() -> None:
    """There is a data file for each suite, and the papers' own tables lie in it."""
    assert {file.stem for file in FILES} >= {
        *("muld", "scrolls", "zero_scrolls", "shuffle_test", "longbench", "longbench_v2"),
        *("ruler", "infinite_bench", "babilong", "loogle"),
    }


def test_rulers_averages_follow_from_its_columns() -> None:
    """A mean of the numbers that were read gives the paper's own, to a digit of rounding."""
    published: Any = read_tree(FOLDER / "ruler.yaml").plain()
    for row in published["tables"]["results"]["rows"]:
        numbers = {k: v[0] for k, v in row["numbers"].items() if not k.startswith("wavg")}
        if stated := numbers.pop("average", None):
            assert sum(numbers.values()) / len(numbers) == pytest.approx(stated, abs=0.07)
