"""API keys: taken from the environment as a stage is built, and kept out of all that is written."""

from __future__ import annotations

import json
import os
import re
from urllib.parse import quote, quote_plus

from leporello.core.errors import UserError

_VARIABLE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")

# What stands for a key in text: every form of each key that this process has had, and its name.
_forms: dict[str, str] = {}


class Key(str):
    """A key's value, whose `repr` is the name of its variable: a stage's `repr` tells no secret.

    It is as good as any text to what needs the key. Making one, by unpickling too, tells `redact`.
    """

    __slots__ = ("variable",)
    variable: str

    def __new__(cls, value: str, variable: str) -> Key:
        """Returns the key of this value, which comes from the environment variable `$NAME`."""
        secret = super().__new__(cls, value)
        secret.variable = variable
        _forms.update(dict.fromkeys(_written(value), variable))
        return secret

    def __repr__(self) -> str:
        return repr(self.variable)

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # text has one argument
        return str(self), self.variable


def is_variable(text: object) -> bool:
    """Returns whether this names an environment variable: `$NAME`."""
    return isinstance(text, str) and _VARIABLE.fullmatch(text) is not None


def is_set(variable: str) -> bool:
    """Returns whether the environment has something for `$NAME`."""
    return bool(_value(variable).strip())


def key(variable: str) -> Key:
    """Returns what the environment has for `$NAME`.

    Raises:
        UserError: It is not set, or blank.
    """
    if not is_set(variable):
        name = variable.removeprefix("$")
        raise UserError(f"the environment variable {name} is not set: export {name}=… first")
    return Key(_value(variable), variable)


def _value(variable: str) -> str:
    return os.environ.get(variable.removeprefix("$"), "")


def redact(text: str) -> str:
    """Returns the text with `$NAME` for every key that this process was given.

    Found are keys as they are, and as JSON, Python and URLs write them; not parts of a key.
    """
    if not _forms:
        return text
    longest_first = sorted(_forms, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), lambda match: _forms[match[0]], text)


def _written(value: str) -> set[str]:
    """Returns the forms in which a value comes in texts."""
    bare = value.strip()
    escaped = (json.dumps(bare), json.dumps(bare, ensure_ascii=False), repr(bare))
    in_urls = (write(bare, safe="", errors="surrogateescape") for write in (quote, quote_plus))
    return {value, bare, *(text[1:-1] for text in escaped), *in_urls}
