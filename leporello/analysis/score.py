"""Scores for a predictions file that need not come from a run of ours."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from leporello.analysis.export.submission import few
from leporello.config import load_config
from leporello.config.metrics import entry_of, metrics_of, specs_of
from leporello.core.calls.answers import as_text
from leporello.core.environment.json_table import JsonTable
from leporello.core.errors import UserError, did_you_mean
from leporello.core.files import read_json, read_rows
from leporello.core.protocols import Task
from leporello.core.records import Example, Prediction
from leporello.engine.failures import ExampleError
from leporello.engine.results.finished import ExampleStatistics
from leporello.engine.results.serialization import empty_prediction, prediction_from_row
from leporello.engine.task_examples import checked
from leporello.jobs.results import Result, Summary
from leporello.metrics import GoldError, Metric
from leporello.metrics.own import statistics_of

GOLD = "the gold is faulty:"
_SHOWN = 5


def score(
    file: Path,
    task: str,
    *,
    config: Sequence[Path] = (),
    split: str = "",
    metrics: Sequence[str] = (),
) -> Result:
    """Scores predictions with a task's metrics, or others.

    Args:
        file: A predictions.jsonl of ours, JSON Lines with `id` and `prediction`, or one JSON object
            {id: prediction}.
        task: Name of the task.
        config: The user's own files, laid over the built-in one.
        split: Name of a split, in place of the task's own.
        metrics: Metrics in place of the task's own, as those of `--metric`.

    Predictions are scored as they stand: nothing is stripped or brought into another form. Where a
    row does not say what was selected, nothing is told of that (`recall`). An
    example whose reference nothing can be scored against counts as a failure, as in a run, and is
    a fault of the result that begins with `GOLD`.

    Raises:
        UserError: The file is unreadable, or its ids are not the task's.
    """
    loaded = load_config(config)
    if task not in loaded.tasks:
        raise UserError(f"there is no task {task!r}{did_you_mean(task, loaded.tasks)}")
    spec = loaded.tasks[task]
    spec = (spec.with_split(split) if split else spec).with_metrics(
        [*map(entry_of, specs_of(metrics))]
    )
    source: Task = spec.spec.build()
    rows = _rows(file)
    failed = _failed(file)
    counting = metrics_of(spec.metrics_of(source))
    without_hits = [item for item in counting.items() if not getattr(item[1], "needs_hits", False)]
    summary, gold = Summary(counting), Counter[str]()
    known: set[str] = set()
    missing, normalised = [], False
    for example in checked(source.examples, task):
        known.add(example.id)
        row = rows.get(example.id)
        if row is None and example.id not in failed:
            missing.append(example.id)
            continue
        prediction = _prediction(file, row, example) if row else empty_prediction(example)
        if row and "raw" in row:
            normalised |= as_text(row["raw"]) != row["prediction"]
        has_hits = row is None or "hits" in row
        told = counting.items() if has_hits else without_hits
        scored = _scored(dict(told), prediction, example, failed.get(example.id))
        if scored.failure and not failed.get(example.id):
            gold[f"{GOLD} {scored.failure[1]}"] += 1
        summary.add(scored)
    result = summary.result(file.name, task, normalised=normalised)
    redundant = [str(key) for key, _ in rows.items() if key not in known]
    _check_ids(file, missing, redundant)
    return dataclasses.replace(result, faults={**result.faults, **dict(gold.most_common(_SHOWN))})


def _scored(
    metrics: Mapping[str, Metric],
    prediction: Prediction,
    example: Example,
    failure: tuple[str, str] | None,
) -> ExampleStatistics:
    """Returns what counts of an example, as a run would have it."""
    none = ExampleStatistics(0, example.id, dict.fromkeys(metrics))
    if example.fault:
        return dataclasses.replace(none, failure=("task", example.fault))
    try:
        statistics, faults = statistics_of(metrics, prediction, example)
    except GoldError as error:
        fault = ExampleError.of("metric", error).message.partition("\n")[0]
        return dataclasses.replace(none, failure=("metric", fault))
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
    """Returns what failed in a run of ours, by id: it scores as empty predictions."""
    beside = file.with_name("failures.jsonl")
    ours = file.name == "predictions.jsonl" and beside.exists()
    rows = read_rows(beside) if ours else ()
    return {row["id"]: (row["stage"], row["error"].partition("\n")[0]) for row in rows}


def _rows(file: Path) -> JsonTable:
    """Returns the rows by id, whatever their order."""
    rows = JsonTable()
    for number, row in enumerate(_given(file), 1):
        if not rows.add(row["id"], {**row}):
            raise UserError(f"{file}:{number}: id {row['id']!r} is given twice")
    return rows


def _given(file: Path) -> Iterator[Mapping[str, Any]]:
    if file.suffix == ".json":
        yield from _from_object(file)
        return
    for number, row in enumerate(read_rows(file), 1):
        texts = isinstance(row, dict) and isinstance(row.get("prediction"), str)
        if not (texts and "id" in row):
            raise UserError(f"{file}:{number}: a row needs the texts `id` and `prediction`")
        yield row


def _from_object(file: Path) -> Iterator[Mapping[str, str]]:
    predictions: Any = read_json(file)
    texts = isinstance(predictions, dict) and [*predictions.values()]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise UserError(f"{file}: must be one object {{id: prediction}} with texts only")
    for key, text in predictions.items():
        yield {"id": key, "prediction": text}


def _prediction(file: Path, row: Mapping[str, Any], example: Example) -> Prediction:
    """Returns a row as a prediction; only rows of ours say what was selected and read."""
    if "document_sha256" not in row:
        return dataclasses.replace(empty_prediction(example), prediction=row["prediction"])
    try:
        return prediction_from_row(row)
    except (KeyError, TypeError, ValueError) as error:
        message = f"{type(error).__name__}: {error}"
        raise UserError(
            f"{file}: row {example.id!r} is no row of predictions.jsonl ({message})"
        ) from None


def _check_ids(file: Path, missing: Sequence[str], redundant: Sequence[str]) -> None:
    """Nothing is scored in part: a score over other examples is another score."""
    told = {"ids of the task are missing": missing, "ids are not the task's": redundant}
    faults = [f"{len(ids)} {what} ({few(ids)})" for what, ids in told.items() if ids]
    if faults:
        raise UserError(f"{file}: {'; '.join(faults)}")
