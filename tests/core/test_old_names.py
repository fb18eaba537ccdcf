"""Names of 0.1 give what has the new name, with one warning."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from command_line import ROOT

import leporello.api
from leporello.cache.source_code import source_hashes
from leporello.core.environment.classes import find_class
from leporello.core.environment.old_names import MODULES
from leporello.core.protocols import KINDS
from leporello.readers import Lead

API = {
    "Fate": "ExampleTrace",
    "Worked": "FewShotExamples",
    "fates": "trace_examples",
    "worked_examples": "few_shot_examples",
}


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """No old name has been imported."""
    for name in MODULES:
        sys.modules.pop(name, None)
    yield
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(("old", "new"), MODULES.items())
def test_an_old_module_is_the_new_one(old: str, new: str) -> None:
    """The same object, whose own name stays the new one."""
    with pytest.warns(FutureWarning, match=f"^{old} is {new} now") as told:
        found = importlib.import_module(old)
    assert len(told) == 1
    assert found is importlib.import_module(new)
    assert found.__spec__ is not None
    assert found.__name__ == found.__spec__.name == new


@pytest.mark.parametrize(("old", "new"), API.items())
def test_an_old_name_of_the_api_is_the_new_one(old: str, new: str) -> None:
    """With a warning that says which."""
    with pytest.warns(FutureWarning, match=f"{old} is leporello.api.{new} now"):
        assert getattr(leporello.api, old) is getattr(leporello.api, new)


def test_a_name_that_never_was_is_no_attribute() -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        leporello.api.__getattr__("nothing")


# Run in the checkout, where `readers` is a folder, and in an empty one, where it is an old name.
STAGES = """
import pickle, sys
from pathlib import Path
sys.path[2:] = [place for place in sys.path[2:] if not Path(place, "readers").is_dir()]  # installed
import {first}
import {second}
from readers import Lead
from readers.lead import Lead as ByModule
from leporello.readers import Lead as Named
assert Lead is ByModule is Named
assert Lead.__module__ == "leporello.readers.lead"
assert pickle.loads(pickle.dumps(Lead())) == Lead()
"""


@pytest.mark.parametrize(
    ("first", "second", "checkout"),
    [
        ("leporello", "readers", True),
        ("readers", "leporello", True),
        ("leporello", "readers", False),  # else nothing answers to the old name
    ],
)
def test_a_stage_is_one_class_by_every_name(
    tmp_path: Path, first: str, second: str, checkout: bool
) -> None:
    """Whichever is imported first, in a checkout and out of one."""
    if not checkout:
        (tmp_path / "leporello").symlink_to(ROOT / "leporello")
    folder = ROOT if checkout else tmp_path
    done = subprocess.run(
        [sys.executable, "-c", STAGES.format(first=first, second=second)],
        cwd=folder, env={"PYTHONPATH": str(folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("FutureWarning") == (0 if checkout else 1)


def test_a_stage_comes_back_from_a_spawned_process() -> None:
    """As the same class."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert pool.submit(Lead).result() == Lead()


def test_what_a_plug_in_imports_by_an_old_name_counts_in_its_fingerprint(tmp_path: Path) -> None:
    """Under the new name, whose source it is."""
    file = tmp_path / "mine.py"
    file.write_text("import leporello.items\nclass Mine: ...\n", encoding="utf-8")
    with pytest.warns(FutureWarning, match="leporello.items"):
        mine = find_class("mine.py:Mine", KINDS["chunker"], tmp_path)
    assert {"mine.py", "leporello.core.items"} <= source_hashes(mine).keys()
