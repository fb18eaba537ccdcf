"""Parses texts into values of a type, and finds such values in texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from leporello.core.environment.input_limits import integer, no_constant, real
from leporello.core.records import JSON
from leporello.text.squad import normalise
from leporello.text.typed.schema import resolve, validator
from leporello.text.typed.values import FoundValue, dates, numbers, yes_or_no

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

Kind: TypeAlias = Literal[
    "text", "number", "integer", "date", "enum", "list", "yes_no", "object", "other"
]
_KINDS: Mapping[str, Kind] = {
    "string": "text", "number": "number", "integer": "integer", "array": "list",
    "boolean": "yes_no", "object": "object",
}  # fmt: skip
_FENCE = re.compile(r"```(?:json)?+(.*?)```", re.DOTALL)
_NOTHING = frozenset(("", "null", "none", "n/a", "not mentioned", "not stated", "unknown"))
_ITEMS = re.compile(r"[;\n•]|,(?!\d{3}\b)(?:\s*+and\b)?|\band\b")
_MOST_CHARACTERS = 50_000  # of an answer; the remainder is ignored


def kind_of(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Kind:
    """Returns the answer type of a schema, ignoring null as an alternative."""
    schema = without_null(schema, root or schema)
    if "enum" in schema or "const" in schema:
        return "enum"
    name = schema.get("type", "object" if "properties" in schema else "")
    if isinstance(name, list):
        name = next((option for option in name if option != "null"), "") if len(name) <= 2 else ""  # noqa: PLR2004 -- a type and null
    if name == "string" and schema.get("format") == "date":
        return "date"
    return _KINDS.get(name, "other")


def without_null(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follows references, and returns the schema without the alternative null."""
    for _ in range(10):
        if "$ref" in schema:
            schema = resolve(root, schema["$ref"])
            continue
        alternatives = schema.get("anyOf") or schema.get("oneOf") or ()
        non_null = [option for option in alternatives if option != {"type": "null"}]
        if len(non_null) != 1 or len(alternatives) < 2:  # noqa: PLR2004 -- the type and null
            break
        schema = non_null[0]
    return schema if isinstance(schema, dict) else {}


def choices_of(schema: str) -> tuple[str, ...]:
    """Returns the answers that a type allows, if they are few: of an enum, or yes and no."""
    if not schema:
        return ()
    loaded = json.loads(schema)
    match kind_of(loaded):
        case "yes_no":
            return ("yes", "no")
        case "enum":
            values = without_null(loaded, loaded).get("enum", ())
            return tuple(values) if values and all(isinstance(v, str) for v in values) else ()
    return ()


@lru_cache(maxsize=256)
def _checked(schema: str) -> tuple[dict[str, Any], Draft202012Validator]:
    loaded = json.loads(schema)
    return loaded, validator(loaded)


def written_schema(schema: str) -> str:
    """Returns the JSON Schema of a model's output, a value or null; empty if the type is text."""
    if not schema or kind_of(json.loads(schema)) == "text":
        return ""
    nullable = f'{{"anyOf": [{schema}, {{"type": "null"}}]}}'
    return schema if '"$ref"' in schema else nullable  # references count from the top


def fault_of(value: JSON, schema: str) -> str:
    """Returns why a value does not match a schema; empty if it matches."""
    try:
        error = next(_checked(schema)[1].iter_errors(value), None)
    except RecursionError:
        return "the schema refers to itself without end"
    if error is None:
        return ""
    where = "/".join(map(str, error.absolute_path))
    return f"{where}: {error.message:.300}" if where else f"{error.message:.300}"


def parse(text: str, schema: str) -> JSON:
    """Returns the value that a text states; a text with several numbers or dates has none.

    Raises ValueError with the reason if the text has no value that matches the schema.
    """
    root = _checked(schema)[0]
    value = _coerced(_read(text[:_MOST_CHARACTERS], root), root, root)
    if fault := fault_of(value, schema):
        raise ValueError(fault)
    return value


def values_in(text: str, schema: str) -> Iterator[FoundValue]:
    """Yields the values of a type in a text, in order; for texts and lists, the entire text."""
    root = _checked(schema)[0]
    for candidate in _candidates(text, root, root):
        if not fault_of(candidate.value, schema):
            yield candidate


