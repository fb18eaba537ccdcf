"""Tests that the wheel contains one package that works as in a checkout."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from command_line import ROOT

from leporello.cache.dependencies import fingerprint
from leporello.core import __version__
from leporello.readers import BestSentence
from leporello.retrievers import BM25

FINGERPRINT = (
    "import json, leporello; from leporello.cache.dependencies import fingerprint;"
    "from leporello.readers import BestSentence; from leporello.retrievers import BM25;"
    "print(json.dumps([dict(fingerprint(BestSentence())), dict(fingerprint(BM25()))]))"
)
BUILD = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"


def _python(*arguments: str, folder: Path, path: Path | None = None) -> str:
    """Runs Python outside the checkout; returns its output."""
    variables = {"PYTHONPATH": str(path)} if path else {}
    process = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env={**os.environ, **variables},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="the extra dev is older than this test")
    folder = tmp_path_factory.mktemp("wheel")
    _python("-c", BUILD, str(folder), folder=ROOT)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def unpacked(wheel: Path) -> Path:
    """Unpacks the wheel; its dependencies are those of this environment."""
    folder = wheel.parent / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)  # built above, from this project
    return folder


def test_a_wheel_contains_one_package_and_its_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    information = f"leporello-{__version__}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"leporello", information}
    for stage in ("chunkers", "enrichers", "retrievers", "readers", "combiners"):
        sources = {str(path.relative_to(ROOT)) for path in (ROOT / stage).rglob("*.py")}
        assert {f"leporello/{name}" for name in sources} <= {*names}
    files = {"leporello/py.typed", "leporello/pipelines.yaml", f"{information}/licenses/LICENSE"}
    assert files <= {*names}


def test_a_wheel_runs_beside_packages_of_the_same_names(unpacked: Path, tmp_path: Path) -> None:
    for stage in ("readers", "chunkers"):
        (tmp_path / stage).mkdir()
        (tmp_path / stage / "__init__.py").write_text("raise SystemExit('theirs')\n")
    output = _python("-m", "leporello", "run", "best-sentence", folder=tmp_path, path=unpacked)
    assert "best-sentence" in output
    assert (tmp_path / "runs").is_dir()


def test_a_stages_fingerprint_is_that_of_the_checkout(unpacked: Path, tmp_path: Path) -> None:
    """A fingerprint depends on names of modules and on content, not on paths."""
    installed = _python("-c", FINGERPRINT, folder=tmp_path, path=unpacked)
    assert json.loads(installed) == [fingerprint(stage) for stage in (BestSentence(), BM25())]
    assert str(unpacked) not in installed
