"""The declarations that come with Leporello."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def built_in_path() -> Path:
    """Returns the built-in pipelines.yaml: packed with the package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    packed = package / "pipelines.yaml"
    return packed if packed.exists() else package.parent / "pipelines.yaml"
