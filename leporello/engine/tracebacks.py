"""Tracebacks for people: the same wherever the process ran that met the error."""

from __future__ import annotations

import traceback
from pathlib import Path

import leporello
from leporello.core.environment.classes import REMAPPED_PATHS


def trace_of(error: BaseException) -> str:
    """Returns an error's traceback: Leporello's own files from their package on, others in full."""
    trace = "".join(traceback.format_exception(error))
    folder = Path(leporello.__file__).parent
    trace = trace.replace(f'File "{folder}/', f'File "{folder.name}/')
    for original, copy in REMAPPED_PATHS.items():
        trace = trace.replace(f'File "{copy}"', f'File "{original}"')
    return trace
