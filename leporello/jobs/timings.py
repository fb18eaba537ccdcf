"""How long stages took on this machine: what `plan` estimates from.

One line a run and pipeline in `LEPORELLO_CACHE/timings.jsonl`; the last ones of each stage count.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from statistics import median

from leporello.config import PipelineSpec
from leporello.core.hashing import digest
from leporello.core.protocols import ANSWER
from leporello.core.records import JSON

_FILE = "timings.jsonl"
_LAST = 10  # runs that an estimate is made from

_log = logging.getLogger("leporello")


def selecting_key(pipeline: PipelineSpec) -> str:
    """Returns what tells pipelines apart that divide and select otherwise."""
    stages = {key: pipeline.stages[key].resolved() for key in ("chunker", "retriever")}
    return digest({**stages})


def reading_key(pipeline: PipelineSpec, role: str = ANSWER) -> str:
    """Returns what tells pipelines apart that read otherwise, in a role."""
    return digest(pipeline.readers[role].resolved())


def sizes_key(pipeline: PipelineSpec) -> str:
    """Returns what the sizes that its readers found themselves are kept under in a run."""
    return " ".join(reading_key(pipeline, role) for role in pipeline.readers)


def record_timing(root: Path, key: str, unit: str, count: int, seconds: float) -> None:
    """Notes in the cache that so many units took so long; warns if it cannot be written."""
    if not count:
        return
    path = root / _FILE
    row: dict[str, JSON] = {"stage": key, "unit": unit, "count": count, "seconds": seconds}
    line = json.dumps(row).encode() + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab", buffering=0) as file:
            file.write(line)  # one call: lines of two processes do not mix
    except OSError as error:
        _log.warning("timings are not kept for `plan`: %s: %s", path, error.strerror)


def timed_rates(root: Path) -> Mapping[tuple[str, str], float]:
    """Returns the seconds of one unit by stage and unit: the median of the last runs here."""
    seconds: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    with suppress(OSError):  # none there, or none that may be read: nothing is known
        for line in (root / _FILE).read_bytes().splitlines():
            with suppress(ValueError, KeyError, TypeError, ZeroDivisionError):  # torn by a kill
                row = json.loads(line)
                seconds[row["stage"], row["unit"]].append(row["seconds"] / row["count"])
    return {key: median(values[-_LAST:]) for key, values in seconds.items()}
