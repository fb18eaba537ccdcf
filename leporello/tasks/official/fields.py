"""What stands in a line of the benchmarks' files, and what is wrong with it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from leporello.core.files import in_utf8
from leporello.tasks.jsonl.schema import RowError

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def decode(line: bytes) -> dict[str, Any]:
    """Returns the row of a line; halves of surrogate pairs, no characters, become U+FFFD.

    Raises:
        RowError: It is no JSON object in UTF-8.
    """
    try:
        row = json.loads(line.rstrip())
        if _SURROGATE.search(line):
            row = in_utf8(row)
    except UnicodeDecodeError as error:
        raise RowError([f"byte {error.start} of the line is not UTF-8"]) from None
    except json.JSONDecodeError as error:
        reason = error.msg.removesuffix(" at")
        raise RowError([f"not JSON: {reason} at character {error.pos + 1}"]) from None
    except (ValueError, RecursionError) as error:
        raise RowError([f"not JSON: {error}"]) from None
    if not isinstance(row, dict):
        raise RowError([f"a row is an object {{…}}, not {json.dumps(row):.60}"])
    return row


def text_of(row: Mapping[str, Any], name: str) -> str:
    """Returns a field that must be text.

    Raises:
        RowError: It is missing, or something else.
    """
    if name not in row:
        names = ", ".join(row) or "none"
        raise RowError([f"field {name!r} is missing; the row has {names}"])
    if not isinstance(value := row[name], str):
        raise RowError([f"field {name!r} must be text, got {json.dumps(value):.60}"])
    return value


def outputs(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the gold answers of a row; none where the benchmark keeps them to itself.

    Raises:
        RowError: The field is neither text, nor a list of texts, nor null, nor left out.
    """
    value = row.get("output")
    listed = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(item, str) for item in listed):
        raise RowError([f"field 'output' must be text, got {json.dumps(value):.60}"])
    return tuple(listed)
