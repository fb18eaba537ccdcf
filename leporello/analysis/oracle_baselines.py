"""A pipeline with oracles, everything, and chance in its retriever's place."""

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

# Retrievers by class, best first: what evidence is worth, then what chance gives.
ORACLES = ("Oracle", "OracleAnswer", "All", "Random", "First")
_WITHOUT_K = ("All",)
_NEEDS = {"Oracle": "gold evidence", "OracleAnswer": "references"}


@dataclass(frozen=True, slots=True)
class OracleSweep:
    """How one run takes a pipeline with its own retriever and with each oracle's.

    Attributes:
        pipeline: Name of the pipeline.
        override: A `--set` that sweeps over the retrievers.
        notes: Notes on the oracles that are left out, and what else is to be known.
    """

    pipeline: str
    override: str
    notes: tuple[str, ...]


def oracle_sweep(options: JobOptions) -> OracleSweep:
    """Returns the oracle sweep of a pipeline: oracles get as many chunks as its own retriever.

    An oracle that none of the tasks has the gold for is left out, which the tasks' data tell.

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
    lacking = dict(_lacking(read_tasks, options.limit))
    counts = list(dict.fromkeys(filter(None, map(_count, points))))
    oracles = [oracle for oracle in ORACLES if oracle not in lacking]
    # With its parameters, so that a ladder changes nothing but the retriever (decision 25).
    configured = [_as_configured(point.stages["retriever"]) for point in points]
    retrievers = dict.fromkeys(
        map(json.dumps, [*configured, *(_oracle(oracle, counts) for oracle in oracles)])
    )
    unknown = () if counts else ("the retriever has no k: the rungs take their default",)
    return OracleSweep(name, f"retriever={','.join(retrievers)}", (*lacking.values(), *unknown))


def _points(loaded: Config, name: str) -> Sequence[PipelineSpec]:
    if name not in loaded.pipelines:
        point = "; a ladder is of a whole pipeline: give the point by --set" if "@" in name else ""
        hint = point or did_you_mean(name, loaded.pipelines)
        raise UserError(f"there is no pipeline {name!r}{hint}")
    return loaded.pipelines[name]


def _lacking(tasks: Sequence[TaskSpec], limit: int | None) -> Iterator[tuple[str, str]]:
    """Yields the oracles that no task has the gold for, and says so."""
    have = dict.fromkeys(_NEEDS, False)
    for task in tasks:
        for example in islice(examples_of(task.spec.build(), task.name), limit):
            have["Oracle"] |= bool(example.evidence)
            have["OracleAnswer"] |= bool(example.references)
            if all(have.values()):
                return
    names = ", ".join(task.name for task in tasks)
    for oracle, present in have.items():
        if not present:
            yield oracle, f"{oracle} is left out: no example of {names} has {_NEEDS[oracle]}"


def _count(point: PipelineSpec) -> int | None:
    """Returns how many chunks a pipeline's retriever gives: its `k`, or that of one inside it."""
    for spec in point.stages["retriever"].all_specs():
        k = spec.resolved().get("k")
        if isinstance(k, int):
            return k
    return None


def _as_configured(spec: Spec) -> dict[str, JSON]:
    """Returns a stage, and those nested in it, with the parameters that the config gives."""
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
