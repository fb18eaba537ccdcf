"""What in a JSON Schema keeps every value from fitting it, told before any work."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leporello.core.errors import did_you_mean
from leporello.core.records import JSON

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
_DEEPEST = 40  # levels of a schema
_TYPES = frozenset(("null", "boolean", "object", "array", "number", "string", "integer"))
_PAIRS = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
)


@dataclass(frozen=True, slots=True)
class SchemaFault:
    """One thing wrong with a schema: the keys that lead to it, and what it is."""

    path: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{'.'.join(self.path)}: {self.text}" if self.path else self.text


def faults_of(schema: JSON) -> list[SchemaFault]:
    """Returns why a schema is none, or why nothing can satisfy it; none if it is sound.

    What follows from several keywords together that are not looked at here (`not`, `if`, patterns)
    is not found: then answers fail one by one.
    """
    from jsonschema import Draft202012Validator

    if not isinstance(schema, dict):
        return [SchemaFault((), f"a JSON Schema is an object {{…}}, got {schema!r:.80}")]
    wrong = sorted(
        Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(schema), key=str
    )
    if wrong:
        return [SchemaFault(tuple(map(str, e.absolute_path)), _message(e)) for e in wrong]
    return [*dict.fromkeys(_SchemaWalk(schema).faults(schema, (), must=frozenset()))]


def _message(error: Any) -> str:  # noqa: ANN401 -- jsonschema's own
    if [*error.absolute_path][-1:] == ["type"] and isinstance(error.instance, str):
        return f"there is no type {error.instance!r}{did_you_mean(error.instance, _TYPES)}"
    return f"{error.message:.300}"


def validator(schema: Mapping[str, Any]) -> Draft202012Validator:
    """Returns what checks values: formats as well, and nothing is fetched."""
    from jsonschema import Draft202012Validator, FormatChecker
    from referencing import Registry

    formats = FormatChecker(("email", "ipv4", "ipv6", "uuid"))
    formats.checks("date")(_is_iso)
    return Draft202012Validator(schema, format_checker=formats, registry=Registry())


def _is_iso(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        return bool(_ISO.fullmatch(value)) and bool(datetime.date.fromisoformat(value))
    except ValueError:
        return False


def resolve(root: Mapping[str, Any], reference: str) -> Any:  # noqa: ANN401 -- any JSON
    """Returns what `#/…` names in a schema.

    Raises:
        LookupError: There is nothing there, or it is elsewhere.
    """
    if not reference.startswith("#"):
        raise LookupError(reference)
    node: Any = root
    for part in filter(None, reference[1:].split("/")):
        name = part.replace("~1", "/").replace("~0", "~")
        node = node[int(name)] if isinstance(node, list) and name.isdecimal() else node[name]
    return node


class _SchemaWalk:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self._seen: set[str] = set()

    def faults(
        self,
        schema: Any,  # noqa: ANN401 -- any JSON
        path: tuple[str, ...],
        must: frozenset[str],
    ) -> Iterator[SchemaFault]:
        """Yields what is wrong below here; `must` are references that a value cannot do without."""
        if schema is False or len(path) > _DEEPEST:
            why = "allows no value" if schema is False else f"is deeper than {_DEEPEST} levels"
            yield SchemaFault(path, why)
        if not isinstance(schema, dict):
            return
        parts, wrong = self._parts(schema, path)
        if wrong:
            yield from wrong
            return
        yield from _contradictions(parts, path)
        yield from self._no_value(schema, path)
        yield from self._alternatives(schema, path, must)
        yield from self._reference(schema, path, must)
        yield from self._inside(schema, path, must)

    def _parts(
        self, schema: dict[str, Any], path: tuple[str, ...]
    ) -> tuple[list[dict[str, Any]], list[SchemaFault]]:
        """Returns all schemas that hold at once: this one, `allOf`, and what they refer to."""
        parts, waiting, names = [], [schema], set[str]()
        while waiting:
            part = waiting.pop()
            parts.append(part)
            waiting += [one for one in part.get("allOf", ()) if isinstance(one, dict)]
            if (name := part.get("$ref")) is None:
                continue
            if name in names:
                return parts, [SchemaFault((*path, "$ref"), f"{name!r} refers to itself")]
            names.add(name)
            try:
                found = resolve(self.root, name)
            except (LookupError, TypeError):
                text = f"there is no {name!r} in this schema, and others are not looked for"
                return parts, [SchemaFault((*path, "$ref"), text)]
            waiting += [found] if isinstance(found, dict) else []
        return parts, []

    def _no_value(self, schema: dict[str, Any], path: tuple[str, ...]) -> Iterator[SchemaFault]:
        """Yields a fault where none of the values that are listed fits the rest."""
        given = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if given is None:
            return
        rest = {k: v for k, v in schema.items() if k not in ("enum", "const")}
        own = validator({**rest, "$defs": self.root.get("$defs", {})})
        if "$ref" not in str(rest) and not any(own.is_valid(value) for value in given):
            key = "enum" if "enum" in schema else "const"
            yield SchemaFault((*path, key), "none of the values that it lists is allowed")

    def _alternatives(
        self, schema: dict[str, Any], path: tuple[str, ...], must: frozenset[str]
    ) -> Iterator[SchemaFault]:
        """Yields what is wrong with all ways there are; null is none, which allows no value."""
        for key in ("anyOf", "oneOf"):
            ways = schema.get(key, ())
            own = must if len(ways) == 1 else frozenset[str]()
            found = [
                [*self.faults(one, (*path, key, str(n)), own)]
                for n, one in enumerate(ways)
                if one != {"type": "null"}
            ]
            if all(found):
                yield from (fault for faults in found for fault in faults)
        if schema.get("not") in (True, {}):
            yield SchemaFault((*path, "not"), "allows no value")

    def _reference(
        self, schema: dict[str, Any], path: tuple[str, ...], must: frozenset[str]
    ) -> Iterator[SchemaFault]:
        name = schema.get("$ref")
        if name in must:
            yield SchemaFault((*path, "$ref"), f"{name!r} requires itself without end")
        elif name is not None and name not in self._seen:
            self._seen.add(name)
            yield from self.faults(resolve(self.root, name), path, must | {name})
            self._seen.discard(name) if must else None

    def _inside(
        self, schema: dict[str, Any], path: tuple[str, ...], must: frozenset[str]
    ) -> Iterator[SchemaFault]:
        properties = schema.get("properties", {})
        for name, inner in properties.items():
            needed = must if name in schema.get("required", ()) else frozenset[str]()
            yield from self.faults(inner, (*path, "properties", name), needed)
        for number, inner in enumerate(schema.get("allOf", ())):
            yield from self.faults(inner, (*path, "allOf", str(number)), must)
        items = schema.get("items")
        if isinstance(items, dict) or (items is False and schema.get("minItems")):
            needed = must if schema.get("minItems") else frozenset()
            yield from self.faults(items, (*path, "items"), needed)
            values = items.get("enum") if isinstance(items, dict) else None
            if schema.get("uniqueItems") and values and schema.get("minItems", 0) > len(values):
                text = f"minItems ({schema['minItems']}) exceeds the {len(values)} values there are"
                yield SchemaFault((*path, "minItems"), text)


def _contradictions(
    parts: Sequence[Mapping[str, Any]], path: tuple[str, ...]
) -> Iterator[SchemaFault]:
    """Yields what schemas that hold at once contradict each other in."""
    allowed = set(_TYPES)
    for part in parts:
        if "type" in part:
            types = {part["type"]} if isinstance(part["type"], str) else {*part["type"]}
            allowed &= types | ({"integer"} if "number" in types else set())
    if not allowed:
        yield SchemaFault((*path, "type"), "the types that are asked for exclude each other")
    for low, high in _PAIRS:
        least = max((p[low] for p in parts if low in p), default=None)
        most = min((p[high] for p in parts if high in p), default=None)
        if least is not None and most is not None and least > most:
            yield SchemaFault((*path, low), f"{low} ({least}) exceeds {high} ({most})")
    yield from _no_number(parts, allowed, path)
    yield from _no_object(parts, path)
    for part in parts:
        try:
            re.compile(part.get("pattern", ""))
        except re.error as error:
            yield SchemaFault((*path, "pattern"), f"is no regular expression: {error}")


def _no_object(parts: Sequence[Mapping[str, Any]], path: tuple[str, ...]) -> Iterator[SchemaFault]:
    """Yields required fields that there may not be."""
    needed = [*dict.fromkeys(name for part in parts for name in part.get("required", ()))]
    most = min((p["maxProperties"] for p in parts if "maxProperties" in p), default=len(needed))
    if len(needed) > most:
        text = f"{len(needed)} fields are required, and maxProperties is {most}"
        yield SchemaFault((*path, "maxProperties"), text)
    for part in parts:
        known = part.get("properties", {})
        if part.get("additionalProperties") is False and "patternProperties" not in part:
            for name in needed:
                if name not in known:
                    yield SchemaFault((*path, "required"), f"{name!r} is required, and not allowed")


def _no_number(
    parts: Sequence[Mapping[str, Any]], allowed: set[str], path: tuple[str, ...]
) -> Iterator[SchemaFault]:
    """Yields a fault where no number, or no whole one, lies between the bounds."""
    from fractions import Fraction
    from math import ceil, floor

    def given(*keys: str) -> list[tuple[Fraction, bool]]:
        return [(Fraction(p[key]), key != keys[0]) for p in parts for key in keys if key in p]

    lows, highs = given("minimum", "exclusiveMinimum"), given("maximum", "exclusiveMaximum")
    if not lows or not highs:
        return
    (low, over), (high, under) = max(lows), min(highs, key=lambda each: (each[0], not each[1]))
    steps = [Fraction(str(p["multipleOf"])) for p in parts if "multipleOf" in p]
    if "integer" in allowed and "number" not in allowed and not steps:
        steps = [Fraction(1)]
    if low > high or (low == high and (over or under)):
        if not (over or under):
            return  # told with the pairs
        yield SchemaFault((*path, "exclusiveMinimum"), "no number lies between the bounds")
    elif steps:
        step = max(steps)
        first = ceil(low / step) + (over and low % step == 0)
        last = floor(high / step) - (under and high % step == 0)
        if first > last:
            text = "no whole number" if step == 1 else f"no multiple of {step}"
            yield SchemaFault((*path, "minimum"), f"{text} lies between the bounds")
