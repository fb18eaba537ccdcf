"""Answers of a type: reads get its schema, and what comes back is checked before it is delivered.

It stands between a combiner and the engine, and is a generator as the combiner is: what it asks
for is read, written down and replayed like any other read.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from leporello.core.calls.answers import as_text
from leporello.core.calls.contracts import answers_to, resumption
from leporello.core.coverage import Span
from leporello.core.errors import ReadError
from leporello.core.protocols import ANSWER
from leporello.core.records import (
    JSON,
    Chunk,
    Combination,
    Example,
    Fit,
    Output,
    Read,
    Request,
)
from leporello.engine.failures import ExampleError
from leporello.text.answers import unanswerable
from leporello.text.typed.fields import AnswerField, fields_of, filled
from leporello.text.typed.parse import as_answer, choices_of, kind_of, leaves, parse
from leporello.text.typed.spans import located

_SHOWN = 300  # characters of a faulty answer that the second read repeats


class _Said(NamedTuple):
    """A value that a reader gave, with the field that it was asked for."""

    pointer: str
    value: JSON
    output: Output


def with_choices(example: Example) -> Example:
    """Returns an example with the answers that its type allows as choices, if they are few."""
    if example.choices:
        return example
    return dataclasses.replace(example, choices=choices_of(example.schema))


@dataclass
class TypedAnswer:
    """The way of one example's answer to a value of its type.

    Attributes:
        example: The example, with a schema.
        writes: Whether the reader writes what it is asked to: it is told the schema and, where its
            answer does not fit, asked once more. Another is asked an object field by field.
    """

    example: Example
    writes: bool
    _said: list[_Said] = field(default_factory=list)
    _last: Read | None = None
    _seen: dict[tuple[int, int], Chunk] = field(default_factory=dict)

    def combine(self, combination: Combination) -> Combination:
        """Runs a combiner, and returns what it returned as `answer`, `value` and `spans`.

        Raises:
            ExampleError: What came of it is no value of the type, also a second time.
        """
        returned = yield from self._through(combination)
        text = as_text(returned)
        try:
            return self._delivered(returned, text, self._parsed(text))
        except ValueError as error:
            fault = str(error)
        if self._last is None or not self.writes:
            raise ExampleError("answer", _failure(text, fault))
        instruction = f"{self._last.instruction}\n{_again(text, fault)}".strip()
        retry = dataclasses.replace(self._last, instruction=instruction)
        [output] = yield [retry]
        try:
            value = self._parsed(output.text)
        except ValueError as error:
            raise ExampleError("answer", _failure(output.text, str(error))) from None
        self._said.append(_Said("", value, output))
        return self._delivered(None, output.text, value)

    def _through(self, combination: Combination) -> Combination:
        """Runs a combiner with its reads typed, and what comes back of fields joined."""
        step: Any = partial(next, combination)
        while True:  # the engine bounds how often is asked
            try:
                requests = step()
            except StopIteration as stop:
                value: JSON = stop.value
                return value
            if not isinstance(requests, (list, tuple)):
                yield requests  # which the engine refuses
            parts = [self._typed(request) for request in requests]
            replies = iter((yield from answers_to([one for part in parts for one in part])))
            own = [[next(replies) for _ in part] for part in parts]
            step = resumption(combination, [*map(self._joined, requests, parts, own)])

    def _typed(self, request: Request) -> Sequence[Request]:
        if isinstance(request, Fit):
            [*parts] = self._typed(request.read)
            return [dataclasses.replace(request, read=max(parts, key=_length))]  # type: ignore[arg-type]  # of a read come reads
        if not isinstance(request, Read) or not self._answers(request):
            return [request]
        self._seen |= {(p.start, p.end): p for p in request.passages if isinstance(p, Chunk)}
        if fields := self._fields:
            return [_asked(request, one) for one in fields]
        told = _told(json.loads(self.example.schema)) if self.writes else ""
        instruction = f"{request.instruction}\n{told}".strip()
        typed = dataclasses.replace(
            request,
            schema=self.example.schema,
            instruction=instruction if told else request.instruction,
        )
        self._last = typed
        return [typed]

    def _answers(self, read: Read) -> bool:
        return (
            read.question == self.example.question
            and read.role in ("", ANSWER)
            and read.pair is None
            and not read.schema
        )

    @property
    def _fields(self) -> tuple[AnswerField, ...]:
        return () if self.writes else fields_of(self.example.schema)

    def _joined(self, request: Request, parts: Sequence[Request], replies: Sequence[Any]) -> Any:  # noqa: ANN401 -- as replies are
        """Returns the reply to a request, and keeps what was said to it."""
        if not isinstance(request, Read) or parts == [request]:
            return replies[0]
        if failed := [reply for reply in replies if isinstance(reply, ReadError)]:
            return failed[0]
        if fields := self._fields:
            values = [_valued(one, output) for one, output in zip(fields, replies, strict=True)]
            self._said += map(_Said, (one.pointer for one in fields), values, replies)
            return _one_of(replies, filled(fields, values))
        [output] = replies
        with suppress(ValueError):
            self._said.append(_Said("", self._parsed(output.text), output))
        return output

    def _parsed(self, text: str) -> JSON:
        """Returns the value of an answer; None of one that says that there is none.

        Raises:
            ValueError: It is neither.
        """
        plain = text.strip()
        if plain in ("", "null") or not unanswerable(plain, ""):
            return None
        return parse(text, self.example.schema)

    def _delivered(self, returned: JSON, text: str, value: JSON) -> JSON:
        rest = returned if isinstance(returned, dict) and "answer" in returned else {}
        same = [one for one in self._said if not one.pointer and one.value == value]
        sure = [one.output.probability for one in same if one.output.probability is not None]
        confidence: dict[str, JSON] = {"confidence": max(sure)} if sure else {}
        spans: dict[str, JSON] = {}
        for pointer, leaf in leaves(value):
            if leaf is not None and (span := self._span(pointer, leaf)):
                spans[pointer] = [span.start, span.end]
        told = text.removeprefix("null") if value is None else as_answer(value)
        return {**confidence, **rest, "answer": told, "value": value, "spans": spans}

    def _span(self, pointer: str, value: JSON) -> Span | None:
        """Returns where a value stands: as the reader says, else in what was read."""
        same = [s.output for s in self._said if s.pointer == pointer and s.value == value]
        ranked = sorted(same, key=lambda output: -(output.score or 0.0))
        spans = (output.span for output in ranked if output.span)
        return next(spans, None) or located(value, [*self._seen.values()])


def _length(read: Request) -> int:
    return len(read.question) if isinstance(read, Read) else 0


def _asked(read: Read, one: AnswerField) -> Read:
    choices = choices_of(one.schema)
    return dataclasses.replace(read, question=one.question, choices=choices, schema=one.schema)


def _valued(one: AnswerField, output: Output) -> JSON:
    if not unanswerable(output.text.strip(), ""):
        return None
    try:
        return parse(output.text, one.schema)
    except ValueError:
        return output.text if not one.nullable else None


def _one_of(outputs: Sequence[Output], value: JSON) -> Output:
    """Returns what was said to fields as one output."""
    read = [span for output in outputs for span in output.read or ()]
    whole = all(output.read is not None for output in outputs)
    return Output(
        json.dumps(value, ensure_ascii=False),
        read=tuple(dict.fromkeys(read)) if whole else None,
        cut=max(output.cut for output in outputs),
    )


def _told(schema: Mapping[str, Any]) -> str:
    """Returns what a model is told of the form of its answer."""
    match kind_of(schema):
        case "text" | "enum":
            return ""
        case "number" | "integer":
            return "Answer with a number alone."
        case "date":
            return "Answer with a date alone, as YYYY-MM-DD."
        case "yes_no":
            return "Answer with yes or no."
    text = json.dumps(schema, ensure_ascii=False)
    return f"Answer with JSON alone, null where the text does not say, that fits: {text}"


def _again(text: str, fault: str) -> str:
    return f"An earlier answer was {text[:_SHOWN]!r}, which does not fit: {fault}. Answer again."


def _failure(text: str, fault: str) -> str:
    return f"no value of its type: {fault} (the answer was {text[:_SHOWN]!r})"
