"""Verbs that examine answers and tasks: `explain`, `analyze` and `score`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leporello.cli.options import (
    AsJson,
    ConfigFiles,
    Data,
    Metrics,
    RunAt,
    Split,
    print_json,
    stdout,
)
from leporello.storage import to_path

if TYPE_CHECKING:
    from leporello.analysis.explain import Explanation


def explain(
    *,
    run: RunAt,
    example: Annotated[
        str,
        typer.Argument(
            help="Id of an example. [default: counts over all examples]", show_default=False
        ),
    ] = "",
    data: Data = None,  # noqa: ARG001 -- its callback sets the tasks' data directory
    as_json: AsJson = False,
) -> None:
    """Show which stages lost answers, or every stage and exact input of one example."""
    from leporello.analysis.funnel import funnels
    from leporello.cli.display.explanation import show_funnels

    if example:
        _print_example(run, example, as_json=as_json)
        return
    losses = funnels(run)
    if as_json:
        steps = [[{**asdict(s), "share": s.share} for s in funnel.steps] for funnel in losses]
        rows = zip(losses, steps, strict=True)
        print_json([{**asdict(funnel), "steps": stage_rows} for funnel, stage_rows in rows])
    else:
        show_funnels(stdout(), losses)


def _print_example(run: Path, example: str, *, as_json: bool) -> None:
    from leporello.analysis.explain import explain as explain_example
    from leporello.cli.display.explanation import show_explanation

    explanations = explain_example(run, example)
    if as_json:
        print_json([*map(_as_json, explanations)])
        return
    for explanation in explanations:
        show_explanation(stdout(), explanation)


def _as_json(explanation: Explanation) -> dict[str, Any]:
    from leporello.engine.results.finished import prediction_row

    example = explanation.example
    return {
        "pipeline": explanation.pipeline,
        "task": explanation.task,
        "id": example.id,
        "document": example.document.id,
        "question": example.question,
        "references": example.references,
        "evidence": [asdict(span) for span in example.evidence],
        "prediction": None if explanation.failure else prediction_row(explanation.prediction),
        "failure": explanation.failure,
        "chunks": [asdict(span) for span in explanation.chunks],
        "inputs": [asdict(read) for read in explanation.inputs],
        "scores": explanation.scores,
        "notes": explanation.notes,
        "fate": {**asdict(explanation.fate), "lost_at": explanation.fate.lost_at},
    }


def analyze(
    what: Annotated[
        str, typer.Argument(help="Name of a task, or directory of a run.", metavar="TASK|RUN")
    ],
    *,
    config: ConfigFiles = None,
    split: Split = "",
    data: Data = None,  # noqa: ARG001 -- its callback sets the tasks' data directory
    as_json: AsJson = False,
) -> None:
    """Print the lengths and the spread of references of a task, or the form of a run's answers."""
    from leporello.analysis.datasets import analyze_run, analyze_task
    from leporello.cli.display.tables import show_discrepancies, show_task
    from leporello.storage.runs import run_at

    run = run_at(what)
    if (run / "manifest.json").exists():
        discrepancies = analyze_run(run)
        if as_json:
            print_json([asdict(job) for job in discrepancies])
        else:
            show_discrepancies(stdout(), discrepancies)
        return
    analysis = analyze_task(what, config or (), split)
    if as_json:
        print_json(asdict(analysis))
    else:
        show_task(stdout(), what, analysis)


def score(
    *,
    file: Annotated[
        Path,
        typer.Argument(
            help="Path or URL of a predictions.jsonl, or of a JSON object {id: prediction}.",
            parser=to_path,
            metavar="FILE",
        ),
    ],
    task: Annotated[
        str, typer.Option("--task", help="Score with the references and metrics of this task.")
    ],
    config: ConfigFiles = None,
    split: Split = "",
    metric: Metrics = None,
    data: Data = None,  # noqa: ARG001 -- its callback sets the tasks' data directory
    as_json: AsJson = False,
) -> None:
    """Score any predictions file with a task's metrics."""
    from leporello.analysis.score import GOLD
    from leporello.analysis.score import score as score_file
    from leporello.cli.display import results

    result = score_file(file, task, config=config or (), split=split, metrics=metric or ())
    if as_json:
        print_json(result.row())
    else:
        results.scores(stdout(), [result])
    if result.faults:
        raise typer.Exit(2 if any(text.startswith(GOLD) for text in result.faults) else 1)
