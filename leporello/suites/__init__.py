"""Papers' tables, with published numbers next to those of runs.

The package reads finished runs and the data files in `published/`, and starts nothing. Begin with
`tables`.
"""

from leporello.suites.cells import check_published, published_of
from leporello.suites.tables import SuiteTable, suite_tables

__all__ = ["SuiteTable", "check_published", "published_of", "suite_tables"]
