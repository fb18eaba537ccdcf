"""What plug-in code asks of the machine: kept results and runs that rest on it are done again."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import leporello

from leporello.cache.clocks import clock_of
from leporello.core.environment.classes import load_file

PLUG_IN = """
import importlib, os, pkgutil
from dataclasses import dataclass
from pathlib import Path
from leporello import Output

HERE = Path(__file__).parent

def _file(path=HERE / "words.txt"):
    return path.read_text()

WAYS = {
    "file": _file,
    "opened": lambda: open(HERE / "words.txt").read(),
    "low": lambda: os.read(os.open(HERE / "words.txt", os.O_RDONLY), 99).decode(),
    "variable": lambda: os.environ.get("WORDS", "none"),
    "getenv": lambda: os.getenv("WORDS", "none"),
    "folder": lambda: " ".join(sorted(os.listdir(HERE / "folder"))),
    "glob": lambda: " ".join(sorted(p.name for p in (HERE / "folder").glob("*"))),
    "module": lambda: importlib.import_module("wor" + "ds").WORDS,
    "exec": lambda: exec((HERE / "words.py").read_text(), scope := {}) or scope["WORDS"],
    "data": lambda: pkgutil.get_data("things", "words.txt").decode(),
    "absent": lambda: _file(HERE / "late.txt") if (HERE / "late.txt").exists() else _absent(),
}

def _absent():
    try:
        return open(HERE / "late.txt").read()
    except FileNotFoundError:
        return "none"

@dataclass(frozen=True)
class Says:
    way: str = "file"
    repeatable: bool = False

    def read(self, inputs):
        return [Output(WAYS[self.way]()) for _ in inputs]

    def count(self, texts):
        return [len(text) for text in texts]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A plug-in with all that it may ask for, and a pipeline for each way of asking."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "things").mkdir()
    (tmp_path / "things/__init__.py").touch()
    (tmp_path / "plug.py").write_text(PLUG_IN)
    _write(tmp_path, "red")
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "document": "It rains.", "question": "?"}\n')
    (tmp_path / "mine.yaml").write_text(
        "pipelines:\n  mine: {reader: {class: ./plug.py:Says}, tasks: [rows]}\n"
        "tasks:\n  rows: {class: JsonLines, path: rows.jsonl}\n"
    )
    return tmp_path


def _write(folder: Path, word: str) -> None:
    (folder / "words.txt").write_text(word)
    (folder / "things/words.txt").write_text(word)
    (folder / "words.py").write_text(f'WORDS = "{word}"\n')
    (folder / "folder" / word).touch()
    if word != "red":
        (folder / "late.txt").write_text(word)


def _run(folder: Path, way: str, out: str, word: str, *options: str, status: int = 0) -> str:
    return _said(
        folder, word, "run", "mine", "--config", folder / "mine.yaml", "--set",
        f"reader.way={way}", "--out", folder / out, *options, status=status,
    )  # fmt: skip


def _said(folder: Path, word: str, *arguments: str | Path, status: int = 0) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORDS", word)
        patch.setenv("LEPORELLO_CACHE", str(folder / "cache"))
        told = leporello(*arguments, status=status)
    return told.stdout + told.stderr


def _answer(folder: Path, out: str) -> str:
    [path] = (folder / out).glob("mine*/rows/predictions.jsonl")
    return path.read_text()


USUAL = ("opened", "variable", "module")
OTHERS = ("file", "low", "getenv", "folder", "glob", "exec", "data", "absent")


CHANGED = {"opened": "file FOLDER/words.txt", "variable": "variable WORDS", "module": "words.py"}


@pytest.mark.parametrize(
    "way", [*USUAL, *(pytest.param(w, marks=pytest.mark.slow) for w in OTHERS)]
)
def test_what_rests_on_something_else_is_done_again(folder: Path, way: str) -> None:
    """Another run does not take it from the cache; the same run refuses, and says what it was.

    So does `cache why`.
    """
    _run(folder, way, "one", "red")
    first = _answer(folder, "one")
    assert "outputs by Says: kept\n" in _said(folder, "red", "cache", "why", folder / "one", "a")
    _write(folder, "blue")
    told = _said(folder, "blue", "cache", "why", folder / "one", "a")
    assert "outputs by Says: not kept; the " in told
    assert f"{CHANGED.get(way, '').replace('FOLDER', str(folder))} changed since" in told
    _run(folder, way, "two", "blue")
    assert "blue" in _answer(folder, "two") or way == "absent"
    assert _answer(folder, "two") != first
    told = _run(folder, way, "one", "blue", status=2)
    assert "for which plug-in code asked, changed since" in told
    _run(folder, way, "one", "blue", "--update")
    assert _answer(folder, "one") == _answer(folder, "two")


def test_what_a_class_says_is_repeatable_is_kept(folder: Path) -> None:
    """Its results depend on nothing that it asks for."""
    text = (
        (folder / "plug.py")
        .read_text()
        .replace("repeatable: bool = False", "repeatable: bool = True")
    )
    (folder / "plug.py").write_text(text)
    _run(folder, "variable", "one", "red")
    _run(folder, "variable", "one", "blue")
    assert '"red"' in _answer(folder, "one")


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("import time; WHEN = str(time.time_ns())", "time.time_ns"),
        ("from datetime import datetime as d; WHEN = d.now().ctime()", "datetime.datetime.now"),
        ("import random; WHEN = str(random.Random().random())", "random.Random"),
        ("import random; WHEN = str(random.Random(3).random())", ""),
    ],
)
def test_what_asks_a_clock_is_not_repeatable(folder: Path, line: str, asked: str) -> None:
    """Nor what draws numbers without a seed."""
    text = (folder / "plug.py").read_text().replace("HERE =", f"{line}\nHERE =")
    (folder / "plug.py").write_text(text)
    told = clock_of(load_file(folder / "plug.py").Says)
    assert told == (f"{asked} in line 7 of plug.py" if asked else "")
