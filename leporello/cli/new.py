"""The verb `new`: a package of one's own, whose tests pass at once."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from leporello.core.errors import UserError, did_you_mean
from leporello.core.protocols import KINDS, LOADER, METRIC, TASK, Kind

_KINDS = {kind.key: kind for kind in (*KINDS.values(), LOADER, TASK, METRIC)}
_TEMPLATES = Path(__file__).parent / "templates"
_SCHEMA = "# yaml-language-server: $schema=leporello.schema.json\n"
_YAML = {
    **dict.fromkeys(KINDS, "pipelines:\n  {snake}: {{extends: best-sentence, {kind}: {use}}}\n"),
    "loader": "tasks: # rows.jsonl names files that it loads, docs/files.md\n  {snake}:\n"
    "    class: JsonLines\n    path: rows.jsonl\n    loader: {use}\n",
    "task": "tasks:\n  {snake}: {{class: {name}, path: tests/texts}}\n",
    "metric": "tasks:\n  {snake}: {{class: Sample, metrics: [f1, {use}]}}\n",
}
_TEXTS = {"tests/texts/one.txt": "Dear Ada\nThe pump runs.\n", "tests/texts/two.txt": "Dear Ina\n"}


def new(
    kind: Annotated[str, typer.Argument(help=", ".join(_KINDS))],
    name: Annotated[str, typer.Argument(help="Name of the class, such as LongestChunks")],
) -> None:
    """Writes a package with a class of your own: its code, test, README and CI file.

    It lies in a new folder here. Its tests pass at once; installed, it is known by its short name.
    """
    folder = Path(f"leporello-{_snake(name).replace('_', '-')}")
    files = package(kind, name)
    if folder.exists():
        raise UserError(f"{folder} is there already, and is left as it is: move it, or take a name")
    for place, text in files.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        typer.echo(path)
    typer.echo(f"try it: cd {folder} && pytest; README.md tells how it is installed and used")


def package(key: str, name: str) -> dict[str, str]:
    """Returns the files of a package by their places in it.

    Args:
        key: Kind of the class: `retriever`.
        name: Name of the class.

    Raises:
        UserError: There is no such kind, or no class can have that name.
    """
    if key not in _KINDS:
        raise UserError(f"there is no kind {key!r}{did_you_mean(key, _KINDS)}")
    kind, snake = _KINDS[key], _snake(name)
    _check(name, kind)
    use = f"{{class: {name}}}"
    module = f"leporello_{snake}"
    yaml = _SCHEMA + _YAML[key].format(snake=snake, kind=key, use=use, name=name)
    data = 'partial({name}, Path(__file__).parent / "texts")' if kind is TASK else "{name}"
    imports = "from functools import partial\nfrom pathlib import Path\n\n" if kind is TASK else ""
    words = {
        "kind": key, "name": name, "snake": snake, "module": module, "group": kind.group,
        "project": module.replace("_", "-"), "yaml": yaml, "make": data.format(name=name),
        "contract": f"{key.capitalize()}Contract", "imports": imports,
    }  # fmt: skip
    templates = {
        "pyproject.toml": "pyproject.toml.txt",
        "README.md": "README.md",
        f"{module}.py": f"{key}.py.txt",
        f"tests/test_{snake}.py": "test.py.txt",
        ".github/workflows/test.yml": "test.yml.txt",
    }
    written = {place: _filled(template, words) for place, template in templates.items()}
    return written | {f"{snake}.yaml": yaml} | (_TEXTS if kind is TASK else {})


def _filled(template: str, words: dict[str, str]) -> str:
    return Template((_TEMPLATES / template).read_text(encoding="utf-8")).substitute(words)


def _snake(name: str) -> str:
    """Returns a class's name in small letters: `LongestChunks` is `longest_chunks`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _check(name: str, kind: Kind) -> None:
    """Refuses what cannot be the name of a class, or is one already."""
    from leporello.core.environment.classes import built_ins, plug_ins

    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name) or "__" in name:
        raise UserError(
            f"{name!r} is no name of a class: letters and digits, such as LongestChunks"
        )
    if not name[0].isupper():
        likely = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
        raise UserError(f"{name!r} must begin with a capital, as classes do; did you mean {likely}")
    taken = {*built_ins(kind), *plug_ins().get(kind.group, {})}
    if name in taken:
        raise UserError(f"there is a {kind.key} {name!r} already: take another name")
