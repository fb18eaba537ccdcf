"""Page of a class: its docstring, parameters, source and an example in YAML."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from leporello.config.classes import check_methods
from leporello.config.parameters import Parameter, parameters
from leporello.config.placement import Placement
from leporello.config.specs import Spec
from leporello.core.annotations import docstring
from leporello.core.environment.classes import ClassError, built_ins, find_class, origin, plug_ins
from leporello.core.errors import UserError
from leporello.core.protocols import ALL_KINDS, TASK
from leporello.core.records import JSON
from leporello.core.training import Training
from leporello.core.yaml.scalars import as_yaml

_LISTED = tuple(kind.key for kind in ALL_KINDS if kind.table)  # not keys of pipelines or tasks
_SETTINGS: Mapping[str, type] = {"train": Training, "placement": Placement}


@dataclass(frozen=True, slots=True)
class ClassPage:
    """Description of one class."""

    kind: str  # key of its kind, `metric`, or the key of a pipeline's settings
    name: str
    source: str  # package or module, and file
    text: str  # docstring without the parameters
    parameters: Mapping[str, Parameter]
    yaml: str  # example, with placeholders for parameters that must be given

    def as_json(self) -> dict[str, JSON]:
        """Returns the page as JSON."""
        rows = {
            name: {"type": p.type_name, "default": p.default_text, "description": p.description}
            for name, p in self.parameters.items()
        }
        others = {name: getattr(self, name) for name in ("kind", "name", "source", "text", "yaml")}
        return {**others, "parameters": {**rows}}


def class_page(name: str) -> ClassPage | None:
    """Returns the page of a class, metric or pipeline's settings; None if the name is unknown."""
    if name in _SETTINGS:
        return page_of(name, name, _SETTINGS[name])
    fault: ClassError | None = None
    for kind in ALL_KINDS:
        try:
            cls = find_class(name, kind, Path.cwd())
        except ClassError as error:
            fault = error
            continue
        if name in built_ins(kind) or check_methods(cls, kind) is None:
            return page_of(kind.key, name, cls)
    # A plain word may be the name of something else, but a path or module can only name a class.
    if fault and set(name) & {".", ":"}:
        raise UserError(str(fault))
    return None


def page_of(kind: str, name: str, cls: type) -> ClassPage:
    """Returns the page of a class of this kind."""
    packages = plug_ins().get(f"leporello.{kind}s", {}).get(name, ())
    origins = ", ".join(map(origin, packages)) or cls.__module__
    source = f"{origins} ({inspect.getsourcefile(cls)})"
    values: dict[str, JSON] = {}
    if kind in _SETTINGS:
        values = Spec("", cls, {}).resolved()
        del values["class"]
    elif kind not in _LISTED:
        required = (p for p in parameters(cls).values() if p.required)
        values = {"class": name, **{p.name: f"<{p.type_name}>" for p in required}}
    example: dict[str, JSON] = {"tasks": {"mine": values}} if kind == TASK.key else {kind: values}
    # The only description: tables in guides had contradicted docstrings (decision 42).
    text, _ = docstring(cls)
    return ClassPage(kind, name, source, text, parameters(cls), as_yaml(example) if values else "")
