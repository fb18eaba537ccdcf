"""Typed answers: adds the schema to a combiner's reads, and checks and parses the answers."""

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from json import dumps, loads  # by name: a stage may replace functions of modules
from typing import Any, NamedTuple

from leporello.core.calls.answers import as_text, is_answer
from leporello.core.calls.contracts import relayed
from leporello.core.coverage import Span
from leporello.core.errors import ReadError
from leporello.core.protocols import ANSWER
from leporello.core.records import JSON, Chunk, Combination, Example, Fit, Output, Read, Request
from leporello.engine.failures import ExampleError
from leporello.text.typed.fields import AnswerField, fields_of, filled
from leporello.text.typed.parse import as_answer, choices_of, kind_of, leaves, parse
from leporello.text.typed.spans import located

_SHOWN = 300  # characters of an invalid answer that the retry and the error quote


class _ReadValue(NamedTuple):
    """A value from an output, and the JSON pointer of its field."""

    pointer: str
    value: JSON
    output: Output


def with_choices(example: Example) -> Example:
    """Returns an example whose choices are the answers that its type allows, if they are few."""
    if example.choices:
        return example
    return dataclasses.replace(example, choices=choices_of(example.schema))


@dataclass
class TypedAnswer:
    """Typed answer to one example."""

    example: Example
    # Whether the reader generates text. Such a reader receives the schema as an instruction, and a
    # retry if its answer is invalid. Other readers receive one read per field of an object.
    writes: bool
    _values: list[_ReadValue] = field(default_factory=list)
    _last: Read | None = None
    _groups: list[Sequence[Request]] = field(default_factory=list)  # of the last requests
    _seen: dict[tuple[int, int], Chunk] = field(default_factory=dict)

    def combine(self, combination: Combination) -> Combination:
        """Returns a combiner's `answer`, `value` and `spans`, or raises ExampleError."""
        returned = yield from relayed(combination, self._spread, self._gathered)
        text = as_text(returned)
        try:
            return self._delivered(returned, text, self._parsed(text))
        except ValueError as error:
            fault = str(error)
        # A reader that copies would give the same answer again.
        if self._last is None or not self.writes:
            raise ExampleError("answer", _failure(text, fault))
        again = (
            f"An earlier answer was {text[:_SHOWN]!r}, which does not fit: {fault}. Answer again."
        )
        instruction = f"{self._last.instruction}\n{again}".strip()
        retry = dataclasses.replace(self._last, instruction=instruction)
        [output] = yield [retry]
        try:
            value = self._parsed(output.text)
        except ValueError as error:
            raise ExampleError("answer", _failure(output.text, str(error))) from None
        self._values.append(_ReadValue("", value, output))
        return self._delivered(None, output.text, value)

    def _spread(self, requests: Sequence[Request]) -> Sequence[Request]:
        """Returns the typed reads for requests, which it stores by request."""
        self._groups = [self._typed(request) for request in requests]
        return [read for group in self._groups for read in group]

    def _gathered(self, requests: Sequence[Request], replies: list[Any]) -> list[Any]:
        """Returns one reply per request: the outputs of fields are joined."""
        reply = iter(replies)
        answers = [[next(reply) for _ in group] for group in self._groups]
        return [*map(self._joined, requests, self._groups, answers)]

    def _typed(self, request: Request) -> Sequence[Request]:
        """Returns the typed reads for a read; other requests unchanged."""
        if isinstance(request, Fit):
            reads = (read for read in self._typed(request.read) if isinstance(read, Read))
            # All fields are read from the same passages, so the longest read decides how many fit.
            return [dataclasses.replace(request, read=max(reads, key=lambda r: len(r.question)))]
        if not isinstance(request, Read) or not self._answers(request):
            return [request]
        self._seen |= {(p.start, p.end): p for p in request.passages if isinstance(p, Chunk)}
        if fields := self._fields:
            return [_field_read(request, field) for field in fields]
        form = _form_instruction(loads(self.example.schema)) if self.writes else ""
        instruction = f"{request.instruction}\n{form}".strip()
        typed = dataclasses.replace(
            request,
            schema=self.example.schema,
            instruction=instruction if form else request.instruction,
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

    def _joined(self, request: Request, typed: Sequence[Request], replies: Sequence[Any]) -> Any:  # noqa: ANN401 -- as replies are
        """Returns one reply from those to the typed reads of a request, and stores their values."""
        if not isinstance(request, Read) or typed == [request]:
            return replies[0]
        if failed := [reply for reply in replies if isinstance(reply, ReadError)]:
            return failed[0]
        if fields := self._fields:
            values = [_field_value(*pair) for pair in zip(fields, replies, strict=True)]
            self._values += map(_ReadValue, (field.pointer for field in fields), values, replies)
            return _joined_output(replies, filled(fields, values))
        [output] = replies
        with suppress(ValueError):
            self._values.append(_ReadValue("", self._parsed(output.text), output))
        return output

    def _parsed(self, text: str) -> JSON:
        """Returns the value of an answer; None for an answer such as "not stated"."""
        plain = text.strip()
        if plain in ("", "null") or not is_answer(plain):
            return None
        return parse(text, self.example.schema)

    def _delivered(self, returned: JSON, text: str, value: JSON) -> JSON:
        fields = returned if isinstance(returned, dict) and "answer" in returned else {}
        outputs = [v.output for v in self._values if not v.pointer and v.value == value]
        probabilities = [o.probability for o in outputs if o.probability is not None]
        confidence: dict[str, JSON] = {"confidence": max(probabilities)} if probabilities else {}
        spans: dict[str, JSON] = {}
        for pointer, leaf in leaves(value):
            if leaf is not None and (span := self._span(pointer, leaf)):
                spans[pointer] = [span.start, span.end]
        answer = text.removeprefix("null") if value is None else as_answer(value)
        return {**confidence, **fields, "answer": answer, "value": value, "spans": spans}

    def _span(self, pointer: str, value: JSON) -> Span | None:
        """Returns the span of a value: from an output, otherwise searched in the passages read."""
        outputs = [v.output for v in self._values if v.pointer == pointer and v.value == value]
        ranked = sorted(outputs, key=lambda output: -(output.score or 0.0))
        spans = (output.span for output in ranked if output.span)
        # A written answer has no span, but its value often occurs in the text.
        return next(spans, None) or located(value, [*self._seen.values()])


def _field_read(read: Read, field: AnswerField) -> Read:
    choices = choices_of(field.schema)
    return dataclasses.replace(read, question=field.question, choices=choices, schema=field.schema)


def _field_value(field: AnswerField, output: Output) -> JSON:
    if not is_answer(output.text.strip()):
        return None
    try:
        return parse(output.text, field.schema)
    except ValueError:
        return output.text if not field.nullable else None


def _joined_output(outputs: Sequence[Output], value: JSON) -> Output:
    read = [span for output in outputs for span in output.read or ()]
    has_spans = all(output.read is not None for output in outputs)
    return Output(
        dumps(value, ensure_ascii=False),
        read=tuple(dict.fromkeys(read)) if has_spans else None,
        # All fields read the same passages, so a sum would count the same text several times.
        cut=max(output.cut for output in outputs),
    )


def _form_instruction(schema: Mapping[str, Any]) -> str:
    match kind_of(schema):
        case "text" | "enum":
            return ""
        case "number" | "integer":
            return "Answer with a number alone."
        case "date":
            return "Answer with a date alone, as YYYY-MM-DD."
        case "yes_no":
            return "Answer with yes or no."
    text = dumps(schema, ensure_ascii=False)
    return f"Answer with JSON alone, null where the text does not say, that fits: {text}"


def _failure(text: str, fault: str) -> str:
    return f"the answer does not match its type: {fault} (the answer was {text[:_SHOWN]!r})"
