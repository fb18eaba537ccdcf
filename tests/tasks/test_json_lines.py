"""Tests of JSON Lines tasks: examples, faults with their lines, and memory."""

import json
import os
import tracemalloc
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from row_files import write_rows

from leporello import Span
from leporello.core.errors import ConfigError, UserError
from leporello.core.protocols import Task
from leporello.loaders import Text
from leporello.tasks import JsonLines


def written(folder: Path, *rows: dict[str, Any] | str | bytes) -> Path:
    return write_rows(folder / "rows.jsonl", *rows)


def faults(path: Path, **parameters: Any) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        JsonLines(path, **parameters).check()
    return [str(fault).removeprefix(f"{path}:") for fault in raised.value.faults]


ROW: dict[str, Any] = {"id": "a", "document": "One two three two."}


def test_a_row_becomes_an_example(tmp_path: Path) -> None:
    row = {
        "id": "a", "document": "One two\nthree.", "document_id": "d", "question": "Which?",
        "references": ["x", "y"], "choices": ["x", "z"], "evidence": [[0, 3], "two\nthree"],
        "title": "Title", "group": "g", "metadata": {"k": [1, None, {"n": 0.5}]},
    }  # fmt: skip
    task: Task = JsonLines(written(tmp_path, row), instruction="Say.")
    (example,) = task.examples()
    assert (example.document.id, example.document.title) == ("d", "Title")
    assert example.document.text == "One two\nthree."
    assert (example.id, example.question, example.instruction) == ("a", "Which?", "Say.")
    assert (example.references, example.choices) == (("x", "y"), ("x", "z"))
    assert example.group == "g"
    assert example.evidence == (Span(0, 3), Span(4, 13))
    assert example.metadata == {"k": [1, None, {"n": 0.5}]}


def test_rows_of_one_document_share_it_and_need_not_be_adjacent(tmp_path: Path) -> None:
    (tmp_path / "c.md").write_text("# Heading\n\ntext", encoding="utf-8")
    path = written(
        tmp_path,
        {"id": "1", "document_id": "A", "evidence": ["late"]},
        {"id": "2", "document_path": "c.md"},
        {"id": "3", "document": "inline"},
        {"id": "4", "document_id": "A", "document": "given late", "title": "T"},
        {"id": "5", "document_path": "./c.md"},
        {"id": "6", "document": "inline"},
        {"id": "7", "document_id": "A", "document": "given late"},
        {"id": "8", "document_id": "c.md"},
    )
    groups = [
        (document, [example.id for example in examples])
        for document, examples in groupby(JsonLines(path).examples(), lambda e: e.document)
    ]
    assert [ids for _, ids in groups] == [["1", "4", "7"], ["2", "5", "8"], ["3", "6"]]
    texts = [(document.text, document.title) for document, _ in groups]
    assert texts == [("given late", "T"), ("# Heading\n\ntext", "Heading"), ("inline", "")]
    assert len({document.id for document, _ in groups}) == 3


def test_line_endings_marks_and_empty_lines_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    first, second = (json.dumps(ROW | {"id": i, "evidence": ["One"]}) for i in "ab")
    path.write_bytes(b"\xef\xbb\xbf" + f"{first}\r\n\r\n  \n{second}".encode())
    assert [example.id for example in JsonLines(path).examples()] == ["a", "b"]


def test_lines_end_at_newlines_only_and_fields_may_be_ignored(tmp_path: Path) -> None:
    row = json.dumps(ROW | {"document": "a\u2028b\x85c\x0c", "x": {"url": 1}}, ensure_ascii=False)
    path = written(tmp_path, row)
    (example,) = JsonLines(path, ignore=("x",)).examples()
    assert example.document.text == "a\u2028b\x85c\x0c"
    assert faults(path)[0].startswith("1: unknown field 'x'")


