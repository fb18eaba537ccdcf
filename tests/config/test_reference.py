"""Tests of the documentation of classes and options in docstrings, schema and terminal."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from command_line import ROOT, leporello, verbs
from jsonschema import Draft202012Validator

from leporello.config.parameters import parameters
from leporello.config.placement import Placement
from leporello.config.reference.schema import schema
from leporello.core.annotations import docstring
from leporello.core.environment.classes import built_ins
from leporello.core.protocols import ALL_KINDS
from leporello.core.training import Training
from leporello.core.yaml.tree import parse


def _classes() -> Iterator[type]:
    yield from (Training, Placement)
    for kind in ALL_KINDS:
        yield from built_ins(kind).values()


@pytest.mark.parametrize("cls", [*_classes()], ids=lambda cls: cls.__name__)
def test_a_class_and_each_of_its_parameters_are_described(cls: type) -> None:
    text, described = docstring(cls)
    assert text
    assert [name for name in parameters(cls) if not described.get(name)] == []
    names_described = docstring(type(cls.__name__, (), {"__doc__": cls.__doc__}))[1]
    public = {name for name in names_described if not hasattr(cls, name)} - set(parameters(cls))
    assert public == set()


def test_every_verb_and_option_of_the_command_line_has_help() -> None:
    """Hidden options need none: they only name their replacement."""
    silent = [
        f"{verb} {parameter.name}"
        for verb, command in verbs()
        for parameter in command.params
        if not parameter.hidden and not parameter.help
    ]
    assert silent == []


def _properties(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        properties = value.get("properties")
        if isinstance(properties, dict) and all(isinstance(p, dict) for p in properties.values()):
            yield from properties.items()
        value = [*value.values()]
    for item in value if isinstance(value, list) else ():
        yield from _properties(item)


def test_the_schema_describes_every_property() -> None:
    tree: Any = schema()
    properties = [*_properties(tree)]
    assert len(properties) > 700
    assert [name for name, value in properties if not value.get("description")] == []
    [bm25] = [
        option
        for option in tree["$defs"]["retriever"]["anyOf"]
        if option.get("properties", {}).get("class", {}).get("const") == "BM25"
    ]
    assert bm25["properties"]["k"]["default"] == 10
    assert bm25["properties"]["k"]["description"] == "Number of hits per question."


def test_the_schema_refuses_mistakes() -> None:
    tree: Any = parse((ROOT / "pipelines.yaml").read_text(encoding="utf-8"), None).plain()
    validator = Draft202012Validator(schema())
    short = {"reader": "Lead", "combiner": "./own.py:Mine"}
    metrics = ["f1", {"class": "recall"}, "./own.py:Mine"]
    task = {"class": "JsonLines", "path": "x", "metrics": metrics}
    assert validator.is_valid({"pipelines": {"short": short}, "tasks": {"rows": task}})
    assert not validator.is_valid({"tasks": {"rows": {**task, "metrics": ["f2"]}}})
    assert not validator.is_valid({"pipelines": {"short": {"reader": "Led"}}})
    tree["pipelines"]["default"]["retriever"]["retriever"]["kk"] = 3
    assert not validator.is_valid(tree)


def test_list_shows_a_class_with_its_parameters() -> None:
    shown = " ".join(leporello("list", "BM25").stdout.split())
    assert "b: float >= 0 <= 1 = 0.75 Length penalty of long chunks; 0 for no penalty." in shown
    assert "retriever: {class: BM25}" in shown
    page = json.loads(leporello("list", "leporello.readers.Lead", "--json").stdout)
    assert page["kind"] == "reader"
    assert page["yaml"] == "reader: {class: leporello.readers.Lead}"
    assert page["parameters"]["words"]["default"] == "60"
    assert "worker_gpus: float >= 0 = 0.0" in leporello("list", "placement").stdout
    assert "did you mean 'BM25'" in leporello("list", "Bm25", status=2).stderr
    assert "there is no file" in leporello("list", "./none.py:Mine", status=2).stderr
