"""Reports on finished runs: one HTML file with tables, plots and every example.

It reads the files of runs through `analysis`, and the tasks' data if they still exist. Begin with
`report`.
"""

from leporello.report.report import Report, report

__all__ = ["Report", "report"]