GOOD = {"id": "s", "document": "x"}


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("{bad", "not JSON: Expecting property name enclosed in double quotes at character 2"),
        (b'{"id": "caf\xe9"}', "byte 11 of the line is not UTF-8, but looks like CP1252"),
        ("[", "not JSON: Expecting value at character 2; write one object per line, not a list"),
        ("[1, 2]", "a row must be an object {…}, got [1, 2]"),
        ("[" * 100_000, "not JSON: maximum recursion depth exceeded"),
        ('{"id": "a", "document": "x", "id": "b"}', "not JSON: field 'id' is duplicated"),
        ('{"id": "a", "metadata": {"x": NaN}}', "not JSON: NaN is not a JSON number"),
        (
            {"id": "a", "document": "x", "qestion": "?"},
            "unknown field 'qestion'; did you mean 'question'; allowed: answer, choices,"
            " collection, document, document_id, document_path, documents, evidence, group, id,"
            " metadata, question, references, title; add it to `ignore` to skip it",
        ),
        ({"document": "x"}, "field 'id' is missing"),
        ({"id": 7, "document": "x"}, "id: should be a valid string, got 7"),
        ({"id": "", "document": "x"}, 'id: String should have at least 1 character, got ""'),
        (ROW | {"references": "x"}, 'references: should be a valid list, got "x"'),
        (ROW | {"metadata": [1]}, "metadata: should be a valid dictionary, got [1]"),
        ('{"id":"a","document":"x","metadata":{"x":1e999}}', "not JSON: the number 1e999"),
        ({"id": "a"}, "needs `document`, `document_path` or `document_id`"),
        (ROW | {"document_path": "x"}, "has both `document` and `document_path`; give only one"),
        ({"id": "a", "document_id": "D"}, "document 'D' has no text: none of its rows gives"),
        (ROW | {"evidence": [[5, 2]]}, "evidence: [5, 2] is neither [start, end] in characters"),
        (ROW | {"evidence": [[False, 2]]}, "evidence: [false, 2] is neither"),
        (ROW | {"evidence": [[-1, 2]]}, "evidence: [-1, 2] is neither"),
        (ROW | {"evidence": [" "]}, 'evidence: " " is neither'),
    ],
)
def test_a_fault_is_reported_with_its_line(
    tmp_path: Path, row: dict[str, Any] | str | bytes, fault: str
) -> None:
    (message,) = faults(written(tmp_path, GOOD, "", row))
    assert message.startswith(f"3: {fault}")


@pytest.mark.parametrize(
    ("evidence", "fault"),
    [
        ([5, 19], "evidence [5, 19] ends after document 'D' of 18 characters"),
        ("four", "evidence \"four\" is not in document 'D'"),
        ("two", "evidence \"two\" is 2 times in document 'D'; give a longer quote or [start,"),
    ],
)
def test_evidence_outside_the_document_is_a_fault_of_its_example(
    tmp_path: Path, evidence: Any, fault: str
) -> None:
    rows = [ROW | {"document_id": "D"}, {"id": "b", "document_id": "D", "evidence": [evidence]}]
    task = JsonLines(written(tmp_path, *rows, {"id": "c", "document_id": "D"}))
    task.check()
    before, faulty, after = task.examples()
    assert [before.fault, after.fault] == ["", ""]
    assert faulty.fault.startswith(f"rows.jsonl:2: {fault}")
    assert (faulty.document, faulty.evidence) == (before.document, ())


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


@pytest.mark.parametrize(
    ("name", "make", "fault"),
    [
        ("gone.txt", str, "{path}: there is no such file"),
        ("x\0.txt", str, "is not a valid path: "),
        ("folder", Path.mkdir, "{path}: is a folder; name one file"),
        ("circle", lambda path: path.symlink_to(path), "{path}: cannot be read: Too many levels"),
        ("pipe", os.mkfifo, "{path}: is a pipe or a device"),
        ("zero", lambda path: path.symlink_to("/dev/zero"), "{path}: is a pipe or a"),
        ("huge", huge, "{path}: is larger than 1024 MiB, the limit of a document"),
        ("a.txt", Path.touch, "{path}: the file has no text"),
        ("b.txt", lambda path: path.write_bytes(b"a\0b"),
         "{path}: cannot be read: it looks like binary data"),
        ("c.srt", lambda path: path.write_bytes(b"text"), "{path}: has no cue"),
    ],
)  # fmt: skip
def test_a_documents_file_that_cannot_be_read_is_a_fault_of_its_examples(
    tmp_path: Path, name: str, make: Callable[[Path], object], fault: str
) -> None:
    make(tmp_path / name)
    faulty = {"document_path": name, "evidence": ["x"], "references": ["gold"], "title": "T"}
    task = JsonLines(written(tmp_path, ROW, *({"id": i} | faulty for i in "bc"), GOOD))
    task.check()
    assert len(task) == 4
    first, *bad, last = task.examples()
    assert [example.fault for example in (first, last)] == ["", ""]
    for line, example in enumerate(bad, 2):
        assert example.fault.startswith(f"rows.jsonl:{line}: document_path: ")
        assert fault.format(path=tmp_path / name) in example.fault
        assert (example.id, example.document.id) == ("abc"[line - 1], name)
        assert (example.document.text, example.document.title) == ("", "T")
        assert (example.references, example.evidence) == (("gold",), ())
    assert bad[0].document is bad[1].document