def as_answer(value: JSON) -> str:
    """Returns a value as metrics and users see it: `yes`, `1200`, `2020-03-01`; otherwise JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return json.dumps(value, ensure_ascii=False)


def leaves(value: JSON, pointer: str = "") -> Iterator[tuple[str, JSON]]:
    """Yields the scalars inside a value, each with its JSON Pointer (RFC 6901)."""
    if isinstance(value, dict):
        pairs: Iterable[tuple[str, JSON]] = value.items()
    elif isinstance(value, list):
        pairs = ((str(number), item) for number, item in enumerate(value))
    else:
        yield pointer, value
        return
    for name, item in pairs:
        yield from leaves(item, f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}")


def _read(text: str, schema: Mapping[str, Any]) -> JSON:
    """Returns the JSON value that a text is or contains; otherwise the text."""
    if fenced := _FENCE.search(text):
        text = fenced[1]
    text = text.strip()
    kind = kind_of(schema)
    if kind == "text" and not text.startswith('"'):
        return text
    # A few positions only: a text with thousands of brackets would take quadratic time.
    starts = [0] if kind not in ("object", "list", "other") else [
        0, *(m.start() for m in list(re.finditer(r"[\[{]", text))[:5])
    ]  # fmt: skip
    for start in starts:
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if start or not text[end:].strip():
            return value  # type: ignore[no-any-return]  # the decoder returns Any
    return text


_DECODER = json.JSONDecoder(parse_int=integer, parse_float=real, parse_constant=no_constant)


def _coerced(value: JSON, schema: Any, root: Mapping[str, Any]) -> JSON:  # noqa: ANN401 -- any JSON
    """Converts a value to the form of its type, where the meaning is unambiguous."""
    if not isinstance(schema, dict):
        return value
    non_null = without_null(schema, root)
    if value is None or (non_null is not schema and str(value).strip().casefold() in _NOTHING):
        return None
    kind = kind_of(non_null, root)
    if isinstance(value, dict):
        fields = non_null.get("properties", {})
        return {k: _coerced(v, fields.get(k), root) for k, v in value.items()}
    if kind == "list":
        return [_coerced(item, non_null.get("items"), root) for item in _list_items(value)]
    return _scalar(value, kind, non_null)


def _list_items(value: JSON) -> list[JSON]:
    if isinstance(value, str):
        items = map(str.strip, _ITEMS.split(value.strip("[]")))
        return [*filter(None, items)] or [value]
    return value if isinstance(value, list) else [value]


def _scalar(value: JSON, kind: Kind, schema: Mapping[str, Any]) -> JSON:
    if isinstance(value, float) and value.is_integer() and kind == "integer":
        return int(value)
    if isinstance(value, (int, float)) and kind in ("text", "enum") and not isinstance(value, bool):
        return value if kind == "enum" and value in schema.get("enum", ()) else json.dumps(value)
    return _from_text(value, kind, schema) if isinstance(value, str) else value


def _from_text(text: str, kind: Kind, schema: Mapping[str, Any]) -> JSON:
    """Returns the only value of a type that a text has; otherwise the text, which is invalid."""
    if kind in ("text", "list", "object", "other"):
        return text.strip() if kind == "text" else text
    for choice in _choices(schema):
        if choice == text or normalise(as_answer(choice)) == normalise(text):
            return choice
    # Two values may be a comparison, such as `not A but B`.
    values = {as_answer(value.value): value.value for value in _candidates(text, schema, schema)}
    return next(iter(values.values())) if len(values) == 1 else text


def _choices(schema: Mapping[str, Any]) -> Sequence[JSON]:
    choices: Sequence[JSON] = schema.get("enum", [schema["const"]] if "const" in schema else ())
    return choices


def _candidates(
    text: str, schema: Mapping[str, Any], root: Mapping[str, Any]
) -> Iterator[FoundValue]:
    """Yields the values in a text that have the schema's type, with their places in the text."""
    non_null = without_null(schema, root)
    match kind_of(non_null, root):
        case "number" | "integer":
            yield from numbers(text)
        case "date":
            yield from dates(text)
        case "enum":
            for choice in _choices(non_null):
                pattern = rf"\b{re.escape(as_answer(choice))}\b"
                for match in re.finditer(pattern, text, re.IGNORECASE):
                    yield FoundValue(*match.span(), choice)
        case "yes_no":
            if (answer := yes_or_no(text)) is not None:
                yield FoundValue(0, len(text), answer)
        case "list":
            yield FoundValue(0, len(text), _coerced(text, non_null, root))
        case _:
            yield FoundValue(0, len(text), text)
