"""What identifies what a stage computes, as plain JSON: the same in every process."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import PurePath
from typing import Any

from leporello.cache.dependencies import dependencies, own_backends
from leporello.cache.source_code import public_name
from leporello.core.annotations import is_repeatable
from leporello.core.calls.memory import SCALARS, UnknownParametersError, facts_of, parameters_of
from leporello.core.records import JSON
from leporello.models.locate import model_fingerprint


def fingerprint(stage: object, without: Collection[str] = ()) -> Mapping[str, JSON] | None:
    """Returns what the results of a stage depend on, worked out once an instance.

    Secrets are no part of it. A stage's parameters are the fields of its frozen dataclass.

    Args:
        stage: A stage, or what counts tokens.
        without: Parameters left out, for results that do not depend on them.

    Returns:
        None if it cannot be told: for another class than a frozen dataclass whose fields are its
        constructor's parameters; where one of them is neither JSON, a path nor such an instance;
        for a class that is not to be found in a file or an installed package; for one that
        declares `repeatable = False`.

    Raises:
        UserError: A model, or a file that `depends_on` names, is missing.
    """
    known, key = facts_of(stage), ("fingerprint", frozenset(without))
    if key not in known:
        try:
            known[key] = _identity(stage, without)
        except UnknownParametersError:
            known[key] = None
    result: Mapping[str, JSON] | None = known[key]
    return result


def _identity(stage: object, without: Collection[str]) -> dict[str, JSON]:
    cls: Any = type(stage)
    kept = {name: value for name, value in parameters_of(stage).items() if name not in without}
    classes = (cls, *own_backends(cls, kept))
    if (shown := public_name(cls)) is None or not all(map(is_repeatable, classes)):
        raise UnknownParametersError
    return {
        "class": shown,
        "parameters": {parameter: _json(value) for parameter, value in kept.items()},
        **dependencies(cls, kept, _content).key(),
    }


def _json(value: object) -> JSON:
    if type(value) in SCALARS:
        return value  # type: ignore[return-value]  # one of the scalars
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, (tuple, list)):
        return [_json(item) for item in value]
    if isinstance(value, dict) and all(type(key) is str for key in value):
        return {key: _json(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((_json(item) for item in value), key=json.dumps)
    if dataclasses.is_dataclass(value) and (nested := fingerprint(value)) is not None:
        return {**nested}
    raise UnknownParametersError


@cache
def _content(model: str) -> str:
    """Returns a model's fingerprint, once a process: what is loaded stays what it was."""
    return model_fingerprint(model)
