"""Durations of stages in past runs, from which `plan` estimates those of the next one.

`LEPORELLO_CACHE/timings.jsonl` has one line per run and stage; the last lines of a stage are used.
"""

import logging
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from statistics import median

from leporello.config import PipelineSpec
from leporello.core.files import append_rows, appended_rows
from leporello.core.hashing import digest
from leporello.core.protocols import ANSWER

_FILE = "timings.jsonl"
# Machines and libraries change, so older runs would mislead; the median ignores a busy one.
_LAST = 10  # runs that an estimate is based on
_log = logging.getLogger("leporello")


def selecting_key(pipeline: PipelineSpec) -> str:
    """Returns the key of a pipeline's chunking and retrieval: a hash of these stages."""
    stages = {key: pipeline.stages[key].resolved() for key in ("chunker", "retriever")}
    return digest({**stages})


def reading_key(pipeline: PipelineSpec, role: str = ANSWER) -> str:
    """Returns the key of a pipeline's reads in a role: a hash of the reader."""
    return digest(pipeline.readers[role].resolved())


def sizes_key(pipeline: PipelineSpec) -> str:
    """Returns the key of the micro-batch sizes that a pipeline's readers determined."""
    return " ".join(reading_key(pipeline, role) for role in pipeline.readers)


def record_timing(root: Path, key: str, unit: str, count: int, seconds: float) -> None:
    """Appends a timing to the file in the cache; warns if it cannot be written."""
    # A run that took everything from the cache shows nothing about the speed.
    if not count:
        return
    path = root / _FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        append_rows(path, {"stage": key, "unit": unit, "count": count, "seconds": seconds})
    except OSError as error:
        _log.warning("%s: timings for `plan` cannot be stored: %s", path, error.strerror)


def timed_rates(root: Path) -> Mapping[tuple[str, str], float]:
    """Returns the median seconds per unit in the last runs, by stage and unit."""
    rates: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for row in appended_rows(root / _FILE):
        with suppress(KeyError, TypeError, ZeroDivisionError):
            rates[row["stage"], row["unit"]].append(row["seconds"] / row["count"])
    # A median, since one run on a busy machine must not change the estimates.
    return {key: median(values[-_LAST:]) for key, values in rates.items()}
