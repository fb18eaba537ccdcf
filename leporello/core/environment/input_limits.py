"""Limits of users' files: far above any normal file, and low enough to protect the machine.

They are checked while a file is read, before its content takes memory; docs/files.md lists them.
The functions below convert numbers in files, replies and requests within such limits.
"""

import json
import math
import re
from typing import Any, NoReturn

CONFIG_BYTES = 2**21  # bytes of a YAML file, of a mapping's JSON, or of a text of the command line
# Counted in the text before parsing, which takes memory for each node.
CONFIG_MARKS = 100_000  # line ends, commas and opening brackets, since each can add a node
CONFIG_DIRECTIVES = 100  # `%TAG` directives, which libyaml compares with each other
# Ten aliases of ten aliases, nine levels deep, are a billion nodes in one kilobyte.
CONFIG_NODES = 100_000  # mappings, lists and values, counted again for each alias
# Checks of configs are recursive, and Python allows a thousand calls within each other.
CONFIG_DEPTH = 100  # mappings and lists within each other
# Python converts long numbers in quadratic time.
NUMBER_LETTERS = 400  # letters of a number; the longest float is shorter
COUNT = 2**53  # largest count that servers report and clients ask for; sums of counts stay exact
SECONDS = 10_000_000.0  # longest time-out; timers of the system end soon after
LINE_LETTERS = 2**28  # letters of a line, or of a JSON file, that a run wrote or that is scored
# Sweeps multiply: five of ten values would be 100,000 pipelines.
POINTS = 5_000  # stages and pipelines from the sweeps of one pipeline
ANCESTORS = 50  # pipelines in a chain of `extends`
COLUMNS = 10_000  # columns of a suite

ROW_BYTES = 2**25  # uncompressed bytes of a row; a user's task can raise it by `max_row_bytes`
EXPANDED_BYTES = 2**28  # uncompressed bytes that are allowed for any compressed file
# Text shrinks ten times, repetitive JSON a hundred; deflate's limit is 1032.
EXPANDED_TIMES = 250  # maximum ratio of uncompressed to compressed size beyond EXPANDED_BYTES
XML_DEPTH = 256  # elements within each other
# striprtf keeps a stack of groups; real files nest some ten.
RTF_DEPTH = 500  # groups within each other
# Each entry takes a kilobyte as an object; the largest office files have some thousand.
ARCHIVE_ENTRIES = 20_000  # entries of a zip file that is a document
TABLE_COLUMNS = 100_000  # columns of a row of a text table
MAIL_PARTS = 1_000  # attachments of a mail; more are reported as lost
# The library parses headers in quadratic time.
HEADER_LETTERS = 4_000  # letters of a mail's header; more are reported as lost

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(?:([KMGT])(i?))?B", re.ASCII | re.IGNORECASE)


def integer(text: str, base: int = 10) -> int:
    """Returns an integer that a float can represent too, so that arithmetic cannot overflow."""
    _check_length(text)
    value = int(text, base)
    try:
        float(value)
    except OverflowError:
        raise _too_large(text) from None
    return value


def real(text: str) -> float:
    """Returns a finite float; raises ValueError if the number is too long or too large."""
    _check_length(text)
    value = float(text)
    if not math.isfinite(value):
        raise _too_large(text)
    return value


def no_constant(name: str) -> NoReturn:
    """Refuses `NaN` and `Infinity`, which Python reads as numbers; raises ValueError."""
    raise ValueError(f"{name} is not a JSON number")


def size_of(text: str) -> int:
    """Returns the bytes of a size such as `4GiB` or `500MB`; raises ValueError for other texts."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"must be a size such as 4GiB or 500MB, got {text!r}")
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** " KMGT".index((match[2] or " ").upper()))


def count_of(value: object) -> int | None:
    """Returns a count; None if the value is not a count."""
    return value if type(value) is int and 0 <= value <= COUNT else None


def loads(text: str) -> Any:  # noqa: ANN401 -- any JSON
    """Returns the value of JSON text; raises ValueError if it is not JSON, or exceeds a limit."""
    return _DECODER.decode(text)


_DECODER = json.JSONDecoder(parse_int=integer, parse_float=real)


def _check_length(text: str) -> None:
    if len(text) > NUMBER_LETTERS:
        raise ValueError(f"a number of {len(text):,} letters is too long: at most {NUMBER_LETTERS}")


def _too_large(text: str) -> ValueError:
    return ValueError(f"the number {text:.20} of {len(text)} letters is too large: at most 1.8e308")
