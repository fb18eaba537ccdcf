"""Settings and fixtures that all tests share."""

import ast
import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# A test file that imports one of these at its top starts processes or runs networks.
_HEAVY = {
    "lookup_task", "misbehaving", "ray", "sentence_transformers", "subprocess", "tiny_encoders",
    "tiny_models", "tiny_questions", "torch", "transformers", "command_line.command",
    "command_line.leporello", "leporello.api.run", "leporello.api.train",
}  # fmt: skip

# Tests of the plug-in kit that start processes, metrics that call a Java program, and parametrized
# cases that take a second or more.
_INTEGRATION = (
    "test_another_process_gets_the_same",
    "test_a_killed_run_goes_on_to_the_same_results",
    "test_time_for_a_line_of_a_megabyte",
    "[meteor_coco]",
    "[Docx]",
)

# Without a deadline, no test depends on the speed of the machine.
settings.register_profile("tests", deadline=None)
settings.register_profile("fast", deadline=None, max_examples=20)

# One thread per process, as in a worker: last digits depend on the number of threads, and two busy
# processes with several threads are thirty times slower. Torch reads this when it is imported.
os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
# Without bytecode files, hundreds of processes would each compile the project for half a second,
# and each worker of pytest would compile the tests for seconds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# With `--workers 0`, stages of tests run in this process, as it takes long to start another one.
os.environ["LEPORELLO_UNSUPERVISED"] = "1"
gc.disable()  # until `pytest_collection_finish`
# Under nohup, processes that the tests start would ignore SIGHUP.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option `--fast`, which `make test-fast` uses."""
    parser.addoption("--fast", action="store_true", help="skip slow test files")


def pytest_configure(config: pytest.Config) -> None:
    """Loads the Hypothesis profile, which draws fewer examples with `--fast`."""
    settings.load_profile("fast" if config.getoption("--fast") else "tests")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skips test files with heavy imports, without importing them."""
    if not config.getoption("--fast") or not collection_path.name.startswith("test_"):
        return None
    return True if _imports(collection_path) & _HEAVY else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks integration tests that no decorator can mark, such as single parametrized cases."""
    for item in items:
        if any(name in item.name for name in _INTEGRATION):
            item.add_marker("integration")


def pytest_collection_finish() -> None:
    """Spares each garbage collection the objects of imports and of tests, which remain.

    A collection takes half a second with them, and each training asks for one.
    """
    gc.freeze()
    gc.enable()


def _imports(path: Path) -> set[str]:
    """Returns the imports at the top of a file: packages, and names with their modules."""
    imports = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            imports |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imports.add(node.module.partition(".")[0])
            imports |= {f"{node.module}.{alias.name}" for alias in node.names}
    return imports


@pytest.fixture(autouse=True, scope="session")
def environment_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Gives the tests a temporary cache, so that they neither read nor change the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEPORELLO_CACHE", str(tmp_path_factory.mktemp("cache")))
        # No test survives a power cut, and some ten thousand syncs would wait for the disk.
        patch.setattr("os.fsync", lambda _: None)
        yield


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives a test the empty cache `cache` in its temporary folder."""
    monkeypatch.setenv("LEPORELLO_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Function that returns the folder of a tiny model, such as `t5`, and saves it when needed."""
    from tiny_models import save  # imports torch, which is slow

    base = tmp_path_factory.mktemp("tiny-models")

    def folder_of(name: str) -> str:
        if not (base / name).exists():
            save(name, base / name)
        return str(base / name)

    return folder_of
