"""Writes a report on finished runs as one HTML file, from the template `page.html.jinja`."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, count
from pathlib import Path
from typing import Any

from leporello.analysis.comparison.comparison import compare
from leporello.analysis.comparison.scores import Draws
from leporello.analysis.comparison.tables import Comparison, TaskComparison, tables_of
from leporello.analysis.finished import FinishedRun
from leporello.core.errors import UserError, check_list
from leporello.core.files import atomically, check_own
from leporello.jobs.directory import RunDirectory
from leporello.jobs.results import ways_table
from leporello.report.curves import curves, effective_lengths, length_plots
from leporello.report.example_details import JobColumns
from leporello.report.example_index import Packed, pack
from leporello.report.plots import middle
from leporello.report.summary import board, short_names

_HERE = Path(__file__).parent
# Code points that HTML does not allow: control characters, lone surrogates and noncharacters.
_ODD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_MARK = '<meta name="generator" content="Leporello">'  # in the template


def write(page: Mapping[str, Any], out: Path) -> None:
    """Writes the page atomically; raises UserError if this fails."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["middle"] = middle
    style, script = ((_HERE / name).read_text("utf-8") for name in ("page.css", "page.js"))
    values: dict[str, Any] = {
        "page": page,
        "style": Markup(style),  # noqa: S704 -- our own file
        "script": Markup(script),  # noqa: S704 -- our own file
        "policy": _policy(style, script),
    }
    try:
        with atomically(out) as file:
            for text in environment.get_template("page.html.jinja").generate(values):
                file.write(_ODD.sub("\N{REPLACEMENT CHARACTER}", text))
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror}") from None


def _policy(style: str, script: str) -> str:
    """Returns a content security policy that allows only the page's own style and script."""
    hashes = (b64encode(sha256(text.encode()).digest()).decode() for text in (style, script))
    by_kind = (f"{k}-src 'sha256-{h}'" for k, h in zip(("style", "script"), hashes, strict=True))
    return "; ".join(["default-src 'none'", *by_kind, "base-uri 'none'", "form-action 'none'"])


_CHARACTERS = 30_000_000  # of excerpts in total: about 15 MB of the file
_EACH = 100_000  # characters of excerpts per example


@dataclass(frozen=True, slots=True)
class Report:
    """Result of `report`.

    Attributes:
        bytes: Size of the file, in bytes.
        examples: Number of examples in the report, over all tasks.
        notes: Notes on omitted content, with reasons.
    """

    path: Path
    bytes: int
    examples: int
    notes: tuple[str, ...]


def report(
    runs: Sequence[Path | str],
    out: Path | str,
    *,
    inputs: int = 100,
    tasks: Collection[str] = (),
    baseline: str = "",
    draws: Draws = Draws(),  # noqa: B008 -- frozen
) -> Report:
    """Writes one self-contained HTML file about finished runs.

    Pipelines are compared on the examples that all of them have finished. Excerpts of documents
    need the tasks' data; without the data, everything else is shown.

    Args:
        runs: Directories of the runs.
        out: Path of the file.
        inputs: Number of examples per task that are shown with the readers' exact inputs.
        tasks: Names of the tasks to show; all if empty.
        baseline: Label of the pipeline that the others are tested against; by default the first.
        draws: Settings of the resampling.

    Raises:
        UserError: A run, task or baseline does not exist, the pipelines have no finished examples
            of a task in common, or the file cannot be written.
    """
    check_list("runs", runs)
    paths, file = [*map(Path, runs)], Path(out)
    check_own(file, _MARK)
    comparison = compare(paths, baseline=baseline, tasks=tasks, common=True, draws=draws)
    names = short_names([e.label for task in comparison.boards for e in task.entries])
    finished = {run.directory.path: run for run in map(FinishedRun.at, paths)}
    examples_of_all = sum(max(e.examples for e in task.entries) for task in comparison.boards)
    characters = min(_CHARACTERS // max(1, examples_of_all), _EACH)
    packed = [
        pack(task.task, _jobs(task, names, finished), [*task.metrics],
             characters=characters, inputs=inputs)
        for task in comparison.boards
    ]  # fmt: skip
    notes = [*chain.from_iterable(map(_notes, comparison.boards, packed))]
    boards = [*map(board, count(), comparison.boards, packed)]
    page = {
        "title": f"Report on {', '.join(run.resolve().name for run in paths)}",
        "boards": boards,
        "has_losses": any(task.losses for task in boards),
        "has_differences": any(
            task.baseline and len(task.entries) > 1 for task in comparison.boards
        ),
        "sections": [*_sections(comparison, packed, names)],
        "tables": tables_of(comparison),
        "sources": [_source(run) for run in paths],
        "tasks": [(examples.task, examples.index) for examples in packed],
        "pieces": [
            (f"piece-{task}-{number}", data)
            for task, examples in enumerate(packed)
            for number, data in enumerate(examples.pieces)
        ],
        "notes": notes,
    }
    write(page, file)
    total = sum(len(examples.ids) for examples in packed)
    return Report(file, file.stat().st_size, total, tuple(notes))


def _sections(
    comparison: Comparison, packed: Sequence[Packed], names: Mapping[str, str]
) -> Iterator[Mapping[str, Any]]:
    """Yields the sections below the examples: ways of combiners, curves, and scores by length."""
    boards = comparison.boards
    ways = [
        ways_table(f"Ways of {e.task}", [(j.name, j.job.merged.get("ways", {})) for j in e.jobs])
        for e in packed
    ]
    tasks = zip(boards, packed, strict=True)
    plots = [plot for board, examples in tasks for plot in curves(board, examples)]
    by_length = [*length_plots(boards, names)]
    yield {"title": "Ways", "text": "", "tables": [w for w in ways if w.rows], "plots": []}
    yield {"title": "Curves", "text": "", "tables": [], "plots": plots}
    yield {"title": "Lengths", "text": effective_lengths(boards), "tables": [], "plots": by_length}


def _jobs(
    comparison: TaskComparison, names: Mapping[str, str], finished: Mapping[Path, FinishedRun]
) -> list[JobColumns]:
    return [
        JobColumns(finished[e.run].job(e.pipeline, comparison.task), e.label, names[e.label])
        for e in comparison.entries
    ]


def _notes(comparison: TaskComparison, packed: Packed) -> Iterator[str]:
    common, total = comparison.entries[0].examples, len(packed.ids)
    if common < total:
        yield (
            f"{comparison.task}: tables compare the {common:,} examples that all pipelines have"
            f" finished, of {total:,}; curves and the list below show all finished examples"
        )
    yield from packed.notes


def _source(run: Path) -> dict[str, Any]:
    directory = RunDirectory(run)
    files = [file for file in (directory.config, directory.manifest) if file.exists()]
    texts = [{"name": file.name, "text": file.read_text("utf-8", "replace")} for file in files]
    return {"name": run.resolve().name, "files": texts}
