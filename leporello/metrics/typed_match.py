"""Values compared as what they are: numbers and dates as such, lists as sets, objects by field."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import ClassVar

from leporello.core.protocols import NonNegative
from leporello.core.records import JSON, Example
from leporello.metrics.protocol import Averaged, GoldError
from leporello.text.squad import normalise
from leporello.text.typed.parse import as_answer, kind_of, parse

_TEXT = '{"type": "string"}'


@dataclass(frozen=True)
class TypedMatch(Averaged):
    """Whether an answer has the value of the best reference, both read as the example's type.

    1,200 is `1200 people`, 2020-03-01 is `March 1, 2020`. A list scores the F1 of its values as a
    set, an object the mean of its fields, null among them; a text counts up to case, punctuation
    and articles, as `exact_match` does. An answer that is no value of the type scores 0, unless
    the reference is empty, which only an empty answer matches.

    Attributes:
        tolerance: Share of the reference by which a number may differ.
    """

    name: ClassVar[str] = "typed_match"

    tolerance: NonNegative = 0.0

    @property
    def signature(self) -> str:
        """What is computed, with the tolerance."""
        options = f"tolerance:{self.tolerance:g}|lists:set-f1|objects:mean"
        return f"typed_match|{options}|references:max|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns how much of the best reference the answer has.

        Raises:
            GoldError: A reference is no value of the example's type.
        """
        schema = example.schema or _TEXT
        try:
            gold = [_value(reference, schema) for reference in example.references]
        except ValueError as error:
            raise GoldError(example, f"a reference is of another type: {error}") from None
        try:
            value = _value(text, schema)
        except ValueError:
            return 0.0
        return 100 * max(self._likeness(value, each) for each in gold)

    def _likeness(self, value: JSON, gold: JSON) -> float:
        """Returns how much of a reference a value is, 0 to 1."""
        if isinstance(gold, dict):
            own = value if isinstance(value, dict) else {}
            scores = [self._likeness(own.get(name), each) for name, each in gold.items()]
            return math.fsum(scores) / len(scores) if scores else float(not own)
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
        left, shared = [*gold], 0
        for one in {as_answer(each): each for each in value}.values():
            same = next(
                (n for n, each in enumerate(left) if self._likeness(one, each) == 1.0), None
            )
            if same is not None:
                del left[same]
                shared += 1
        return 2 * shared / (len({*map(as_answer, value)}) + len(gold))


def _value(text: str, schema: str) -> JSON:
    empty = not text.strip() and kind_of(json.loads(schema)) != "text"
    return None if empty else parse(text, schema)


def _is_number(value: JSON) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
