"""Tests of `extract`, and of `ask` with a type: values, places and early errors."""

import csv
import json
import re
from pathlib import Path
from subprocess import CompletedProcess

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
    write_files(tmp_path, {f"docs/{name}.txt": text for name, text in TEXTS.items()})
    write_files(tmp_path, {"fields.yaml": FIELDS})
    return tmp_path


def extract(
    folder: Path, source: str, out: str = "table.csv", schema: str = "fields.yaml", status: int = 0
) -> CompletedProcess[str]:
    line = ("extract", folder / source, "--schema", folder / schema, "--out", folder / out)
    return leporello(*line, status=status)


def test_a_table_has_each_value_with_its_place(folder: Path) -> None:
    """The table has one row per document; missing values are empty, with the reason."""
    process = extract(folder, "docs")
    assert "2 documents × 4 fields: 6 values, 2 not there, 0 failed, " in process.stdout
    quern, tarn = csv.DictReader((folder / "table.csv").open(encoding="utf-8"))
    assert (quern["founded"], quern["people"]) == ("1871-05-01", "1200")
    assert (tarn["founder"], tarn["people"]) == ("Ann Dunning", "37")
    start, end = int(quern["people.start"]), int(quern["people.end"])
    assert TEXTS["quern"][start:end] == "1,200"
    assert (quern["price"], quern["price.reason"]) == ("", "not in the document")


def test_texts_in_csv_are_not_formulas(tmp_path: Path) -> None:
    name = "=HYPERLINK(1).txt"
    fields = "fields: {total: {type: number, description: What is the total?}}"
    write_files(tmp_path, {name: "The total is -5.", "fields.yaml": fields})
    extract(tmp_path, name)
    [row] = csv.DictReader((tmp_path / "table.csv").open(encoding="utf-8"))
    assert row["document"] == f"'{name}"
    assert row["total"] == "-5"


def test_an_unreadable_document_is_a_row_with_the_reason(folder: Path) -> None:
    """The exit status is 1."""
    (folder / "docs" / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    process = extract(folder, "docs", status=1)
    assert "4 failed" in process.stdout
    *_, last = csv.DictReader((folder / "table.csv").open(encoding="utf-8"))
    assert "broken.pdf" in last["document"]


def test_numbers_are_converted_to_the_unit_of_their_field(tmp_path: Path) -> None:
    """A quantity that cannot be converted is a failed cell; the summary shows each confidence."""
    text = "The term of the lease is eighteen months. The rent of the lease is $500."
    fields = """\
fields:
  years: {type: number, description: "What is the term of the lease?"}
  days: {type: number, description: "What is the term of the lease?"}
  whole: {type: integer, description: "What is the term of the lease in years?"}
  rent_euros: {type: number, description: "What is the rent of the lease?"}
"""
    write_files(tmp_path, {"lease.txt": text, "fields.yaml": fields})
    printed = extract(tmp_path, "lease.txt", status=1).stdout
    [row] = csv.DictReader((tmp_path / "table.csv").open(encoding="utf-8"))
    assert (row["years"], row["years.unit"]) == ("1.5", "years")
    assert (row["days"], row["whole"], row["rent_euros"]) == ("", "", "")
    assert "'eighteen months' in the document cannot be converted to days" in row["days.reason"]
    assert "' in the document is 1.5 years: 1.5 is not of type 'integer'" in row["whole.reason"]
    assert "'$500' in the document cannot be converted to euros" in row["rent_euros.reason"]
    assert "3 failed" in printed
    assert re.search(r"years +1\.5 years +(sure|likely|unsure) \(\d+%\)", printed)


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("a.yaml", "fields:\n  a: date\n  b: {type: nmber}\n", "a.yaml:3: fields.b: unknown type"),
        ("a.yaml", 'fields:\n  a: {type: text,\n    pattern: "("}\n', "a.yaml:3: properties.a"),
        ("a.json", '{"fields": {"a" "date"}}', "a.json:1: not valid YAML"),
        ("a.yaml", "fields: {a: [", "a.yaml:1: not valid YAML"),
        ("a.yaml", "fields: {_: date}", "has no description"),
        ("a.yaml", "type: date", "a table needs `fields`"),
        ("a.yaml", "", "a.yaml: declares no type"),
    ],
)  # fmt: skip
def test_faults_of_a_schema_have_their_line(folder: Path, name: str, text: str, fault: str) -> None:
    (folder / name).write_text(text, encoding="utf-8")
    assert fault in extract(folder, "absent", schema=name, status=2).stderr


@pytest.mark.parametrize(
    ("out", "fault"),
    [("t.txt", "end with .csv"), ("no/t.csv", "there is no folder"), ("d.csv", "is a folder")],
)  # fmt: skip
def test_an_unwritable_table_is_an_early_error(folder: Path, out: str, fault: str) -> None:
    (folder / "d.csv").mkdir()
    assert fault in extract(folder, "absent", out, status=2).stderr


def test_ask_answers_with_a_type_in_json(folder: Path) -> None:
    """Every value has a span; an object has the spans of its fields."""
    file, question = folder / "docs" / "quern.txt", "When was the ferry company founded?"
    answer = json.loads(leporello("ask", file, question, "--type", "date").stdout)
    assert answer["value"] == "1871-05-01"
    assert (
        TEXTS["quern"][answer["values"][""]["start"] : answer["values"][""]["end"]] == "1 May 1871"
    )
    schema = folder / "fields.yaml"
    answer = json.loads(leporello("ask", file, "The ferry?", "--schema", schema).stdout)
    assert answer["value"]["people"] == 1200
    assert answer["values"]["/people"]["place"].startswith("quern.txt characters")
    process = leporello("ask", file, question, "--type", "dat", status=2)
    assert "unknown type 'dat'; did you mean 'date'" in process.stderr
