"""Keys in a config: names of environment variables, never the keys themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, get_origin

from leporello.config.parameters import Parameter, members, nested_kind
from leporello.core.annotations import SECRET_MARK, marked
from leporello.core.records import JSON
from leporello.core.secrets import is_variable

# `max_token`, `mask_token` or `secret_santa` are none; `hf_token`, `db_password` are.
_SECRET = re.compile(
    r"(?:.*[_-])?(?:api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|passw(?:or)?d|passphrase"
    r"|secret|credentials?|authorization|(?:api|access|auth|bearer|hf|refresh|session)[_-]?token)",
    re.IGNORECASE,
)
_LITERAL = (
    "a key does not stand in a file: give the name of an environment variable, as $OPENAI_API_KEY"
)
_UNMARKED = (
    "sounds like a key, and what a file gives is written to the run's files: annotate the parameter"
    " with leporello.core.protocols.Secret, and give the name of an environment variable, as"
    " $OPENAI_API_KEY"
)


def sounds_secret(name: str) -> bool:
    """Returns whether a parameter of this name likely takes a key."""
    return _SECRET.fullmatch(name) is not None


def fault_of_key(parameter: Parameter, plain: JSON) -> str | None:
    """Returns what is wrong with a key, never repeating it; None if nothing is, or it is no key.

    Args:
        parameter: The parameter whose value it is.
        plain: Value as a file gives it, or the parameter's default.
    """
    if marked(parameter.annotation, SECRET_MARK):
        given = (leaf for leaf in leaves(plain) if isinstance(leaf, (str, int, float)))
        return None if all(is_variable(leaf) or leaf == "" for leaf in given) else _LITERAL
    if nested_kind(parameter.annotation) or _is_choice(parameter.annotation):
        return None
    named = [plain] if sounds_secret(parameter.name) else _under_secret_names(plain)
    texts = (leaf for value in named for leaf in leaves(value))
    return _UNMARKED if any(isinstance(text, str) and text for text in texts) else None


def leaves(value: Any) -> Iterator[Any]:  # noqa: ANN401 -- JSON, or a default
    """Yields what a value holds that holds nothing itself; keys of mappings are left out."""
    if isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from leaves(item)
    else:
        yield value


def _under_secret_names(value: Any) -> Iterator[Any]:  # noqa: ANN401 -- as above
    """Yields what stands under a name in a mapping that sounds like a key's."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from [item] if sounds_secret(str(name)) else _under_secret_names(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _under_secret_names(item)


def _is_choice(annotation: Any) -> bool:  # noqa: ANN401 -- any annotation
    """Returns whether an annotation lists all values, which are then no secrets."""
    return {get_origin(member) for member in members(annotation)} == {Literal}
