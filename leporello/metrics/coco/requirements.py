"""What some metrics need beside the package itself, found before any work."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from leporello.core.environment.extras import require
from leporello.core.errors import UserError


def library(module: str, metric: str) -> Path:
    """Returns the folder of an optional library.

    Args:
        module: Name of the module that is imported.
        metric: The metric that needs it, for the message.

    Raises:
        UserError: It is not installed; the message names the extra.
    """
    require(f"the metric {metric!r}", module)
    spec = importlib.util.find_spec(module)
    assert spec is not None
    return Path(next(iter(spec.submodule_search_locations or ())))


def java(metric: str) -> str:
    """Returns the program that runs Java.

    Raises:
        UserError: There is none.
    """
    program = shutil.which("java")
    if program is None:
        raise UserError(
            f"the metric {metric!r} runs Java programs, and there is no `java` on the path;"
            " install a Java runtime (8 to 17 are known to do), for instance"
            " `apt install default-jre-headless`, or take another metric"
        )
    return program
