"""What other programs read of a run: tables, TREC's files, leaderboards' CSVs, trackers.

It reads finished runs and changes nothing in them. Begin with `formats`.
"""

from __future__ import annotations

from leporello.analysis.export.formats import write_parquet, write_trec

__all__ = ["write_parquet", "write_trec"]
