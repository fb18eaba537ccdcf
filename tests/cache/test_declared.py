"""Tests of `depends_on` and `repeatable`, which plug-in classes declare about their results."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from command_line import HERE, leporello

from leporello.cache.dependencies import fingerprint
from leporello.config import load_config
from leporello.core.annotations import fault_of_declarations
from leporello.core.environment.classes import load_file
from leporello.core.errors import ConfigError
from leporello.core.hashing import differences

PLUG_IN = """
import os
from dataclasses import dataclass
from pathlib import Path
from leporello import Output

WORDS = Path(__file__).parent / "words.txt"

@dataclass(frozen=True)
class Says:
    # declarations

    def read(self, inputs):
        return [Output(f"{WORDS.read_text()} {os.environ.get('COLOUR')}") for _ in inputs]

    def count(self, texts):
        return [len(text) for text in texts]
"""
CONFIG = """
pipelines:
  mine: {reader: ./plug.py:Says, tasks: [rows]}
tasks:
  rows: {class: JsonLines, path: rows.jsonl}
"""


def write(folder: Path, declarations: str, name: str = "plug.py", text: str = PLUG_IN) -> Path:
    (folder / "words.txt").write_text("red")
    (folder / name).write_text(text.replace("# declarations", declarations))
    return folder / name


def key_of(path: Path) -> dict[str, Any]:
    key = fingerprint(load_file(path).Says())
    assert key is not None
    return {**key}


def test_declared_files_folders_and_variables_count_by_their_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable that is not set differs from one that is empty; values are hashed."""
    (tmp_path / "names").mkdir()
    path = write(tmp_path, 'depends_on = ("words.txt", "names", "env:COLOUR")')
    keys = [key_of(path)]
    monkeypatch.setenv("COLOUR", "")
    keys.append(key_of(path))
    monkeypatch.setenv("COLOUR", "a secret")
    keys.append(key_of(path))
    (tmp_path / "words.txt").write_text("tan")
    keys.append(key_of(path))
    (tmp_path / "names/more.txt").write_text("more")
    keys.append(key_of(path))
    changed = [[*differences(*pair)] for pair in itertools.pairwise(keys)]
    assert [[text.partition(":")[0] for text in fields] for fields in changed] == [
        ["depends_on.env"], ["depends_on.env"], ["depends_on.words.txt"], ["depends_on.names"]
    ]  # fmt: skip
    assert "a secret" not in str(keys)


def test_a_base_classs_files_count_from_its_own_source_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far").mkdir()
    write(tmp_path / "far", 'depends_on = ("words.txt",)', "far_base.py")
    monkeypatch.syspath_prepend(str(tmp_path / "far"))
    text = "import far_base\nclass Says(far_base.Says):\n    # declarations\n    pass\n"
    path = write(tmp_path, 'depends_on = ("words.txt",)', "near.py", text)
    before = key_of(path)
    for folder in (tmp_path, tmp_path / "far"):
        (folder / "words.txt").write_text("tan")
        after = key_of(path)
        assert after["depends_on"] != before["depends_on"]
        before = after


@pytest.mark.parametrize(
    ("declarations", "message"),
    [
        ('depends_on = "words.txt"', "is 'words.txt'; it must be a tuple of files"),
        ("depends_on = (1,)", r"is \(1,\); it must be a tuple of files and variables"),
        ('depends_on = ("",)', "it must be a tuple"),
        ('depends_on = ("env:",)', "an environment variable is env:NAME"),
        ('depends_on = ("env:A=B",)', "an environment variable is env:NAME"),
        ('depends_on = ("var:WORDS",)', "/var:WORDS does not exist"),
        ('depends_on = ("wrods.txt",)', "/wrods.txt does not exist; a file is relative"),
        ('depends_on = ("words\\0.txt",)', "does not exist"),
        ('depends_on: tuple[str, ...] = ("words.txt",)', "is a parameter: annotate it as ClassVar"),
        ('repeatable = "no"', "repeatable is 'no'; it must be True or False"),
        ("repeatable: bool = False", r"is a parameter: annotate it as ClassVar\[bool\]"),
    ],
)
def test_a_wrong_declaration_is_a_fault(tmp_path: Path, declarations: str, message: str) -> None:
    write(tmp_path, declarations)
    (tmp_path / "mine.yaml").write_text(CONFIG)
    with pytest.raises(ConfigError, match=rf"mine.yaml:3: .*Says\..*{message}"):
        load_config([tmp_path / "mine.yaml"])


def test_a_name_with_a_colon_is_declared_as_a_path(tmp_path: Path) -> None:
    """`./` separates it from a prefix."""
    (tmp_path / "env:A").write_text("red")
    path = write(tmp_path, 'depends_on = ("./env:A", "env:A")')
    assert fault_of_declarations(load_file(path).Says) is None
    assert key_of(path)["depends_on"].keys() == {"./env:A", "env:A"}


def test_a_class_that_is_not_repeatable_is_not_cached(tmp_path: Path) -> None:
    """Neither is a stage that contains one."""
    from leporello.readers import Calibrated

    says = load_file(write(tmp_path, "repeatable = False")).Says
    assert fingerprint(says()) is None
    assert fingerprint(Calibrated(says())) is None


def run(folder: Path, out: str, *options: str, status: int = 0) -> str:
    return leporello(
        "run", "mine", *HERE, "--config", folder / "mine.yaml", "--out", folder / out, *options,
        status=status,
    ).stderr  # fmt: skip


def answer(folder: Path, out: str) -> str:
    return (folder / out / "mine/rows/predictions.jsonl").read_text()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.yaml").write_text(CONFIG)
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "document": "It rains.", "question": "?"}\n')
    monkeypatch.setenv("LEPORELLO_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_a_run_that_depends_on_a_declared_file_refuses_another_content(folder: Path) -> None:
    """`--update` runs it again, another run ignores the cached output, and nothing is warned of."""
    write(folder, 'depends_on = ("words.txt",)')
    assert "depends_on" not in run(folder, "one") + run(folder, "one")
    (folder / "words.txt").write_text("tan")
    assert "depends_on.plug.py:Says.words.txt: 'sha256:" in run(folder, "one", status=2)
    assert "depends_on" not in run(folder, "two")
    assert "tan" in answer(folder, "two")
    run(folder, "one", "--update")
    assert answer(folder, "one") == answer(folder, "two")


@pytest.mark.parametrize("workers", ["0", "2"])
def test_reused_results_without_declarations_print_one_line(folder: Path, workers: str) -> None:
    """So do results of a finished run; the first run prints no such line."""
    write(folder, "")
    line = "plug.py:Says does not declare depends_on: its results are reused"
    options = ("--workers", workers, "--unsupervised")
    assert line not in run(folder, "one", *options)
    (folder / "words.txt").write_text("tan")
    for out in ("one", "two"):
        assert run(folder, out, *options).count(line) == 1
        assert "red" in answer(folder, out)
    write(folder, "depends_on = ()")
    assert "depends_on" not in run(folder, "three") + run(folder, "four")
