"""Builds a sweep that replaces the retriever of a pipeline by oracles and by simple baselines."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.config import Config, PipelineSpec, load_config
from leporello.core.errors import UserError, did_you_mean
from leporello.core.records import JSON
from leporello.jobs.options import JobOptions

# Classes of retrievers, best first: oracles, all chunks, then random and first chunks.
ORACLES = ("Oracle", "OracleAnswer", "All", "Random", "First")
_WITHOUT_K = ("All",)  # `All` returns every chunk, so a number of hits has no meaning for it


@dataclass(frozen=True, slots=True)
class OracleSweep:
    """A sweep over a pipeline's retriever and the oracles."""

    pipeline: str
    override: str  # value of a `--set` that sweeps over the retrievers
    note: str  # note for the user, or nothing


def oracle_sweep(options: JobOptions) -> OracleSweep:
    """Returns the sweep of the one pipeline; oracles return as many chunks as its retriever."""
    loaded = load_config(options.config, options.settings, options.pipelines)
    [name] = options.pipelines or [loaded.default_pipeline]
    points = _points(loaded, name)
    # The same number of hits, so that oracles do not gain by reading more (decision 25).
    counts = list(dict.fromkeys(filter(None, map(_count, points))))
    # With the retriever's parameters, so that a ladder changes only the retriever (decision 25).
    configured = [point.stages["retriever"].configured() for point in points]
    retrievers = dict.fromkeys(
        map(json.dumps, [*configured, *(_oracle(oracle, counts) for oracle in ORACLES)])
    )
    note = "" if counts else "the retriever has no k: the oracles use their default k"
    return OracleSweep(name, f"retriever={','.join(retrievers)}", note)


def _points(loaded: Config, name: str) -> Sequence[PipelineSpec]:
    if name not in loaded.pipelines:
        point = "; name the pipeline, and choose the point with --set" if "@" in name else ""
        hint = point or did_you_mean(name, loaded.pipelines)
        raise UserError(f"there is no pipeline {name!r}{hint}")
    return loaded.pipelines[name]


def _count(point: PipelineSpec) -> int | None:
    """Returns the number of chunks that a retriever returns: its `k`, or a nested retriever's."""
    # The outermost first: the k of `Fusion` counts, not those of its retrievers.
    for spec in point.stages["retriever"].all_specs():
        k = spec.resolved().get("k")
        if isinstance(k, int):
            return k
    return None


def _oracle(name: str, counts: Sequence[int]) -> dict[str, JSON]:
    if name in _WITHOUT_K or not counts:
        return {"class": name}
    return {"class": name, "k": counts[0] if len(counts) == 1 else [*counts]}
