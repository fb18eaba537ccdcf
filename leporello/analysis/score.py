"""Scores predictions, from Leporello or any other program."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from leporello.config import load_config
from leporello.config.metrics import entry_of, metrics_of, specs_of
from leporello.core.calls.answers import as_text
from leporello.core.environment.json_table import JsonTable
from leporello.core.errors import UserError, did_you_mean, few
from leporello.core.files import read_json, read_rows
from leporello.core.protocols import Task
from leporello.core.records import Example, Prediction
from leporello.engine.failures import ExampleError
from leporello.engine.results.finished import (
    ExampleStatistics,
    empty_prediction,
    prediction_from_row,
)
from leporello.engine.task_examples import checked
from leporello.jobs.results import Result, Summary
from leporello.metrics import GoldError, Metric
from leporello.metrics.own import statistics_of
from leporello.storage import to_path

GOLD = "the gold is faulty:"
_SHOWN = 5


def score(
    file: Path | str,
    task: str,
    *,
    config: Sequence[Path] = (),
    split: str = "",
    metrics: Sequence[str] = (),
) -> Result:
    """Scores predictions with a task's metrics, or with other metrics.

    Predictions are scored unchanged: nothing is stripped or normalised. Metrics that need hits,
    such as `recall`, skip rows without hits. An example whose reference is unusable counts as a
    failure, as in a run, and the result has a fault that begins with `GOLD`.

    Args:
        file: A predictions.jsonl of a run, JSON Lines with `id` and `prediction`, or one JSON
            object {id: prediction}.
        task: Name of the task.
        config: Config files, merged over the built-in one.
        split: Name of a split that replaces the task's split.
        metrics: Metrics that replace the task's metrics, as in `--metric`.

    Raises:
        UserError: The file is unreadable, or its ids differ from the task's.
    """
    loaded = load_config(config)
    if task not in loaded.tasks:
        raise UserError(f"there is no task {task!r}{did_you_mean(task, loaded.tasks)}")
    spec = loaded.tasks[task]
    spec = (spec.with_split(split) if split else spec).with_metrics(
        [*map(entry_of, specs_of(metrics))]
    )
    source: Task = spec.spec.build()
    file = to_path(file)
    rows = _rows(file)
    failed = _failed(file)
    all_metrics = metrics_of(spec.metrics_of(source))
    without_hits = {n: m for n, m in all_metrics.items() if not getattr(m, "needs_hits", False)}
    summary, gold = Summary(all_metrics), Counter[str]()
    ids: set[str] = set()
    missing, normalised = [], False
    for example in checked(source.examples, task):
        ids.add(example.id)
        row = rows.get(example.id)
        if row is None and example.id not in failed:
            missing.append(example.id)
            continue
        prediction = _prediction(file, row, example) if row else empty_prediction(example)
        if row and "raw" in row:
            normalised |= as_text(row["raw"]) != row["prediction"]
        has_hits = row is None or "hits" in row
        usable = all_metrics if has_hits else without_hits
        statistics = _statistics(usable, prediction, example, failed.get(example.id))
        if statistics.failure and not failed.get(example.id):
            gold[f"{GOLD} {statistics.failure[1]}"] += 1
        summary.add(statistics)
    result = summary.result(file.name, task, normalised=normalised)
    places = enumerate(rows.items(), 1)  # a JSON object has no lines
    foreign = {str(key): number for number, (key, _) in places if key not in ids}
    redundant = [f"{k} on line {n}" if file.suffix != ".json" else k for k, n in foreign.items()]
    _check_ids(file, missing, redundant)
    return dataclasses.replace(result, faults={**result.faults, **dict(gold.most_common(_SHOWN))})


def _statistics(
    metrics: Mapping[str, Metric],
    prediction: Prediction,
    example: Example,
    failure: tuple[str, str] | None,
) -> ExampleStatistics:
    empty = ExampleStatistics(0, example.id, dict.fromkeys(metrics))
    if example.fault:
        return dataclasses.replace(empty, failure=("task", example.fault))
    try:
        statistics, faults = statistics_of(metrics, prediction, example)
    except GoldError as error:
        fault = ExampleError.of("metric", error).message.partition("\n")[0]
        return dataclasses.replace(empty, failure=("metric", fault))
    return ExampleStatistics(
        0,
        example.id,
        statistics,
        coverage={} if failure else asdict(prediction.coverage),
        empty=not prediction.prediction,
        failure=failure,
        faults=faults,
    )


def _failed(file: Path) -> dict[str, tuple[str, str]]:
    """Returns stage and error of a run's failures by id; failures score as empty predictions."""
    failures = file.with_name("failures.jsonl")
    is_run = file.name == "predictions.jsonl" and failures.exists()
    rows = read_rows(failures) if is_run else ()
    return {row["id"]: (row["stage"], row["error"].partition("\n")[0]) for row in rows}


def _rows(file: Path) -> JsonTable:
    rows = JsonTable()
    for number, row in enumerate(_read(file), 1):
        if not rows.add(row["id"], {**row}):
            raise UserError(f"{file}:{number}: id {row['id']!r} occurs twice")
    return rows


def _read(file: Path) -> Iterator[Mapping[str, Any]]:
    if file.suffix == ".json":
        yield from _from_object(file)
        return
    for number, row in enumerate(read_rows(file), 1):
        has_text = isinstance(row, dict) and isinstance(row.get("prediction"), str)
        if not (has_text and isinstance(row.get("id"), str | int | float)):
            message = "a row must have `id`, a text or a number, and the text `prediction`"
            raise UserError(f"{file}:{number}: {message}")
        yield row


def _from_object(file: Path) -> Iterator[Mapping[str, str]]:
    predictions: Any = read_json(file)
    texts = isinstance(predictions, dict) and [*predictions.values()]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise UserError(f"{file}: must be one object {{id: prediction}} whose values are texts")
    for key, text in predictions.items():
        yield {"id": key, "prediction": text}


def _prediction(file: Path, row: Mapping[str, Any], example: Example) -> Prediction:
    """Returns a row as a prediction; only rows of Leporello's runs have hits and spans."""
    if "document_sha256" not in row:
        return dataclasses.replace(empty_prediction(example), prediction=row["prediction"])
    try:
        return prediction_from_row(row)
    except (KeyError, TypeError, ValueError) as error:
        message = f"{type(error).__name__}: {error}"
        raise UserError(
            f"{file}: row {example.id!r} is not a valid row of predictions.jsonl ({message})"
        ) from None


def _check_ids(file: Path, missing: Sequence[str], redundant: Sequence[str]) -> None:
    """Raises an error unless the ids are the task's: scores over other examples do not compare."""
    problems = {"missing ids of the task": missing, "ids that are not the task's": redundant}
    faults = [f"{problem}: {len(ids)} ({few(ids)})" for problem, ids in problems.items() if ids]
    if faults:
        raise UserError(f"{file}: {'; '.join(faults)}")
