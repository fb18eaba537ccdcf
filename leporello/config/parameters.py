"""Checks values of YAML against the annotations of a constructor."""

import inspect
import json
import re
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import ConfigDict, PydanticSchemaGenerationError, TypeAdapter, ValidationError

from leporello.core.annotations import (
    BACKEND_MARK,
    MODEL_MARK,
    ROLE_MARK,
    SECRET_MARK,
    annotations_of,
    docstring,
    marked,
)
from leporello.core.errors import ConfigError, Fault, UserError, build_all, did_you_mean, reworded
from leporello.core.protocols import KINDS, LOADER, Kind
from leporello.core.records import JSON
from leporello.core.secrets import is_variable
from leporello.core.yaml.tree import Tree
from leporello.storage import is_url, to_path

_Structure = TypeVar("_Structure")
_OPEN: object = inspect.Parameter.empty
_KIND_OF = {kind.protocol: kind for kind in (*KINDS.values(), LOADER)}
_LISTS = (tuple, list, set, frozenset)


# Matches `hf_token` and `db_password`, but not `max_token`, `mask_token` or `secret_santa`.
_SECRET = re.compile(
    r"(?:.*[_-])?(?:api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|passw(?:or)?d|passphrase"
    r"|secret|credentials?|authorization|(?:api|access|auth|bearer|hf|refresh|session)[_-]?token)",
    re.IGNORECASE,
)
_LITERAL = (
    "a key must not be in a file: give the name of an environment variable, such as $OPENAI_API_KEY"
)
_UNMARKED = (
    "looks like a key, and values from files are written to the run's files: annotate the parameter"
    " with leporello.core.protocols.Secret, and give the name of an environment variable, such as"
    " $OPENAI_API_KEY"
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a constructor; a missing annotation or default is `Parameter.empty`."""

    name: str
    annotation: Any
    default: Any
    description: str = ""

    @property
    def required(self) -> bool:
        """Whether the YAML must give it."""
        return self.default is inspect.Parameter.empty

    @property
    def type_name(self) -> str:
        """The type, bounds and allowed values, for people."""
        return _type_name(self.annotation)

    @property
    def default_text(self) -> str:
        """The default as Python code; empty if the parameter is required."""
        return "" if self.required else repr(self.default)

    def __str__(self) -> str:
        text = f"{self.name}: {self.type_name}"
        return text if self.required else f"{text} = {self.default_text}"


@cache
def parameters(cls: type[Any]) -> Mapping[str, Parameter]:
    """Returns the constructor's parameters by name, in order; see `annotations_of` for errors."""
    hints, (_, texts) = annotations_of(cls), docstring(cls)
    skipped = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {
        name: Parameter(name, hints.get(name, _OPEN), _default(cls, parameter), texts.get(name, ""))
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.kind not in skipped
    }


def _default(cls: type[Any], parameter: inspect.Parameter) -> Any:  # noqa: ANN401 -- of any type
    field = getattr(cls, "__dataclass_fields__", {}).get(parameter.name)
    if field is None or field.default_factory is MISSING:
        return parameter.default
    return field.default_factory()


def members(annotation: Any) -> tuple[Any, ...]:  # noqa: ANN401 -- annotations have no common type
    """Returns the alternatives of a union, without `Annotated` and None."""
    if get_origin(annotation) is Annotated:
        return members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(m for arg in get_args(annotation) for m in members(arg))
    return () if annotation is type(None) else (annotation,)


def takes_list(annotation: Any) -> bool | None:  # noqa: ANN401 -- as above
    """Returns whether a list is a value of the parameter (True), a sweep (False) or both (None)."""
    if annotation is _OPEN or annotation in (Any, object):
        return None
    answers = {(get_origin(member) or member) in _LISTS for member in members(annotation)}
    return answers.pop() if len(answers) == 1 else None


def nested_kind(annotation: Any) -> Kind | None:  # noqa: ANN401 -- as above
    """Returns the kind of a parameter's stage or tuple of stages; None for other parameters."""
    for member in members(annotation):
        for candidate in (member, *get_args(member)):
            if isinstance(candidate, type) and candidate in _KIND_OF:
                return _KIND_OF[candidate]
    return None


@cache
def adapter(annotation: Any) -> TypeAdapter[Any]:  # noqa: ANN401 -- as above
    """Returns pydantic's strict checker of an annotation."""
    config = ConfigDict(strict=True)
    try:
        return TypeAdapter(annotation, config=config)
    except PydanticSchemaGenerationError:  # pydantic cannot check a plug-in's classes
        return TypeAdapter(Any)
    except Exception:
        # pydantic rejects a config for models and dataclasses, which have their own.
        return TypeAdapter(annotation)


def validate(parameter: Parameter, tree: Tree) -> Any:  # noqa: ANN401 -- as above
    """Returns the checked value of a parameter for the constructor; raises ValueError."""
    if parameter.annotation is _OPEN:
        return tree.plain()
    plain = tree.plain()
    try:
        plain = path_from_file(tree, parameter.annotation)
        # JSON mode is strict, but accepts lists as tuples and strings as paths, which YAML needs.
        value = adapter(parameter.annotation).validate_json(json.dumps(plain))
        return to_path(plain) if isinstance(value, Path) else value
    except UserError as error:  # a URL with an unsupported protocol, or an invalid path
        raise ValueError(str(error)) from None
    except ValidationError as error:
        raise ValueError(_message(parameter, error, plain)) from None


def settings_of(path: str, tree: Tree, check: Callable[[str, Tree], Any]) -> dict[str, Any]:
    """Returns a mapping of settings, each checked by a function; `path` is its path in messages."""
    if not isinstance(tree.value, dict):
        problem = f"{path}: must be a mapping of settings, got {tree.plain()!r}"
        raise ConfigError([tree.fault(problem)])

    def checked(item: tuple[str, Tree]) -> tuple[str, Any]:
        try:
            return item[0], check(*item)
        except ValueError as error:
            raise ConfigError([item[1].fault(f"{path}.{item[0]}: {error}")]) from None

    return dict(build_all(tree.items.items(), checked))


def setting(cls: type, name: str, tree: Tree) -> Any:  # noqa: ANN401 -- as above
    """Returns a setting's value for `cls`; raises ValueError."""
    allowed = parameters(cls)
    if name not in allowed:
        raise ValueError(f"unknown setting{did_you_mean(name, allowed)}")
    return validate(allowed[name], tree)


def structured(cls: type[_Structure], plain: JSON, tree: Tree, path: str = "") -> _Structure:
    """Returns a dataclass that contains others, made from a tree's values; raises ConfigError."""
    annotation: Any = cls
    try:
        value: _Structure = adapter(annotation).validate_python(plain)
    except ValidationError as error:
        raise ConfigError([_fault(cls, tree, path, e) for e in error.errors()]) from None
    return value


def _fault(cls: Any, tree: Tree, path: str, error: Any) -> Fault:  # noqa: ANN401 -- pydantic's
    *_, last = place = error["loc"]
    for key in place:
        inner = parameters(cls)[key].annotation if key in parameters(cls) else None
        types = (a for m in members(inner) for a in (m, *get_args(m)) if is_dataclass(a))
        cls = next(types, cls)
        if isinstance(tree.value, list) and isinstance(key, int):
            tree = tree.value[key]
        tree = tree.items.get(str(key), tree)
    if error["type"] == "unexpected_keyword_argument":
        problem = f"unknown key {last!r}{did_you_mean(last, parameters(cls))}"
        place = place[:-1]
    elif error["type"] == "missing":
        problem = "is missing"
    else:
        problem = f"{reworded(error['msg'])}, got {error['input']!r:.60}"
    return tree.fault(f"{'.'.join(filter(None, (path, *map(str, place))))}: {problem}")


def path_from_file(tree: Tree, annotation: Any) -> Any:  # noqa: ANN401 -- as above
    """Returns a value, with a relative path resolved from the folder of its file."""
    plain = tree.plain()
    is_path = Path in members(annotation)
    is_model = marked(annotation, MODEL_MARK) or marked(annotation, BACKEND_MARK)
    if not isinstance(plain, str) or not (is_path or is_model):
        return plain
    if is_path and is_url(plain):
        return plain
    if is_model and not plain.startswith(("./", "../", "~")):
        return plain
    try:
        return str((tree.folder / Path(plain).expanduser()).resolve())
    except (OSError, RuntimeError, ValueError) as error:
        raise UserError(f"{plain!r:.100} is not a valid path: {error}") from None


def _message(parameter: Parameter, error: ValidationError, plain: Any) -> str:  # noqa: ANN401 -- as above
    kinds = members(parameter.annotation)
    literals = [a for m in kinds if get_origin(m) is Literal for a in get_args(m)]
    if literals and isinstance(plain, str) and all(get_origin(m) is Literal for m in kinds):
        return f"{plain!r} is not allowed{did_you_mean(plain, literals)}"
    details = error.errors(include_url=False)
    message = "; or ".join(dict.fromkeys(reworded(detail["msg"]) for detail in details))
    where = {
        "".join(f"[{part}]" for part in detail["loc"] if isinstance(part, int))
        for detail in details
    }
    position = f" at {where.pop()}" if len(where) == 1 and where != {""} else ""
    return f"{message}{position}, got {plain!r} (wanted: {_type_name(parameter.annotation)})"


def _type_name(annotation: Any) -> str:  # noqa: ANN401 -- as above
    if annotation is _OPEN or annotation is type(None):
        return "anything" if annotation is _OPEN else "None"
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is None:
        return getattr(annotation, "__name__", str(annotation))
    if origin is Annotated:
        return _type_name(arguments[0]) + "".join(map(_bound, arguments[1:]))
    if origin in (Literal, Union, types.UnionType):
        return " | ".join(map(repr if origin is Literal else _type_name, arguments))
    inner = ", ".join("..." if arg is ... else _type_name(arg) for arg in arguments)
    return f"{origin.__name__}[{inner}]"


def _bound(mark: object) -> str:
    signs = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
    for name, sign in signs.items():
        if (value := getattr(mark, name, None)) is not None:
            return f" {sign} {value}"
    return f" ({mark})" if mark in (MODEL_MARK, BACKEND_MARK, SECRET_MARK, ROLE_MARK) else ""


def is_secret_name(name: str) -> bool:
    """Returns whether a parameter with this name probably takes a secret key."""
    return _SECRET.fullmatch(name) is not None


def fault_of_key(parameter: Parameter, plain: JSON) -> str | None:
    """Returns the problem with a secret key from a file or a default, without the key, or None."""
    if marked(parameter.annotation, SECRET_MARK):
        keys = (leaf for leaf in leaves(plain) if isinstance(leaf, (str, int, float)))
        return None if all(is_variable(leaf) or leaf == "" for leaf in keys) else _LITERAL
    if nested_kind(parameter.annotation) or _is_choice(parameter.annotation):
        return None
    texts = _under_secret_names(parameter.name, plain)
    return _UNMARKED if any(isinstance(text, str) and text for text in texts) else None


def leaves(value: Any) -> Iterator[Any]:  # noqa: ANN401 -- JSON, or a default
    """Yields the scalars within nested lists and mappings, without the keys of mappings."""
    if isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from leaves(item)
    else:
        yield value


def _under_secret_names(name: str, value: Any) -> Iterator[Any]:  # noqa: ANN401 -- as above
    """Yields scalars whose name, or that of a mapping around them, looks like a secret key's."""
    if is_secret_name(name):
        yield from leaves(value)
    elif isinstance(value, (dict, list, tuple)):
        items = value.items() if isinstance(value, dict) else (("", item) for item in value)
        for inner, item in items:
            yield from _under_secret_names(str(inner), item)


def _is_choice(annotation: Any) -> bool:  # noqa: ANN401 -- any annotation
    """Returns whether an annotation lists all values, which therefore cannot be secret."""
    return {get_origin(member) for member in members(annotation)} == {Literal}
