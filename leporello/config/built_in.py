"""Reads the built-in declarations of pipelines, tasks and suites.

`pipelines.yaml` contains the declarations for newcomers, the folder `papers` one file per paper.
The table `papers/names.json` lists every name with its file, so that a command opens only the files
that it needs; `config.reference.catalogue` writes the table, and a test checks it.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from leporello.core.environment.classes import Lazy
from leporello.core.errors import UserError
from leporello.core.yaml.tree import Tree, read_tree

SECTIONS = ("pipelines", "tasks", "suites")


@cache
def built_in_path() -> Path:
    """Returns the built-in pipelines.yaml: inside the package, or next to it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    packed = package / "pipelines.yaml"
    return packed if packed.exists() else package.parent / "pipelines.yaml"


@cache
def built_in_files() -> tuple[Path, ...]:
    """Returns all built-in files, pipelines.yaml first."""
    papers = built_in_path().parent / "papers"
    return (built_in_path(), *sorted(papers.glob("*.yaml")))


@cache
def built_in_names() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """Returns the table of names: the file and the row of `list`, by section and name."""
    path = built_in_path().parent / "papers" / "names.json"
    names: dict[str, dict[str, dict[str, Any]]] = json.loads(path.read_text("utf-8"))
    return names


@cache
def built_in_tree(file: str) -> Tree:
    """Returns a built-in file by its name in the table."""
    return read_tree(built_in_path().parent / file)


class Entries(Lazy[Tree]):
    """Entries of one section; `own` has those of the user, which override built-in ones."""

    def __init__(self, key: str) -> None:
        super().__init__(dict.fromkeys(built_in_names()[key]), self._built_in)
        self.own: dict[str, Tree] = {}
        self._key = key

    def add(self, entries: Mapping[str, Tree]) -> None:
        """Adds entries of the user."""
        self.own |= entries
        self.ready |= entries
        self._names = dict.fromkeys([*self._names, *entries])

    def _built_in(self, name: str) -> Tree:
        file = built_in_names()[self._key][name]["file"]
        entry = built_in_tree(file).at(self._key).items.get(name)
        if entry is None or not isinstance(entry.value, dict):
            text = f"{built_in_path().parent / file}: {self._key} has no entry {name!r}, which"
            raise UserError(f"{text} papers/names.json lists: run `make names`")
        return entry
