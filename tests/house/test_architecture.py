"""Rules of the house that no single file shows."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ROOT

from leporello.core.protocols import KINDS


def test_a_directory_at_the_top_is_a_key_of_a_pipeline() -> None:
    """`ls` is the pipeline, beside the machinery, the tests and what is around them."""
    around = {"leporello", "recipes", "tests", "benchmarks", "docs"}
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages - around == {f"{key}s" for key in KINDS}


MODELS = (
    "torch", "transformers", "sklearn", "scipy", "faiss", "sentence_transformers", "langchain_core",
)  # fmt: skip
NETWORK = ("httpx2", "aiohttp", "huggingface_hub")
ARRAYS = ("numpy", "lxml", "pypdfium2", "fsspec")
CONFIG = ("pydantic", "rich", "yaml", "asyncio", "importlib.metadata")
RUN = ["run", "best-sentence", "--task", "sample", "--limit", "1", "--workers", "0", "--no-cache"]


@pytest.mark.parametrize(
    ("command", "heavy"),
    [
        (["--help"], (*MODELS, *NETWORK, *ARRAYS, *CONFIG)),
        (["list"], (*MODELS, *NETWORK, *ARRAYS)),
        (["check"], (*MODELS, *NETWORK, *ARRAYS)),
        (["schema"], (*MODELS, *NETWORK, *ARRAYS)),
        (RUN, (*MODELS, *NETWORK, "fsspec")),
    ],
    ids=lambda given: given[0],
)
def test_a_verb_imports_no_library_that_it_does_not_use(
    command: list[str], heavy: tuple[str, ...], tmp_path: Path
) -> None:
    """Looking around needs no arrays and no network, and a reader without a model no torch."""
    if command == RUN:
        command = [*RUN, "--out", str(tmp_path / "out")]
    script = (
        "import sys; from leporello.cli import main; sys.argv[1:] = sys.argv[1:]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        f"sys.exit(str([name for name in {heavy!r} if name in sys.modules] or ''))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *command],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr.strip() == ""


@pytest.mark.parametrize("name", ["leporello", "leporello.api"])
def test_public_names_are_all_there(name: str) -> None:
    """What is exported exists, sorted."""
    module = importlib.import_module(name)
    assert module.__all__ == sorted(module.__all__)
    assert all(hasattr(module, exported) for exported in module.__all__)
