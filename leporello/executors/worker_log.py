"""What a worker tells people, kept in the run's folder as well."""

from __future__ import annotations

import logging
from io import TextIOWrapper
from pathlib import Path

from leporello.core.secrets import redact


def keep_log(path: Path) -> None:
    """Has what this process tells be added to a file, which is made when there is anything."""
    handler = _LogFile(path, encoding="utf-8", errors="backslashreplace", delay=True)
    handler.setFormatter(_WithoutKeys("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)


class _LogFile(logging.FileHandler):
    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).parent.mkdir(parents=True, exist_ok=True)
        return super()._open()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 -- logging's name
        """Passes over a full disk, which is told of where results are written."""


class _WithoutKeys(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))
