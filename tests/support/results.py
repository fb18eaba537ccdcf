"""Results that a test has changed on purpose."""

from __future__ import annotations

import json
from pathlib import Path

from leporello.jobs.checksums import MERGED, checksums


def reseal(folder: Path) -> None:
    """Gives the results in a folder the checksums that they have now."""
    mark = json.loads((folder / MERGED).read_text())
    mark["sha256"] = checksums(folder, mark["sha256"])
    (folder / MERGED).write_text(json.dumps(mark))
