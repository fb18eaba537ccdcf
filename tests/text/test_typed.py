"""Tests of answer types: schemas, faults of schemas, and values in texts."""

import json
from typing import Any

import pytest

from leporello.core.coverage import Span
from leporello.text.typed.fields import UnitError, fields_of, filled, in_unit
from leporello.text.typed.parse import parse
from leporello.text.typed.schema import AnswerTypeError, json_schema, schema_of
from leporello.text.typed.spans import best_typed
from leporello.text.typed.values import dates, numbers

PERSON: Any = {
    "type": "object",
    "fields": {"bornOn": "date", "pay": {"type": "list", "items": "number"}},
}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,200 employees, 3.5 % of $2.5 million", [1200, 3.5, 2_500_000]),
        ("thirty (30) days; two hundred and five", [30, 30, 205]),
        ("1.234,56 and 1,234.56 and 12,5", [1234.56, 1234.56, 12.5]),
        ("no one read version 1.2.3 of A4", []),
        ("-4.5 to 3 000", [-4.5, 3000]),
    ],
)
def test_numbers_are_read_as_they_are_written(text: str, values: list[float]) -> None:
    assert [match.value for match in numbers(text)] == values


@pytest.mark.parametrize(
    ("text", "field", "question", "expected"),
    [
        ("eighteen (18) months", "term", "What is the term in years?", (1.5, "years")),
        ("18-month term", "term_years", "", (1.5, "years")),
        ("1 year and 6 months", "term", "", (1.5, "years")),
        ("90 minutes", "hours", "", (1.5, "hours")),
        ("2 kg", "weight_pounds", "", (4.409245, "pounds")),
        ("5 m", "clauses", "", (5, "")),
        ("50 basis points", "rate", "What is the rate in per cent?", (0.5, "percent")),
        ("12 %", "fraction", "", (0.12, "fraction")),
        ("12 %", "years", "", "cannot be converted to years"),
        ("$3.5 million", "revenue", "In millions of dollars?", (3.5, "million dollars")),
        ("£500", "price_pounds", "", (500, "pounds")),
        ("EUR 500", "price", "In dollars (USD)?", "cannot be converted to dollars"),
        ("1998", "year", "In which year did it begin?", (1998, "")),
    ],
)
def test_a_number_is_converted_to_the_unit_of_its_field(
    text: str, field: str, question: str, expected: tuple[float, str] | str
) -> None:
    value = next(numbers(text)).value
    assert isinstance(value, (int, float))
    span = Span(0, len(text))
    if isinstance(expected, str):
        with pytest.raises(UnitError, match=expected):
            in_unit(value, text, span, field, question)
    else:
        assert in_unit(value, text, span, field, question) == expected


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("March 1, 2020 or 1 Mar. 2020", ["2020-03-01"] * 2),
        ("this 1st day of March, 2020", ["2020-03-01"]),
        ("2020-03-01, 3/1/20 and 1.3.2020", ["2020-03-01"] * 3),
        ("2020-02-30, May 2020, 3/4", []),
    ],
)
def test_dates_are_read_in_common_spellings(text: str, values: list[str]) -> None:
    assert [match.value for match in dates(text)] == values


