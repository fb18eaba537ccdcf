"""Builds a sweep that replaces the retriever of a pipeline by oracles and by simple baselines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from leporello.config import Config, PipelineSpec, Spec, TaskSpec, load_config
from leporello.core.errors import UserError, did_you_mean
from leporello.core.records import JSON
from leporello.engine.task_examples import examples_of
from leporello.jobs.options import JobOptions

# Classes of retrievers, best first: oracles, all chunks, then random and first chunks.
ORACLES = ("Oracle", "OracleAnswer", "All", "Random", "First")
# `All` returns every chunk, so a number of hits has no meaning for it.
_WITHOUT_K = ("All",)
_NEEDS = {"Oracle": "gold evidence", "OracleAnswer": "references"}


@dataclass(frozen=True, slots=True)
class OracleSweep:
    """A sweep over a pipeline's retriever and the oracles."""

    pipeline: str
    override: str  # value of a `--set` that sweeps over the retrievers
    notes: tuple[str, ...]  # notes for the user, such as oracles that are left out


def oracle_sweep(options: JobOptions) -> OracleSweep:
    """Returns the sweep of a pipeline; oracles return the same number of chunks as its retriever.

    The tasks' data are read, to leave out oracles whose gold data no task has.

    Args:
        options: Options with at most one pipeline, which is not a point of a sweep.

    Raises:
        UserError: A mistake of the user's.
    """
    loaded = load_config(options.config, options.settings, options.pipelines)
    [name] = options.pipelines or [loaded.default_pipeline]
    points = _points(loaded, name)
    chosen = {task.name: task for p in points for task in loaded.select_tasks(p, options.tasks)}
    read_tasks = [
        task.with_split(options.split) if options.split else task for task in chosen.values()
    ]
    notes_by_oracle = dict(_unusable_oracles(read_tasks, options.limit))
    # The same number of hits, so that oracles do not gain by reading more (decision 25).
    counts = list(dict.fromkeys(filter(None, map(_count, points))))
    oracles = [oracle for oracle in ORACLES if oracle not in notes_by_oracle]
    # With the retriever's parameters, so that a ladder changes only the retriever (decision 25).
    configured = [_as_configured(point.stages["retriever"]) for point in points]
    retrievers = dict.fromkeys(
        map(json.dumps, [*configured, *(_oracle(oracle, counts) for oracle in oracles)])
    )
    other_notes = () if counts else ("the retriever has no k: the oracles use their default k",)
    return OracleSweep(
        name, f"retriever={','.join(retrievers)}", (*notes_by_oracle.values(), *other_notes)
    )


def _points(loaded: Config, name: str) -> Sequence[PipelineSpec]:
    if name not in loaded.pipelines:
        point = "; name the pipeline, and choose the point with --set" if "@" in name else ""
        hint = point or did_you_mean(name, loaded.pipelines)
        raise UserError(f"there is no pipeline {name!r}{hint}")
    return loaded.pipelines[name]


def _unusable_oracles(tasks: Sequence[TaskSpec], limit: int | None) -> Iterator[tuple[str, str]]:
    """Yields the oracles whose gold data no task has, each with a note."""
    available = dict.fromkeys(_NEEDS, False)
    for task in tasks:
        # Only as far as the run would read, since gold data further on would not help it.
        for example in islice(examples_of(task.spec.build(), task.name), limit):
            available["Oracle"] |= bool(example.evidence)
            available["OracleAnswer"] |= bool(example.references)
            if all(available.values()):
                return
    names = ", ".join(task.name for task in tasks)
    for oracle, is_available in available.items():
        if not is_available:
            yield oracle, f"{oracle} is left out: no example of {names} has {_NEEDS[oracle]}"


def _count(point: PipelineSpec) -> int | None:
    """Returns the number of chunks that a retriever returns: its `k`, or a nested retriever's."""
    # The outermost first: the k of `Fusion` counts, not those of its retrievers.
    for spec in point.stages["retriever"].all_specs():
        k = spec.resolved().get("k")
        if isinstance(k, int):
            return k
    return None


def _as_configured(spec: Spec) -> dict[str, JSON]:
    resolved = spec.resolved()
    params = {name: _nested(value, resolved[name]) for name, value in spec.params.items()}
    return {"class": spec.name, **params}


def _nested(value: object, resolved: JSON) -> JSON:
    if isinstance(value, Spec):
        return _as_configured(value)
    if isinstance(value, tuple) and isinstance(resolved, list):
        return [_nested(*pair) for pair in zip(value, resolved, strict=True)]
    return resolved


def _oracle(name: str, counts: Sequence[int]) -> dict[str, JSON]:
    if name in _WITHOUT_K or not counts:
        return {"class": name}
    return {"class": name, "k": counts[0] if len(counts) == 1 else [*counts]}
