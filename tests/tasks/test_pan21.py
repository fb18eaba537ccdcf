"""Tests of style change from folders of PAN and of the generator of MuLD's task."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import leporello, write_files

from leporello.api import UserError, run
from leporello.core.records import Example
from leporello.tasks import Pan21


def write(folder: Path, number: int, text: str, authors: list[int] | None) -> None:
    files = {f"problem-{number}.txt": text}
    if authors is not None:
        truth = {"site": "a site", "structure": ["A"], "paragraph-authors": authors}
        files[f"truth-problem-{number}.json"] = json.dumps(truth)
    write_files(folder, files)


def parts_of(example: Example) -> list[str]:
    return [example.document.text[part.start : part.end] for part in example.document.parts]


def test_problems_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        write(tmp_path, number, "One.\n\nTwo.", [1, 2])
    write_files(tmp_path, {"problem-x.txt": "no problem", "readme.md": "about"})
    task = Pan21(tmp_path)
    names = [example.id for example in task.examples()]
    assert names == ["problem-1", "problem-2", "problem-10"]
    assert len(task) == 3
    assert task.metrics == ("pan21",)


@pytest.mark.parametrize(
    ("text", "authors", "wanted"),
    [
        ("One\nstill.\n\nTwo.", [1, 2], ["One\nstill.", "Two."]),
        ("One\nstill.\n\nTwo.\n", [1, 1, 2], ["One", "still.", "Two."]),
        ("One.\r\n\r\n\r\nTwo.\r\n", [1, 2], ["One.", "Two.\r\n"]),
        ("One.\nTwo.\nThree.", [1, 2, 1], ["One.", "Two.", "Three."]),
        ("Alone.", [1], ["Alone."]),
    ],
)
def test_there_are_as_many_paragraphs_as_authors(
    tmp_path: Path, text: str, authors: list[int], wanted: list[str]
) -> None:
    """The separator is a blank line, as in PAN, or a line break, as in MuLD."""
    write(tmp_path, 1, "", authors)
    (tmp_path / "problem-1.txt").write_bytes(text.encode())
    [example] = Pan21(tmp_path).examples()
    assert example.fault == ""
    assert [part.strip() for part in parts_of(example)] == [part.strip() for part in wanted]
    assert json.loads(example.references[0]) == authors


def test_without_truth_it_is_test_data(tmp_path: Path) -> None:
    write(tmp_path, 1, "One\nstill.\n\nTwo.", None)
    write(tmp_path, 2, "One.\nTwo.\nThree.\n", None)
    first, second = Pan21(tmp_path).examples()
    assert parts_of(first) == ["One\nstill.", "Two."]
    assert parts_of(second) == ["One.", "Two.", "Three."]
    assert (first.references, first.fault, first.metadata) == ((), "", {})


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ('{"paragraph-authors": [1, 1, 2]}', "has 3 paragraph-authors, but the problem has 2"),
        ('{"authors": 2}', "has no list `paragraph-authors`"),
        ('{"paragraph-authors": [0, 1]}', "are not numbers from 1"),
        ("[1, 2]", "has no list `paragraph-authors`"),
        ("{", "Expecting property name"),
    ],
)
def test_only_examples_with_faulty_truth_fail(tmp_path: Path, truth: str, message: str) -> None:
    write(tmp_path, 1, "One.\n\nTwo.", [1, 1])
    write(tmp_path, 2, "One.\n\nTwo.", None)
    (tmp_path / "truth-problem-2.json").write_text(truth)
    good, faulty = Pan21(tmp_path).examples()
    assert good.fault == ""
    assert faulty.fault.startswith("truth-problem-2.json: ")
    assert message in faulty.fault
    assert faulty.references == ()


def test_a_missing_or_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such folder"):
        list(Pan21(tmp_path / "none").examples())
    with pytest.raises(UserError, match=r"has no problem-1\.txt"):
        Pan21(tmp_path).fingerprint()


def test_answers_are_exported_as_solution_files(tmp_path: Path) -> None:
    for number in (10, 2):
        write(tmp_path / "pan", number, "One.\n\nTwo.\n\nThree.", [1, 1, 2])
    tasks = {"styles": {"class": "Pan21", "path": str(tmp_path / "pan")}}
    for name, answer in {"right": "[1, 2, 1]", "short": "[1, 2]"}.items():
        pipelines = {name: {"reader": {"class": "FixedAnswer", "answer": answer}}}
        config: list[Any] = [{"tasks": tasks, "pipelines": pipelines}]
        run([name], ["styles"], config=config, out=tmp_path / name, workers=0)
    out = tmp_path / "out"
    paths = leporello("export", tmp_path / "right", "--format", "pan", "--out", out).stdout.split()
    names = ["solution-problem-2.json", "solution-problem-10.json"]
    assert [Path(path).relative_to(out / "right/styles") for path in paths] == [*map(Path, names)]
    solution = {"multi-author": 1, "changes": [1, 1], "paragraph-authors": [1, 2, 1]}
    assert json.loads(Path(paths[0]).read_text()) == solution
    errors = leporello("export", tmp_path / "short", "--format", "pan", status=2).stderr
    assert "short on styles: 2 of 2 answers are missing, or do not have an author for" in errors
    assert "(problem-2, problem-10)" in errors
