"""Writes the manifest of a run: versions, limits, signatures of jobs, and the resolved config."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from leporello.core import __version__
from leporello.core.files import write_json
from leporello.core.records import JSON
from leporello.core.yaml.writing import write_yaml
from leporello.engine.database import FORM
from leporello.jobs.directory import RunDirectory

# For the reader of a run; the signature lists the versions that results depend on.
_LIBRARIES = (
    "faiss-cpu",
    "numpy",
    "scikit-learn",
    "sentence-transformers",
    "skops",
    "tokenizers",
    "torch",
    "transformers",
)


def write_manifest(
    directory: RunDirectory, jobs: Sequence[Mapping[str, Any]], limits: Mapping[str, JSON]
) -> None:
    """Writes manifest.json and run.yaml; keeps jobs and sizes of earlier runs in the directory.

    Args:
        directory: Directory of the run.
        jobs: Rows with `pipeline`, `task`, `examples` (None if unknown) and `signature`.
        limits: Limits of batches, shards and time.
    """
    new = {(job["pipeline"], job["task"]) for job in jobs}
    signatures = directory.jobs()
    earlier = [
        {"pipeline": job[0], "task": job[1], "examples": examples, "signature": signatures[job]}
        for job, examples in directory.expected().items()
        if job not in new
    ]
    rows = [*earlier, *jobs]
    manifest: dict[str, Any] = {
        **versions(),
        "stores": FORM,
        "limits": dict(limits),
        "sizes": directory.sizes(),
        "command": sys.argv,
        "jobs": rows,
    }
    resolved = {
        "default": {"pipeline": rows[0]["pipeline"], "task": rows[0]["task"]},
        "pipelines": {row["pipeline"]: row["signature"]["pipeline"] for row in rows},
        "tasks": {row["task"]: row["signature"]["task"] for row in rows},
    }
    write_json(directory.manifest, manifest)
    write_yaml(directory.config, resolved)


def versions() -> dict[str, JSON]:
    """Returns the versions of Leporello, Python, the platform and libraries."""
    return {
        "leporello": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "git": _git_revision(),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _git_revision() -> str:
    """Returns the git revision of Leporello's source; empty unless it is a checkout."""
    checkout = Path(__file__).parents[2]
    if not (checkout / ".git").exists():  # installed, perhaps inside a repository of the user
        return ""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- fixed arguments
    except OSError:  # git is not installed
        return ""
    return process.stdout.strip()
