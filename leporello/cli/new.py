"""The verb `new`: a package for a plug-in, with tests that pass."""

import keyword
import re
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from leporello.core.errors import UserError, no_such
from leporello.core.protocols import KINDS, LOADER, METRIC, TASK, Kind

_KINDS = {kind.key: kind for kind in (*KINDS.values(), LOADER, TASK, METRIC)}
_TEMPLATES = Path(__file__).parent / "templates"
_SCHEMA = "# yaml-language-server: $schema=leporello.schema.json\n"
_YAML = {
    **dict.fromkeys(KINDS, "pipelines:\n  {snake}: {{extends: best-sentence, {kind}: {use}}}\n"),
    "loader": "tasks: # rows.jsonl names the files to load, see docs/files.md\n  {snake}:\n"
    "    class: JsonLines\n    path: rows.jsonl\n    loader: {use}\n",
    "task": "tasks:\n  {snake}: {{class: {name}, path: tests/texts}}\n",
    "metric": "tasks:\n  {snake}: {{class: Sample, metrics: [f1, {use}]}}\n",
}
_TEXTS = {"tests/texts/one.txt": "Dear Ada\nThe pump runs.\n", "tests/texts/two.txt": "Dear Ina\n"}


def new(
    kind: Annotated[str, typer.Argument(help=f"Kind of the class: {', '.join(_KINDS)}.")],
    name: Annotated[str, typer.Argument(help="Name of the class, such as LongestChunks.")],
) -> None:
    """Create a package for a class of your own, with code, test, README and CI file.

    The package is written to a new folder in the current directory, and its tests pass. Once it is
    installed, a config can use the class by its name, without a path.
    """
    folder = Path(f"leporello-{_snake(name).replace('_', '-')}")
    files = package(kind, name)
    if folder.exists():
        raise UserError(f"{folder} exists already: move it, or choose another name")
    for file, text in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        typer.echo(path)
    typer.echo(f"README.md explains how to install and use it; to test it:\ncd {folder} && pytest")


def package(key: str, name: str) -> dict[str, str]:
    """Returns the contents of the package's files, by their paths in the package."""
    if key not in _KINDS:
        raise UserError(no_such("kind", key, _KINDS))
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
    sources = {path: (_TEMPLATES / name).read_text("utf-8") for path, name in templates.items()}
    files = {path: Template(source).substitute(words) for path, source in sources.items()}
    return files | {f"{snake}.yaml": yaml} | (_TEXTS if kind is TASK else {})


def _snake(name: str) -> str:
    """Returns the name of a class in snake case: `LongestChunks` becomes `longest_chunks`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _check(name: str, kind: Kind) -> None:
    """Raises UserError if a name is not valid for a class, or belongs to an existing class."""
    from leporello.core.environment.classes import built_ins, plug_ins

    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name) or "__" in name:
        raise UserError(
            f"{name!r} is not a valid class name: use letters and digits, such as LongestChunks"
        )
    if not name[0].isupper():
        likely = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
        raise UserError(f"{name!r} must begin with a capital letter; did you mean {likely}")
    if name in {*built_ins(kind), *plug_ins().get(kind.group, {})}:
        raise UserError(f"a {kind.key} {name!r} exists already: choose another name")
