"""What every test has."""

from __future__ import annotations

import ast
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# A file that imports one of these at its top starts processes, or computes with networks.
_HEAVY = {
    "lookup_task", "misbehaving", "ray", "sentence_transformers", "subprocess", "tiny_encoders",
    "tiny_models", "tiny_questions", "torch", "transformers", "command_line.command",
    "command_line.leporello", "leporello.api.run", "leporello.api.train",
}  # fmt: skip

# Tests of the kit for plug-ins that start processes, metrics that ask a Java program, and cases of
# tests with parameters that take a second or more.
_INTEGRATION = (
    "test_another_process_gets_the_same",
    "test_a_killed_run_goes_on_to_the_same_results",
    "test_time_for_a_line_of_a_megabyte",
    "test_parts_of_another_library_are_stages",
    "told_with_their_file[verdicts",
    "[meteor_coco]",
    "[Docx]",
    "[f.pdf-scanned",
)

# No test depends on how fast the machine is.
settings.register_profile("tests", deadline=None)
settings.register_profile("fast", deadline=None, max_examples=20)

# One thread a process, as a worker has: last digits depend on threads, and two busy processes with
# several each slow each other down thirtyfold. Torch reads it when it is imported.
os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
# Hundreds of processes would compile the whole project anew, half a second each; and each worker
# of pytest the tests, which takes seconds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Tests' own stages work in the process of `--workers 0`: to start one takes longer than they take.
os.environ["LEPORELLO_UNSUPERVISED"] = "1"
# Under nohup what the tests start would take no SIGHUP.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that `make test-fast` gives."""
    parser.addoption("--fast", action="store_true", help="leave out files that integrate much")


def pytest_configure(config: pytest.Config) -> None:
    """Draws fewer examples with `--fast`."""
    settings.load_profile("fast" if config.getoption("--fast") else "tests")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out files that import what is heavy, before they import it."""
    if not config.getoption("--fast") or not collection_path.name.startswith("test_"):
        return None
    return True if _imports(collection_path) & _HEAVY else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests that integrate much, where no decorator can."""
    for item in items:
        if any(name in item.name for name in _INTEGRATION):
            item.add_marker("integration")


def _imports(path: Path) -> set[str]:
    """Returns what a file imports at its top: packages, and names with their modules."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.fixture(autouse=True, scope="session")
def cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps the user's own cache out of the tests, and the tests out of it."""
    before = os.environ.get("LEPORELLO_CACHE")
    os.environ["LEPORELLO_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["LEPORELLO_CACHE"]
    else:
        os.environ["LEPORELLO_CACHE"] = before
