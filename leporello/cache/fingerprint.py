"""Fingerprints of stages as plain JSON that is equal in every process."""

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
    """Returns everything that a stage's results depend on, computed once per instance.

    Secrets are left out. A stage's parameters are the fields of its frozen dataclass.

    Args:
        stage: A stage or a token counter.
        without: Parameters to leave out because the results do not depend on them.

    Returns:
        None if the stage has no fingerprint: its class is not a frozen dataclass whose fields are
        the constructor's parameters, cannot be found in a file or an installed package, or
        declares `repeatable = False`; or a parameter is not JSON, a path or such an instance.

    Raises:
        UserError: A model, or a file that `depends_on` names, is missing.
    """
    facts, fact = facts_of(stage), ("fingerprint", frozenset(without))
    if fact not in facts:
        try:
            facts[fact] = _identity(stage, without)
        except UnknownParametersError:
            facts[fact] = None
    result: Mapping[str, JSON] | None = facts[fact]
    return result


def _identity(stage: object, without: Collection[str]) -> dict[str, JSON]:
    cls: Any = type(stage)
    parameters = {
        name: value for name, value in parameters_of(stage).items() if name not in without
    }
    classes = (cls, *own_backends(cls, parameters))
    # `repeatable = False` keeps results that depend on a server or a clock out of the cache
    # (decision 48).
    if (class_name := public_name(cls)) is None or not all(map(is_repeatable, classes)):
        raise UnknownParametersError
    return {
        "class": class_name,
        "parameters": {parameter: _json(value) for parameter, value in parameters.items()},
        **dependencies(cls, parameters, _content).key(),
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
    """Returns a model's fingerprint, computed once per process, as models are loaded only once."""
    return model_fingerprint(model)
