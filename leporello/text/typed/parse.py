"""From a text to a value of a type, and from a text to where such values stand in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from leporello.core.records import JSON
from leporello.text.squad import normalise
from leporello.text.typed.json_schema import resolve, validator
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
_MOST = 50_000  # characters of an answer that are looked at


def kind_of(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Kind:
    """Returns the type of an answer that a schema is, one that may also be null left aside."""
    schema = bare(schema, root or schema)
    if "enum" in schema or "const" in schema:
        return "enum"
    name = schema.get("type", "object" if "properties" in schema else "")
    if isinstance(name, list):
        name = next((one for one in name if one != "null"), "") if len(name) <= 2 else ""  # noqa: PLR2004 -- one and null
    if name == "string" and schema.get("format") == "date":
        return "date"
    return _KINDS.get(name, "other")


def bare(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns what a schema is besides null, a reference followed."""
    for _ in range(10):
        if "$ref" in schema:
            schema = resolve(root, schema["$ref"])
            continue
        ways = schema.get("anyOf") or schema.get("oneOf") or ()
        own = [way for way in ways if way != {"type": "null"}]
        if len(own) != 1 or len(ways) < 2:  # noqa: PLR2004 -- the type and null
            break
        schema = own[0]
    return schema if isinstance(schema, dict) else {}


def choices_of(schema: str) -> tuple[str, ...]:
    """Returns the answers that a type allows, if they are few: of an enum, or yes and no."""
    if not schema:
        return ()
    known = json.loads(schema)
    match kind_of(known):
        case "yes_no":
            return ("yes", "no")
        case "enum":
            values = bare(known, known).get("enum", ())
            return tuple(values) if values and all(isinstance(v, str) for v in values) else ()
    return ()


@lru_cache(maxsize=256)
def _checked(schema: str) -> tuple[dict[str, Any], Draft202012Validator]:
    loaded = json.loads(schema)
    return loaded, validator(loaded)


def written_schema(schema: str) -> str:
    """Returns what a model writes of a type, as JSON Schema: a value or null; empty for texts."""
    if not schema or kind_of(json.loads(schema)) == "text":
        return ""
    nullable = f'{{"anyOf": [{schema}, {{"type": "null"}}]}}'
    return schema if '"$ref"' in schema else nullable  # references count from the top


def fault_of(value: JSON, schema: str) -> str:
    """Returns what keeps a value from fitting a schema; empty if nothing does."""
    try:
        error = next(_checked(schema)[1].iter_errors(value), None)
    except RecursionError:
        return "the schema refers to itself without end"
    if error is None:
        return ""
    where = "/".join(map(str, error.absolute_path))
    return f"{where}: {error.message:.300}" if where else f"{error.message:.300}"


def parse(text: str, schema: str) -> JSON:
    """Returns the value that a text says.

    Numbers may have units and separators, dates any common spelling, objects and lists text around
    them. A text with several values of which one is wanted says none.

    Raises:
        ValueError: It is no such value; the text says why.
    """
    root = _checked(schema)[0]
    value = _coerced(_read(text[:_MOST], root), root, root)
    if fault := fault_of(value, schema):
        raise ValueError(fault)
    return value


def found_in(text: str, schema: str) -> Iterator[FoundValue]:
    """Yields the values of a type that stand in a text, as they come; of text and lists, all."""
    root = _checked(schema)[0]
    for found in _candidates(text, root, root):
        if not fault_of(found.value, schema):
            yield found


def as_answer(value: JSON) -> str:
    """Returns a value as it is scored and shown: `yes`, `1200`, `2020-03-01`, JSON for the rest."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return json.dumps(value, ensure_ascii=False)


def leaves(value: JSON, pointer: str = "") -> Iterator[tuple[str, JSON]]:
    """Yields what a value is made of, each with its JSON Pointer (RFC 6901)."""
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
    """Returns the JSON that a text is, or has in it; else the text."""
    if fenced := _FENCE.search(text):
        text = fenced[1]
    text = text.strip()
    kind = kind_of(schema)
    if kind == "text" and not text.startswith('"'):
        return text
    starts = [0] if kind not in ("object", "list", "other") else [
        0, *(m.start() for m in list(re.finditer(r"[\[{]", text))[:5])
    ]  # fmt: skip
    for start in starts:
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if start or not text[end:].strip():
            return value  # type: ignore[no-any-return]  # of a decoder
    return text


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _coerced(value: JSON, schema: Any, root: Mapping[str, Any]) -> JSON:  # noqa: ANN401 -- any JSON
    """Returns a value in the form of its type, where it is plainly meant so."""
    if not isinstance(schema, dict):
        return value
    own = bare(schema, root)
    if value is None or (own is not schema and str(value).strip().casefold() in _NOTHING):
        return None
    kind = kind_of(own, root)
    if isinstance(value, dict):
        fields = own.get("properties", {})
        return {k: _coerced(v, fields.get(k), root) for k, v in value.items()}
    if kind == "list":
        return [_coerced(item, own.get("items"), root) for item in _listed(value)]
    return _scalar(value, kind, own)


def _listed(value: JSON) -> list[JSON]:
    if isinstance(value, str):
        items = map(str.strip, _ITEMS.split(value.strip("[]")))
        return [*filter(None, items)] or [value]
    return value if isinstance(value, list) else [value]


def _scalar(value: JSON, kind: Kind, own: Mapping[str, Any]) -> JSON:
    if isinstance(value, float) and value.is_integer() and kind == "integer":
        return int(value)
    if isinstance(value, (int, float)) and kind in ("text", "enum") and not isinstance(value, bool):
        return value if kind == "enum" and value in own.get("enum", ()) else json.dumps(value)
    return _of_text(value, kind, own) if isinstance(value, str) else value


def _of_text(text: str, kind: Kind, schema: Mapping[str, Any]) -> JSON:
    match kind:
        case "yes_no":
            said = yes_or_no(text)
            return text if said is None else said
        case "enum":
            return _choice(text, schema.get("enum", [schema.get("const")]))
        case "number" | "integer" | "date":
            return _only(text, dates(text) if kind == "date" else numbers(text))
    return text.strip() if kind == "text" else text


def _only(text: str, found: Iterator[FoundValue]) -> JSON:
    """Returns the value of a text that says one; the text if it says none or several."""
    values = dict.fromkeys(each.value for each in found)
    return next(iter(values)) if len(values) == 1 else text


def _choice(text: str, choices: Sequence[JSON]) -> JSON:
    """Returns the choice that a text is, or the only one that it names."""
    normal = normalise(text)
    for choice in choices:
        if choice == text or normalise(as_answer(choice)) == normal:
            return choice
    named = [
        c for c in choices if re.search(rf"\b{re.escape(as_answer(c))}\b", text, re.IGNORECASE)
    ]
    return named[0] if len(named) == 1 else text


def _candidates(
    text: str, schema: Mapping[str, Any], root: Mapping[str, Any]
) -> Iterator[FoundValue]:
    own = bare(schema, root)
    match kind_of(own, root):
        case "number" | "integer":
            yield from numbers(text)
        case "date":
            yield from dates(text)
        case "enum":
            for choice in own.get("enum", ()):
                for at in re.finditer(rf"\b{re.escape(as_answer(choice))}\b", text, re.IGNORECASE):
                    yield FoundValue(*at.span(), choice)
        case "yes_no":
            if (said := yes_or_no(text)) is not None:
                yield FoundValue(0, len(text), said)
        case "list":
            yield FoundValue(0, len(text), _coerced(text, own, root))
        case _:
            yield FoundValue(0, len(text), text)
