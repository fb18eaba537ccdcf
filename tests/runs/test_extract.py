"""The verb `extract`, and `ask` with a type: values with their places, faults before any work."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from command_line import leporello, write_files

FIELDS = """\
fields:
  founder: {type: text, description: "Who founded the ferry company?"}
  founded: {type: date, description: "When was the ferry company founded?"}
  people: {type: integer, description: "How many people does the ferry company employ?"}
  price: {type: number, minimum: 5000}
"""
TEXTS = {
    "quern": "The ferry company was founded on 1 May 1871 by Grigor Sande. It employs 1,200.",
    "tarn": "Ann Dunning founded the ferry company on 2 June 1902. It employs 37 people.",
}


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    """Two documents, and the fields."""
    write_files(tmp_path, {f"docs/{name}.txt": text for name, text in TEXTS.items()})
    write_files(tmp_path, {"fields.yaml": FIELDS})
    return tmp_path


def test_a_table_has_each_value_with_its_place(folder: Path) -> None:
    """A row a document; what is not there is empty, with the reason."""
    out = folder / "table.csv"
    done = leporello("extract", folder / "docs", "--schema", folder / "fields.yaml", "--out", out)
    assert "2 documents × 4 fields: 6 values, 2 not there, 0 failed" in done.stdout
    quern, tarn = csv.DictReader(out.open(encoding="utf-8"))
    assert (quern["founded"], quern["people"]) == ("1871-05-01", "1200")
    assert (tarn["founder"], tarn["people"]) == ("Ann Dunning", "37")
    start, end = int(quern["people.start"]), int(quern["people.end"])
    assert TEXTS["quern"][start:end] == "1,200"
    assert (quern["price"], quern["price.reason"]) == ("", "not in the document")


def test_parquet_has_columns_of_the_types(folder: Path) -> None:
    """And what cannot be read is a row with the reason, and exit status 1."""
    (folder / "docs" / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    out = folder / "table.parquet"
    done = leporello(
        "extract", folder / "docs", "--schema", folder / "fields.yaml", "--out", out, status=1
    )
    assert "4 failed" in done.stdout
    table = pq.read_table(out)
    assert [str(table.schema.field(n).type) for n in ("founded", "people", "price")] == [
        "date32[day]", "int64", "double",
    ]  # fmt: skip
    assert "broken.pdf" in table.column("document").to_pylist()[-1]


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("a.yaml", "fields:\n  a: date\n  b: {type: nmber}\n", "a.yaml:3: fields.b: unknown type"),
        ("a.yaml", 'fields:\n  a: {type: text,\n    pattern: "("}\n', "a.yaml:3: properties.a"),
        ("a.json", '{"fields": {"a": "date",}}', "a.json:1: not JSON"),
        ("a.yaml", "fields: {a: [", "a.yaml:1: not valid YAML"),
        ("a.yaml", "fields: {_: date}", "has neither a description"),
        ("a.yaml", "type: date", "a table needs `fields`"),
    ],
)  # fmt: skip
def test_faults_of_a_schema_have_their_line(folder: Path, name: str, text: str, fault: str) -> None:
    """They are told before a document is opened."""
    (folder / name).write_text(text, encoding="utf-8")
    out = folder / "table.csv"
    done = leporello("extract", "absent", "--schema", folder / name, "--out", out, status=2)
    assert fault in done.stderr


@pytest.mark.parametrize(
    ("out", "fault"),
    [("t.txt", "ends with .csv"), ("no/t.csv", "there is no folder"), ("d.csv", "is a folder")],
)  # fmt: skip
def test_a_table_that_cannot_be_written_is_told_first(folder: Path, out: str, fault: str) -> None:
    """Not when all has been read."""
    (folder / "d.csv").mkdir()
    schema = folder / "fields.yaml"
    done = leporello("extract", "absent", "--schema", schema, "--out", folder / out, status=2)
    assert fault in done.stderr


def test_ask_answers_with_a_type_in_json(folder: Path) -> None:
    """Every value has its span; an object has those of its fields."""
    file, question = folder / "docs" / "quern.txt", "When was the ferry company founded?"
    told = json.loads(leporello("ask", file, question, "--type", "date").stdout)
    assert told["value"] == "1871-05-01"
    assert TEXTS["quern"][told["values"][""]["start"] : told["values"][""]["end"]] == "1 May 1871"
    schema = folder / "fields.yaml"
    told = json.loads(leporello("ask", file, "The ferry?", "--schema", schema).stdout)
    assert told["value"]["people"] == 1200
    assert told["values"]["/people"]["place"].startswith("quern.txt characters")
    done = leporello("ask", file, question, "--type", "dat", status=2)
    assert "unknown type 'dat'; did you mean 'date'" in done.stderr
