"""API keys: read from the environment when a stage is built, and redacted in all output."""

from __future__ import annotations

import json
import os
import re
from urllib.parse import quote, quote_plus

from leporello.core.errors import UserError

VARIABLE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")

# Every written form of each key of this process, with the name of its variable.
_forms: dict[str, str] = {}


class Key(str):
    """Value of a key, whose `repr` is the name of its variable so that no stage's `repr` leaks it.

    Its creation, also by unpickling, registers it for `redact`.
    """

    __slots__ = ("variable",)
    variable: str

    def __new__(cls, value: str, variable: str) -> Key:
        """Returns the key with this value, read from the environment variable `$NAME`."""
        secret = super().__new__(cls, value)
        secret.variable = variable
        # In each written form, since an error may quote a key as JSON, Python or part of a URL.
        _forms.update(dict.fromkeys(_forms_of(value), variable))
        return secret

    def __repr__(self) -> str:
        return repr(self.variable)

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # text has one argument
        return str(self), self.variable


def is_variable(text: object) -> bool:
    """Returns whether a text names an environment variable: `$NAME`."""
    return isinstance(text, str) and VARIABLE.fullmatch(text) is not None


def is_set(variable: str) -> bool:
    """Returns whether the environment variable `$NAME` is set and not blank."""
    return bool(_value(variable).strip())


def key(variable: str) -> Key:
    """Returns the value of the environment variable `$NAME`."""
    if not is_set(variable):
        name = variable.removeprefix("$")
        raise UserError(f"the environment variable {name} is not set; set it with export {name}=…")
    return Key(_value(variable), variable)


def _value(variable: str) -> str:
    return os.environ.get(variable.removeprefix("$"), "")


def redact(text: str) -> str:
    """Returns the text with `$NAME` in place of every key of this process.

    It replaces verbatim keys and their forms in JSON, Python and URLs, but not parts of a key.
    """
    if not _forms:
        return text
    # A key may contain another one, whose replacement would leave the rest visible.
    longest_first = sorted(_forms, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), lambda match: _forms[match[0]], text)


def _forms_of(value: str) -> set[str]:
    bare = value.strip()
    escaped = (json.dumps(bare), json.dumps(bare, ensure_ascii=False), repr(bare))
    in_urls = (write(bare, safe="", errors="surrogateescape") for write in (quote, quote_plus))
    return {value, bare, *(text[1:-1] for text in escaped), *in_urls}
