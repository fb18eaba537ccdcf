"""Tests of rules for the layout of the repository: rooms, imports, sizes and class names."""

import ast
import importlib
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path

import pytest
from command_line import ROOT

from leporello.core.protocols import KINDS

# A room may import only the rooms before it.
ROOMS = (
    "core", "models", "text", "storage", "loaders", "metrics", "tasks", "cache", "config", "engine",
    "jobs", "executors", "testing", "runs", "training", "analysis", "tuning", "suites", "report",
    "serving", "adapters", "cli",
)  # fmt: skip
STAGES = ("chunkers", "enrichers", "retrievers", "readers", "combiners")
ALLOWED = {
    **{room: {*ROOMS[: number + 1]} for number, room in enumerate(ROOMS)},
    **{stage: {"core", "models", "text", stage} for stage in STAGES},
}
MOST = 16  # modules of a folder, without `__init__`


def modules(room: str) -> list[Path]:
    """Returns the files of a room, or of the folder of a stage."""
    folder = ROOT / room if room in STAGES else ROOT / "leporello" / room
    return sorted(folder.rglob("*.py"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    kinds = (ast.Import, ast.ImportFrom, ast.ClassDef)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return tuple(node for node in ast.walk(tree) if isinstance(node, kinds))


def imports(path: Path) -> Iterator[str]:
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def name_of(path: Path) -> str:
    """Returns the name of a module; an `__init__` has the name of its package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "leporello" else ("leporello", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(path: Path, names: Collection[str]) -> Iterator[str]:
    """Yields the modules among `names` that a file imports, also in functions and for types."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in names else node.module for name in inner)


def rooms_of(path: Path) -> set[str]:
    """Returns the rooms and stages from which the file imports modules."""
    names = (name.split(".") for name in imports(path))
    return {name[1] for name in names if name[0] == "leporello" and len(name) > 1} & {*ALLOWED}


def test_a_room_imports_only_rooms_before_it() -> None:
    """No room imports stages, since these are found by their names in YAML."""
    guilty = {str(p): rooms_of(p) - ALLOWED[room] for room in ALLOWED for p in modules(room)}
    assert {path: wrong for path, wrong in guilty.items() if wrong} == {}


def test_no_modules_import_each_other() -> None:
    top = [*(ROOT / "leporello").glob("*.py")]
    files = {name_of(path): path for path in [*chain.from_iterable(map(modules, ALLOWED)), *top]}
    graph = {name: {*imported_modules(path, files)} - {name} for name, path in files.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"circular imports: {' <- '.join(error.args[1])}")


def test_no_folder_has_too_many_modules() -> None:
    """A large folder must be divided into folders by theme."""
    counts: dict[str, int] = defaultdict(int)
    for path in (path for room in ALLOWED for path in modules(room)):
        counts[str(path.parent)] += path.name != "__init__.py"
    assert {folder: count for folder, count in counts.items() if count > MOST} == {}


def test_the_package_contains_only_rooms_and_entry_points() -> None:
    top = ROOT / "leporello"
    folders = {path.name for path in top.iterdir() if any(path.glob("*.py"))}
    assert folders == {*ROOMS, *STAGES}
    files = {"__init__.py", "__main__.py", "api.py", "py.typed", "pipelines.yaml"}
    assert {path.name for path in top.iterdir() if path.is_file()} <= files


def test_only_the_command_line_imports_rich_and_typer() -> None:
    """Other programs use the rest as a library, which must not print."""
    files = chain.from_iterable(modules(room) for room in ALLOWED if room != "cli")
    packages = {str(path): {name.split(".")[0] for name in imports(path)} for path in files}
    assert [path for path, names in packages.items() if names & {"rich", "typer"}] == []


def test_no_two_classes_share_a_name() -> None:
    places = defaultdict[str, list[str]](list)
    for room in ALLOWED:
        for path in modules(room):
            for node in nodes(path):
                if isinstance(node, ast.ClassDef):
                    places[node.name.lstrip("_")].append(f"{path}:{node.lineno}")
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_every_package_has_a_docstring() -> None:
    folders = {path.parent for room in ALLOWED for path in modules(room)}
    texts = {folder: (folder / "__init__.py").read_text(encoding="utf-8") for folder in folders}
    assert [
        str(folder) for folder, text in texts.items() if not ast.get_docstring(ast.parse(text))
    ] == []


def test_every_other_top_level_package_is_a_key_of_a_pipeline() -> None:
    """A listing of the repository shows the stages of a pipeline."""
    around = {"leporello", "recipes", "tests", "benchmarks", "docs"}
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages - around == {f"{key}s" for key in KINDS}


MODELS = (
    "torch", "transformers", "sklearn", "scipy", "faiss", "sentence_transformers", "langchain_core",
    "langchain_text_splitters", "tokenizers",
)  # fmt: skip
NETWORK = ("httpx2", "aiohttp", "huggingface_hub")
ARRAYS = ("numpy", "lxml", "pypdfium2", "fsspec")
CONFIG = ("pydantic", "rich", "yaml", "asyncio", "importlib.metadata")
RUN = ["run", "best-sentence", "--task", "sample", "--limit", "1", "--workers", "0", "--no-cache"]
VERBS = (
    (["--help"], (*MODELS, *NETWORK, *ARRAYS, *CONFIG)),
    (["list"], (*MODELS, *NETWORK, *ARRAYS)),
    (["check"], (*MODELS, *NETWORK, *ARRAYS)),
    (["schema"], (*MODELS, *NETWORK, *ARRAYS)),
    ([*RUN, "--out", "out"], (*MODELS, *NETWORK, "fsspec")),
)
SCRIPT = """
import json, sys
from leporello.cli import main
for words, heavy in json.loads(sys.argv.pop()):
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as end:
        assert not end.code, words
    loaded = [name for name in heavy if name in sys.modules]
    assert not loaded, (words, loaded)
"""


@pytest.mark.integration
def test_a_verb_imports_no_library_that_it_does_not_use(tmp_path: Path) -> None:
    """Verbs that only list import neither arrays nor network; a run without a model no torch."""
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(VERBS)], cwd=tmp_path, check=False,
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("name", ["leporello", "leporello.api"])
def test_exported_names_exist_and_are_sorted(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__all__ == sorted(module.__all__)
    assert all(hasattr(module, exported) for exported in module.__all__)
