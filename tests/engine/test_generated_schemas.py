"""Generated schemas with real readers: answers are always valid."""

import json
import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from leporello.chunkers import Sentences
from leporello.combiners import Stuff
from leporello.config import Pipeline
from leporello.core.records import Document, Example
from leporello.engine.limits import Limits
from leporello.engine.shard_rows import rows_of
from leporello.readers import BestSentence, CausalLM, Embedded
from leporello.retrievers import All
from leporello.text.typed.schema import schema_of

TEXT = (
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


def delivered(reader: Any, count: int, seed: int) -> tuple[int, int, int]:
    """Returns the numbers of values, empty answers and failures; fails at an invalid value."""
    chance, examples = random.Random(seed), list[Example]()
    document = Document("d", TEXT)
    while len(examples) < count:
        schema = schema_of(generated(chance))
        examples.append(Example(f"e{len(examples)}", document, "What of the ferry?", schema=schema))
    stages = Pipeline(Sentences(1000), All(), reader, Stuff())
    rows = rows_of(None, examples, stages, Limits(20, 16))
    values, empty, failed = 0, 0, 0
    for example, row in zip(examples, rows, strict=True):
        if "failure" in row:
            assert row["failure"]["stage"] == "answer"
            failed += 1
        elif (value := row["prediction"]["raw"]["value"]) is None:
            empty += 1
        else:
            formats = FormatChecker(("date",))
            Draft202012Validator(json.loads(example.schema), format_checker=formats).validate(value)
            values += 1
    return values, empty, failed


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
    values, empty, failed = delivered(reader, count, seed=24)
    assert values + empty + failed == count
    if count == 40:
        assert values >= 20
        assert failed <= 10
