"""What is told of classes and options: in docstrings, to editors, in the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from command_line import ROOT, leporello
from jsonschema import Draft202012Validator

from leporello.cli import application
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
    """In its own docstring or in that of a class that it inherits from, and nothing else is."""
    text, described = docstring(cls)
    assert text
    assert [name for name in parameters(cls) if not described.get(name)] == []
    own = docstring(type(cls.__name__, (), {"__doc__": cls.__doc__}))[1]
    public = {name for name in own if not hasattr(cls, name)} - set(parameters(cls))
    assert public == set()


def _commands(group: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    for verb, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{verb} ")
        else:
            yield f"{name}{verb}", command


def test_every_verb_and_option_of_the_command_line_has_help() -> None:
    """Hidden ones, which only say what replaced them, have none."""
    silent = [
        f"{verb} {parameter.name}"
        for verb, command in _commands(typer.main.get_command(application()))
        for parameter in command.params
        if not parameter.hidden and not parameter.help
    ]
    assert silent == []


def _properties(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        found = value.get("properties")
        if isinstance(found, dict) and all(isinstance(one, dict) for one in found.values()):
            yield from found.items()
        value = [*value.values()]
    for item in value if isinstance(value, list) else ():
        yield from _properties(item)


def test_the_schema_describes_every_property() -> None:
    """With its default, where there is one that a file can say."""
    made: Any = schema()
    found = [*_properties(made)]
    assert len(found) > 700
    assert [name for name, value in found if not value.get("description")] == []
    [bm25] = [
        one
        for one in made["$defs"]["retriever"]["anyOf"]
        if one.get("properties", {}).get("class", {}).get("const") == "BM25"
    ]
    assert bm25["properties"]["k"]["default"] == 10
    assert bm25["properties"]["k"]["description"] == "Number of chunks a question gets."


def test_the_schema_refuses_mistakes() -> None:
    """In classes, parameters and metrics; names of other modules are allowed."""
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


def test_list_shows_a_class_and_what_its_parameters_mean() -> None:
    """By plain and by dotted name, for people and for programs; settings of pipelines too."""
    shown = " ".join(leporello("list", "BM25").stdout.split())
    assert "b: float >= 0 <= 1 = 0.75 Length penalty: how much long chunks are marked" in shown
    assert "retriever: {class: BM25, k: 3}" in shown
    told = json.loads(leporello("list", "leporello.readers.Lead", "--json").stdout)
    assert told["kind"] == "reader"
    assert told["yaml"] == "reader: {class: leporello.readers.Lead}"
    assert told["parameters"]["words"]["default"] == "60"
    assert "worker_gpus: float >= 0 = 0.0" in leporello("list", "placement").stdout
    assert "did you mean 'BM25'" in leporello("list", "Bm25", status=2).stderr
    assert "there is no file" in leporello("list", "./none.py:Mine", status=2).stderr
