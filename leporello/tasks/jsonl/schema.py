"""Schema of a row: one question, with its document or a reference to the document."""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from leporello.core.environment.input_limits import integer, no_constant, real
from leporello.core.errors import did_you_mean
from leporello.core.files import in_utf8
from leporello.core.records import Document, Span
from leporello.storage import is_url
from leporello.text.looks import looks_like
from leporello.text.typed.schema import schema_of

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
SOURCES = ("document", "document_path", "documents", "collection")  # a row has one of them
_SHOWN = 60  # most characters of a faulty value in a message


class RowError(Exception):
    """Faults of one row; `faults` are messages for its author."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(faults))


def _check_evidence(items: list[JsonValue]) -> list[JsonValue]:
    for item in items:
        match item:
            case str() if item.strip():
                continue
            case [int() as start, int() as end] if 0 <= start < end and bool not in map(type, item):
                continue
        raise ValueError(
            f"{_shown(item)} is neither [start, end] in characters with start < end, nor a quote of"
            " the document"
        )
    return items


def _check_answer(answer: JsonValue) -> JsonValue:
    schema_of(answer)
    return answer


_Filled: TypeAlias = Annotated[str, Field(min_length=1)]
# [start, end] in characters of the document, or exact quotes from it.
_Evidence: TypeAlias = Annotated[list[JsonValue], AfterValidator(_check_evidence)]
# `date`, `{type: number, minimum: 0}`.
_Type: TypeAlias = Annotated[JsonValue, AfterValidator(_check_answer)]


class Row(BaseModel):
    """One row of a file; `JsonLines` describes its fields."""

    # The validator is built for the first row, so that checking a config stays fast.
    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True
    )

    id: _Filled
    document: str | None = None  # may be empty, as in official data
    document_path: _Filled | None = None  # relative to the folder of the file of rows; or a URL
    # Files, folders, patterns, archives or URLs that form one document.
    documents: Annotated[list[str], Field(min_length=1)] | None = None
    collection: _Filled | None = None  # name of a collection in a config's `collections`
    document_id: _Filled | None = None  # rows share it; one of them has the text or path
    question: str = ""  # empty for summarisation
    references: list[str] = Field(default_factory=list)  # pydantic would deep-copy `[]`
    choices: list[str] = Field(default_factory=list)
    evidence: _Evidence = Field(default_factory=list)
    title: str = ""
    group: str = ""
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    answer: _Type = None

    @model_validator(mode="after")
    def _has_document(self) -> Row:
        used = [name for name in SOURCES if getattr(self, name) is not None]
        if not used and self.document_id is None:
            raise ValueError("needs `document`, `document_path` or `document_id`")
        if len(used) > 1:
            raise ValueError(f"has both `{used[0]}` and `{used[1]}`; give only one")
        return self

    @property
    def key(self) -> str:
        """The document's id: `document_id`, or its path or collection, or a hash of its text."""
        path = self._path or ", ".join(self.documents or ()) or self.collection
        return self.document_id or path or self.content

    @property
    def source(self) -> str:
        """Path, paths or collection of the document as JSON; empty without them."""
        collection = self.collection and {"collection": self.collection}
        source = collection or self.documents or self._path
        return json.dumps(source) if source else ""

    @property
    def _path(self) -> str:
        """The document's path in normalised form."""
        path = self.document_path or ""
        return path if not path or is_url(path) else Path(path).as_posix()

    @cached_property
    def content(self) -> str:
        """Source or hash that identifies the document's text; empty if the row has no document."""
        if self.document is not None:
            return f"text-{hashlib.sha256(self.document.encode()).hexdigest()[:16]}"
        return self.source


def validated(fields: Mapping[str, Any], ignore: Collection[str] = ()) -> Row:
    """Returns a row with these fields; raises RowError with all faults."""
    try:
        if ignore:
            fields = {k: v for k, v in fields.items() if k not in ignore}
        return Row.model_validate(fields)
    except ValidationError as error:
        raise RowError([_describe(e) for e in error.errors(include_url=False)]) from None


def decode(line: bytes | Mapping[str, Any] | None, *, strict: bool = True) -> Mapping[str, Any]:
    """Returns the fields of a line or of a table's row; U+FFFD replaces halves of surrogate pairs.

    NaN and duplicate fields are faults if `strict`; official files may have them. Raises RowError
    if the line is not a JSON object in UTF-8.
    """
    if not isinstance(line, bytes):
        return line or {}
    try:
        text = line.removeprefix(codecs.BOM_UTF8).rstrip().decode()
        fields = (_STRICT if strict else _LENIENT).decode(text)
    except UnicodeDecodeError as error:
        advice = f"{(encoding := looks_like(line))}; convert the file: iconv -f {encoding} -t UTF-8"
        problem = f"byte {error.start} of the line is not UTF-8, but looks like {advice}"
        raise RowError([problem]) from None
    except json.JSONDecodeError as error:
        hint = "; write one object per line, not a list" if line.lstrip().startswith(b"[") else ""
        problem = f"{error.msg.removesuffix(' at')} at character {error.pos + 1}{hint}"
        raise RowError([f"not JSON: {problem}"]) from None
    except (ValueError, RecursionError) as error:
        raise RowError([f"not JSON: {error}"]) from None
    if not isinstance(fields, dict):
        raise RowError([f"a row must be an object {{…}}, got {_shown(fields)}"])
    # The search is fast, and `in_utf8` visits every value of a row.
    return in_utf8(fields) if _SURROGATE.search(line) else fields


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in fields if names.count(name) > 1)
        # Python would silently keep the last value, and lose the first question or reference.
        raise ValueError(f"field {twice!r} is duplicated")
    return fields


_LENIENT = json.JSONDecoder(parse_int=integer, parse_float=real)
_STRICT = json.JSONDecoder(
    object_pairs_hook=_without_repeats, parse_int=integer, parse_float=real,
    parse_constant=no_constant,
)  # fmt: skip


def _describe(error: ErrorDetails) -> str:
    field = ".".join(map(str, error["loc"]))
    match error["type"]:
        case "extra_forbidden":
            hint = did_you_mean(field, Row.model_fields)
            return f"unknown field {field!r}{hint}; add it to `ignore` to skip it"
        case "missing":
            return f"field {field!r} is missing"
        case "value_error":
            return f"{field}: {error['ctx']['error']}" if field else str(error["ctx"]["error"])
    message = error["msg"].removeprefix("Input ")
    return f"{field}: {message}, got {_shown(error['input'])}"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def located(items: Sequence[JsonValue], document: Document) -> tuple[Span, ...]:
    """Returns the spans of evidence; raises RowError if a quote is missing or not unique."""
    spans: list[Span] = []
    faults: list[str] = []
    for item in items:
        try:
            spans.append(_locate(item, document))
        except ValueError as error:
            faults.append(f"evidence {_shown(item)} {error}")
    if faults:
        raise RowError(faults)
    return tuple(spans)


def _locate(item: JsonValue, document: Document) -> Span:
    text = document.text
    match item:
        case [int() as start, int() as end]:
            if end > len(text):
                raise ValueError(f"ends after document {document.id!r} of {len(text)} characters")
            return Span(start, end)
    quote = str(item)
    start = text.find(quote)
    if start < 0:
        raise ValueError(f"is not in document {document.id!r}")
    if text.find(quote, start + 1) >= 0:
        raise ValueError(
            f"is {text.count(quote)} times in document {document.id!r}; give a longer quote or"
            " [start, end]"
        )
    return Span(start, start + len(quote))
