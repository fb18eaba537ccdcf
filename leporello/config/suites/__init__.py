"""Suites: papers' tables in YAML, checked without importing classes of pipelines and tasks.

Begin with `suite`; `reading` reads suites from files.
"""

from __future__ import annotations

from leporello.config.suites.reading import check_names, read_suites, suite_named, suite_of
from leporello.config.suites.suite import (
    Suite,
    SuiteColumn,
    SuiteRow,
    SuiteSubmission,
    added_settings,
)

__all__ = [
    "Suite",
    "SuiteColumn",
    "SuiteRow",
    "SuiteSubmission",
    "added_settings",
    "check_names",
    "read_suites",
    "suite_named",
    "suite_of",
]
