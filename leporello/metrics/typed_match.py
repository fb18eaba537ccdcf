"""Compares typed values: numbers and dates by value, lists as sets, objects by field."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from leporello.core.protocols import NonNegative
from leporello.core.records import JSON, Example
from leporello.metrics.protocol import Averaged, GoldError
from leporello.text.squad import normalise
from leporello.text.typed.parse import as_answer, kind_of, parse

_TEXT = '{"type": "string"}'


@dataclass(frozen=True)
class TypedMatch(Averaged):
    """Whether an answer has the value of a reference, both parsed as the example's type.

    1,200 equals `1200 people`, 2020-03-01 equals `March 1, 2020`. A list scores the F1 of its
    values as a set, an object the mean over its fields, including null. Texts are compared without
    case, punctuation and articles, as in `exact_match`. An answer without a value of the type
    scores 0; an empty reference matches only an empty answer.

    Attributes:
        tolerance: Share of the reference by which a number may differ.
    """

    name = "typed_match"

    tolerance: NonNegative = 0.0

    @property
    def signature(self) -> str:
        """Options of the computation, with the tolerance."""
        options = f"tolerance:{self.tolerance:g}|lists:set-f1|objects:mean"
        return f"typed_match|{options}|references:max|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns the score of the answer against the best reference."""
        schema = example.schema or _TEXT
        try:
            gold = [_value(reference, schema) for reference in example.references]
        except ValueError as error:
            raise GoldError(example, f"a reference is of another type: {error}") from None
        try:
            value = _value(text, schema)
        except ValueError:
            return 0.0
        return 100 * max(self._similarity(value, reference) for reference in gold)

    def _similarity(self, value: JSON, gold: JSON) -> float:
        if isinstance(gold, dict):
            fields = value if isinstance(value, dict) else {}
            scores = [self._similarity(fields.get(name), item) for name, item in gold.items()]
            return math.fsum(scores) / len(scores) if scores else float(not fields)
        if isinstance(gold, list):
            return self._overlap(value if isinstance(value, list) else [], gold)
        if _is_number(gold) and _is_number(value):
            return float(math.isclose(value, gold, rel_tol=0, abs_tol=self.tolerance * abs(gold)))  # type: ignore[arg-type]  # numbers
        if isinstance(gold, str) and isinstance(value, str):
            return float(normalise(value) == normalise(gold))
        return float(value is gold or (type(value) is type(gold) and value == gold))

    def _overlap(self, value: list[JSON], gold: list[JSON]) -> float:
        if not value and not gold:
            return 1.0
        unmatched, shared = [*gold], 0
        for item in {as_answer(item): item for item in value}.values():
            equal = (n for n, g in enumerate(unmatched) if self._similarity(item, g) == 1.0)
            if (index := next(equal, None)) is not None:
                del unmatched[index]
                shared += 1
        return 2 * shared / (len({*map(as_answer, value)}) + len(gold))


def _value(text: str, schema: str) -> JSON:
    empty = not text.strip() and kind_of(json.loads(schema)) != "text"
    return None if empty else parse(text, schema)


def _is_number(value: JSON) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
