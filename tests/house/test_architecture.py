"""Tests of rules for the layout of the repository and for imports."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ROOT

from leporello.core.protocols import KINDS


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