def test_an_exception_of_a_library_is_a_fault_of_its_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(Text, "extract", fail)
    (tmp_path / "a.odd").touch()
    path = written(tmp_path, {"id": "a", "document_path": "a.odd"}, GOOD)
    faulty, good = JsonLines(path).examples()
    assert faulty.fault.endswith("a.odd: is nested too deeply to be read")
    assert not good.fault


def test_faults_between_rows_name_both(tmp_path: Path) -> None:
    row = {"id": "a", "document_id": "D"}
    second = {"id": "b", "document": "another"}
    assert faults(written(tmp_path, row | {"document": "text"}, row | second, row)) == [
        "2: document 'D' has a second text; line 1 has another",
        "3: id 'a' is a duplicate of line 1",
    ]


def test_missing_files_and_files_without_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.jsonl: there is no such file"):
        next(JsonLines(tmp_path / "gone.jsonl").examples())
    with pytest.raises(UserError, match=r"the folder has no \*\.jsonl"):
        JsonLines(tmp_path).fingerprint()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="is a pipe or a device"):
        JsonLines(tmp_path / "pipe").check()
    for content in (b"", b"\n \r\n", b"\xef\xbb\xbf"):
        (tmp_path / "rows.jsonl").write_bytes(content)
        with pytest.raises(UserError, match=r"has no rows|not JSON"):
            JsonLines(tmp_path / "rows.jsonl").check()


def test_the_split_is_part_of_the_path(tmp_path: Path) -> None:
    written(tmp_path, ROW).rename(tmp_path / "dev.jsonl")
    template = tmp_path / "{split}.jsonl"
    assert len(list(JsonLines(template, split="dev").examples())) == 1
    with pytest.raises(UserError, match="needs a split; give `split` or --split"):
        JsonLines(template).check()
    with pytest.raises(UserError, match=r"split 'dev' is given, but .* does not contain \{split\}"):
        JsonLines(tmp_path / "dev.jsonl", split="dev").check()


def test_the_fingerprint_depends_on_the_data(tmp_path: Path) -> None:
    document = tmp_path / "d.txt"
    document.write_text("text", encoding="utf-8")
    row = {"id": "a", "document_path": "d.txt"}
    path = written(tmp_path, row)
    first = JsonLines(path).fingerprint()
    assert JsonLines(path, instruction="Say.").fingerprint() == first
    document.write_text("texts", encoding="utf-8")
    second = JsonLines(path).fingerprint()
    written(tmp_path, row | {"question": "?"})
    assert len({first, second, JsonLines(path).fingerprint()}) == 3


def test_the_fingerprint_changes_if_a_missing_file_appears(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [{"id": str(i), "document_path": f"{i}.txt"} for i in range(3)]
    task = JsonLines(written(tmp_path, *rows))
    (tmp_path / "0.txt").write_text("text", encoding="utf-8")
    before = task.fingerprint()
    assert before == task.fingerprint()
    assert "2 of 3 documents' files cannot be read" in caplog.text
    assert "1.txt: there is no such file, …" in caplog.text
    with pytest.raises(ConfigError, match=r"rows\.jsonl:\d: document_path: .*1\.txt") as error:
        task.check_documents()
    assert len(error.value.faults) == 2
    (tmp_path / "1.txt").write_text("text", encoding="utf-8")
    assert task.fingerprint() != before


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    task = JsonLines(written(tmp_path, ROW))
    task.check()
    written(tmp_path, ROW, ROW)
    with pytest.raises(ConfigError, match="id 'a' is a duplicate of line 1"):
        next(task.examples())


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    rows = [{"id": str(i), "document": str(i) * 500_000} for i in range(3)]  # larger than a buffer
    path = written(tmp_path, *rows)
    examples = JsonLines(path).examples()
    next(examples)
    path.write_text("changed\n", encoding="utf-8")
    with pytest.raises(UserError, match="has changed while it was read; run again"):
        list(examples)


def test_half_characters_become_replacement_characters(tmp_path: Path) -> None:
    row = r'{"id": "a", "document": "x\ud83d y\ud83d\ude00\udc00", "evidence": ["\ud83d y"],'
    row += r' "metadata": {"\ud83d": ["\ude00"]}}'
    (example,) = JsonLines(written(tmp_path, row)).examples()
    assert example.document.text == "x\ufffd y😀\ufffd"
    assert example.evidence == (Span(1, 4),)
    assert example.metadata == {"\ufffd": ["\ufffd"]}


def test_memory_does_not_grow_with_the_documents(tmp_path: Path) -> None:
    rows = [
        {"id": str(i), "document": f"{i}: " + "word " * 40_000, "evidence": [f"{i}:"]}
        for i in range(40)
    ]
    task = JsonLines(written(tmp_path, *rows))
    del rows
    tracemalloc.start()
    count = sum(1 for _ in task.examples())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 40
    assert peak < 3_000_000
