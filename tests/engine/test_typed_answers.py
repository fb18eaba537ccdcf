"""Typed answers in the engine: reads, checks, retries and failures; generated schemas."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from leporello.chunkers import Sentences
from leporello.combiners import Stuff
from leporello.config import Pipeline
from leporello.core.records import Document, Example, Output, Read
from leporello.engine.limits import Limits
from leporello.engine.shard_rows import Rows, rows_of
from leporello.readers import BestSentence, CausalLM, Embedded
from leporello.retrievers import All
from leporello.testing.text_contract import resumed
from leporello.text.typed.schema import schema_of

TEXT = (
    "The ferry company of Quern was founded on 1 May 1871 by Grigor Sande."
    " The ferry company of Quern employs 1,200 people in Norway."
)
DOCUMENT = Document("d", TEXT)


@dataclass(frozen=True)
class Writer:
    """Answers nonsense at first, and the attribute in the retry."""

    generates: ClassVar[bool] = True

    says: str

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        retries = ["An earlier answer was" in read.instruction for read in inputs]
        return [Output(self.says if r else "who knows", probability=0.5) for r in retries]

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]


def example(question: str, answer: Any, number: int = 0) -> Example:
    return Example(f"e{number}", DOCUMENT, question, schema=schema_of(answer))


def run(reader: Any, *examples: Example, path: Path | None = None) -> Rows:
    stages = Pipeline(Sentences(1000), All(), reader, Stuff())
    return rows_of(path, examples, stages, Limits(5, 4))


@pytest.mark.parametrize("reader", [BestSentence(), Embedded()])
def test_an_extractive_reader_gives_a_value_with_its_span(reader: Any) -> None:
    """The value is parsed from the best span that contains one."""
    number, date = (
        row["prediction"]["raw"]
        for row in run(
            reader,
            example("How many people does the ferry company employ?", "integer"),
            example("When was the ferry company founded?", "date", 1),
        )
    )
    assert (number["value"], date["value"]) == (1200, "1871-05-01")
    assert [TEXT[slice(*raw["spans"][""])] for raw in (number, date)] == ["1,200", "1 May 1871"]


def test_an_object_is_filled_field_by_field() -> None:
    """By a reader that does not generate text; missing values are null."""
    fields = {
        "founder": {"type": "text", "description": "Who founded the ferry company?"},
        "founded": {"type": "date", "description": "When was the ferry company founded?"},
        "price": {"type": "number", "minimum": 5000, "description": "Price of a ticket?"},
    }
    [row] = run(Embedded(), example("", {"fields": fields}))
    raw = row["prediction"]["raw"]
    assert raw["value"] == {"founder": "Grigor Sande", "founded": "1871-05-01", "price": None}
    assert TEXT[slice(*raw["spans"]["/founder"])] == "Grigor Sande"


def test_an_invalid_answer_is_retried_with_the_fault() -> None:
    [row] = run(Writer("It has 1200."), example("How many?", "integer"))
    raw = row["prediction"]["raw"]
    assert (row["prediction"]["prediction"], raw["value"]) == ("1200", 1200)
    assert TEXT[slice(*raw["spans"][""])] == "1,200"
    assert row["prediction"]["confidence"] == 0.5
    assert len(row["calls"]) == 2


def test_an_answer_that_is_invalid_twice_fails() -> None:
    [row] = run(Writer("still not"), example("How many?", "integer"))
    assert row["failure"]["stage"] == "answer"
    assert "'still not' is not of type 'integer'" in row["failure"]["error"]


def test_a_type_with_few_answers_provides_choices() -> None:
    """Readers that choose an answer receive them."""
    colours = {"type": "enum", "choices": ["Norway", "Japan"]}
    [row] = run(BestSentence(), example("Where is the ferry company of Quern?", colours))
    assert row["prediction"]["raw"]["value"] == "Norway"


def test_a_run_killed_between_two_tries_ends_with_the_same_rows(tmp_path: Path) -> None:
    examples = [example("How many?", kind, n) for n, kind in enumerate(("integer", "date") * 3)]
    expected = run(Writer("1200"), *examples)
    tries = [*resumed(lambda path: run(Writer("1200"), *examples, path=path), tmp_path)]
    assert len(tries) > 3
    assert all(rows == expected for rows in tries)


STORY = (
    "The ferry company of Quern was founded on 1 May 1871 by Grigor Sande and Ann Dunning. It"
    " employs 1,200 people, of whom thirty work in Norway, and pays no dividend. A ticket costs"
    " $3.50. On June 2, 1902 the second ship, the Widow Frack, was sold for 1.5 million."
)
NAMES = ("founder", "foundingDate", "people", "price", "country", "ship_names", "pays_dividend")


def generated(chance: random.Random, depth: int = 0) -> Any:
    names = ["text", "number", "integer", "date", "enum", "yes_no"]
    name = chance.choice([*names, *(["list", "object", "schema"] if depth < 2 else [])])
    low = chance.randint(-50, 2000)
    details: dict[str, Any] = {}
    match name:
        case "text":
            details = chance.choice(
                [{}, {"maxLength": chance.randint(1, 30)}, {"pattern": "^[A-Z]"}]
            )
        case "number" | "integer":
            details = chance.choice(
                [{}, {"minimum": low}, {"minimum": low, "maximum": low + chance.randint(-1, 500)}]
            )
        case "enum":
            details = {"choices": chance.sample(["Norway", "Japan", "Sande", "1902", "ship"], 3)}
        case "list":
            details = {"items": generated(chance, depth + 1), "maxItems": chance.randint(1, 4)}
            details |= {"uniqueItems": True} if chance.random() < 0.3 else {}
        case "object":
            fields = chance.sample(NAMES, chance.randint(1, 3))
            details = {"fields": {field: generated(chance, depth + 1) for field in fields}}
        case "schema":
            inner = {field: {"type": ["string", "null"]} for field in chance.sample(NAMES, 2)}
            required = chance.sample([*inner], chance.randint(0, 2))
            return {"schema": {"type": "object", "properties": inner, "required": required}}
    return {"type": name, **details}


@pytest.mark.integration
@pytest.mark.parametrize(
    ("reader", "count"),
    [
        (BestSentence(), 40),
        (Embedded(), 40),
        pytest.param(CausalLM(max_new_tokens=64), 200, marks=pytest.mark.slow),
    ],
    ids=lambda given: type(given).__name__,
)
def test_no_invalid_value_is_delivered(reader: Any, count: int) -> None:
    """Extractive readers find a value for most schemas; a language model may fail more often."""
    chance, document, values, failed = random.Random(24), Document("d", STORY), 0, 0
    schemas = [schema_of(generated(chance)) for _ in range(count)]
    examples = [Example(f"e{n}", document, "What of it?", schema=s) for n, s in enumerate(schemas)]
    stages = Pipeline(Sentences(1000), All(), reader, Stuff())
    for schema, row in zip(schemas, rows_of(None, examples, stages, Limits(20, 16)), strict=True):
        if "failure" in row:
            assert row["failure"]["stage"] == "answer"
            failed += 1
        elif (value := row["prediction"]["raw"]["value"]) is not None:
            formats = FormatChecker(("date",))
            Draft202012Validator(json.loads(schema), format_checker=formats).validate(value)
            values += 1
    if count == 40:
        assert values >= 20
        assert failed <= 10
