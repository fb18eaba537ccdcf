"""Reports: finished runs as one HTML file, with plots and every example.

It reads runs' files by `analysis`, and the tasks' data where they are still there. Begin with
`report`, which gathers everything and writes it by the template beside it.
"""

from __future__ import annotations

from leporello.report.report import Report, report

__all__ = ["Report", "report"]
