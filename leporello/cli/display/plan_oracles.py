"""What `plan --ladder` prints."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import typer

from leporello.analysis.oracle_baselines import oracle_sweep
from leporello.cli.options import print_json, stderr
from leporello.core.errors import UserError


def print_oracle_command(
    pipelines: Sequence[str],
    tasks: Sequence[str],
    *,
    config: Sequence[Path],
    overrides: Sequence[str],
    split: str,
    data: Path | None,
    limit: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Prints the command that runs a pipeline and its oracle sweep, with all that was given."""
    if len(pipelines) > 1:
        raise UserError(f"--ladder takes one pipeline, got {', '.join(pipelines)}")
    [pipeline] = pipelines or [""]
    sweep = oracle_sweep(
        pipeline, tasks, config=config, overrides=overrides, split=split, limit=limit
    )
    options = [
        *(("--task", task) for task in tasks),
        *(("--config", str(file)) for file in config),
        *(("--set", text) for text in (*overrides, sweep.override)),
        *([("--split", split)] if split else []),
        *([("--data", str(data))] if data else []),
        *([("--limit", str(limit))] if limit else []),
        *([("--out", str(out))] if out else []),
    ]
    words = [*_program(), "run", sweep.pipeline, *(word for pair in options for word in pair)]
    if as_json:
        print_json({**asdict(sweep), "command": words})
        return
    for text in sweep.notes:
        stderr().print(f"note: {text}", style="yellow", markup=False, highlight=False)
    typer.echo(shlex.join(words))


def _program() -> list[str]:
    """Returns how this program is started, as short as is sure to work."""
    started = sys.argv[0]
    if not started.endswith(".py"):
        name = Path(started).name
        return [name if shutil.which(name) else started]
    python = shutil.which("python")
    # A link to another environment's interpreter is another python.
    same = python is not None and Path(python).absolute() == Path(sys.executable).absolute()
    return ["python" if same else sys.executable, started]