@pytest.mark.parametrize(
    ("text", "answer", "value"),
    [
        ("About 1,200 people.", "integer", 1200),
        ("Yes, it does.", "yes_no", True),
        ("It is green.", {"choices": ["red", "green"]}, "green"),
        ("1,200, 3 and 4", {"type": "list", "items": "number"}, [1200, 3, 4]),
        ('Sure: ```json\n{"bornOn": "May 5, 1999", "pay": ["$1"]}\n```', PERSON,
         {"bornOn": "1999-05-05", "pay": [1]}),
        ('{"bornOn": "n/a", "pay": null}', PERSON, {"bornOn": None, "pay": None}),
    ],
)  # fmt: skip
def test_a_text_is_read_as_a_value_of_its_type(text: str, answer: Any, value: Any) -> None:
    assert parse(text, schema_of(answer)) == value


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("5 or 6", "number"), ("maybe", "yes_no"), ("2020-02-31", "date"), ("NaN", "number"),
        ("blue", {"type": "enum", "choices": ["red"]}), ("-3", {"type": "number", "minimum": 0}),
        ('{"bornOn": "1999-05-05"}', PERSON), ("[[[", {"type": "list", "items": "date"}),
    ],
)  # fmt: skip
def test_texts_without_a_valid_value_are_refused(text: str, answer: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse(text, schema_of(answer))


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("nmber", "unknown type 'nmber'; did you mean 'number'"),
        ({"type": "number", "min": 1}, "a type has no key 'min'; did you mean 'minimum'"),
        ({"type": "enum", "choices": []}, "an enum needs `choices`"),
        ({"type": "object", "fields": {" ": "date"}}, "a field needs a name"),
        ({"schema": {"type": "strng"}}, "type: unknown type 'strng'; did you mean 'string'"),
        ({"schema": {"$ref": "http://a.b/c"}}, "references to other files do not work"),
        ({"schema": {"properties": {"a": {"$ref": "#/$defs/b"}}}}, "a.$ref: this schema has no"),
        ({"schema": {"pattern": "("}}, "pattern: is not a regular expression"),
    ],
)  # fmt: skip
def test_faults_of_a_type_are_reported(answer: Any, fault: str) -> None:
    with pytest.raises(AnswerTypeError) as raised:
        schema_of(answer)
    assert fault in str(raised.value)


def test_the_faults_of_all_fields_are_reported() -> None:
    fields: Any = {"a": {"type": "nmber"}, "b": "date", "c": {"tpe": "text"}}
    with pytest.raises(AnswerTypeError) as raised:
        schema_of({"fields": fields})
    assert [fault.path for fault in raised.value.faults] == [
        ("fields", "a"),
        ("fields", "c", "tpe"),
    ]


@pytest.mark.parametrize(
    ("text", "answer", "fault"),
    [
        ("4", {"type": "number", "minimum": 5, "maximum": 3}, "4 is less than the minimum of 5"),
        ("{}", {"schema": {"required": ["a"], "additionalProperties": False}}, "'a' is a required"),
        ("4", {"schema": {"allOf": [{"type": "string"}, {"type": "number"}]}}, "not of type"),
        ("4", {"schema": {"anyOf": [False, {"not": {}}]}}, "not valid under any"),
        ("4", {"schema": {"$ref": "#"}}, "the schema refers to itself without end"),
    ],
)  # fmt: skip
def test_a_type_without_values_fails_at_the_answer(text: str, answer: Any, fault: str) -> None:
    """The schema is valid; the error names the constraint that the answer violates."""
    with pytest.raises(ValueError, match=fault):
        parse(text, schema_of(answer))


def test_a_file_may_contain_a_type_or_a_json_schema() -> None:
    schema: Any = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert json_schema(schema) == schema
    assert json_schema({"type": "number", "minimum": 1})["minimum"] == 1
    assert [*json_schema({"fields": {"b": "text", "a": "date"}})["properties"]] == ["b", "a"]


def test_fields_of_an_object_have_questions() -> None:
    place: Any = {"type": "object", "fields": {"cityName": {"description": "Where?"}}}
    schema = schema_of({"fields": {"governing_law": "text", "seat": place}})
    fields = fields_of(schema)
    assert [(f.pointer, f.question) for f in fields] == [
        ("/governing_law", "governing law"),
        ("/seat/cityName", "Where?"),
    ]
    assert filled(fields, ["Ohio", None]) == {"governing_law": "Ohio", "seat": {"cityName": None}}
    assert filled(fields, [None, None]) is None


def test_the_best_span_with_a_value_wins() -> None:
    text = "The Parties met. It took effect on 1 May 2001 in Rome. It ended on 2 June 2003."
    schema = schema_of("date")
    span = text.index("Rome")
    typed = best_typed(schema, [(0, span, span + 4)], [text])
    assert typed is not None
    assert (typed.value, text[typed.start : typed.end]) == ("2001-05-01", "1 May 2001")
    later = text.index("2 June")
    typed = best_typed(schema, [(0, span, span + 4), (0, later, later + 11)], [text])
    assert typed is not None
    assert typed.value == "2003-06-02"
    assert json.loads(schema)["format"] == "date"
