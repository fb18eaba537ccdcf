"""The papers' tables: published numbers beside those of runs.

It reads finished runs and the data files in `published/`, and starts nothing. What a suite is,
names of tasks and pipelines, stands in `pipelines.yaml`, and is read by `config/suites`. Begin with
`tables`; `cells` has the scores of runs and the papers' numbers.
"""

from __future__ import annotations

from leporello.suites.cells import check_published, published_of
from leporello.suites.tables import SuiteTable, suite_tables

__all__ = ["SuiteTable", "check_published", "published_of", "suite_tables"]
