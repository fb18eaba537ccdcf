"""Rows of a paper's table, as the trainings that make the models of their pipelines."""

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TypeVar

from leporello.config.suite_files import suite_named
from leporello.core.errors import UserError
from leporello.core.records import JSON
from leporello.jobs.options import TrainOptions

_Options = TypeVar("_Options", bound=TrainOptions)


@dataclass(frozen=True)
class RowTraining:
    """Columns of a suite's row that one training fills."""

    suite: str
    row: str
    columns: tuple[str, ...]  # names of the columns, which have one pipeline and task
    published: tuple[str, ...]  # names of the published rows that the row continues

    @property
    def trained_row(self) -> str:
        """Name of the row with trained pipelines."""
        return f"{self.row}-trained"

    @property
    def trained_pipeline(self) -> str:
        """Name of the trained pipeline; a row may use one pipeline in several columns."""
        return f"{self.suite}-{self.row}-{self.columns[0]}-trained"

    def declaration(self) -> dict[str, JSON]:
        """Returns the suite that adds these columns to the trained row, as YAML declares it."""
        row: dict[str, JSON] = {
            "published": list(self.published),
            "pipelines": dict.fromkeys(self.columns, self.trained_pipeline),
        }
        return {self.suite: {"rows": {self.trained_row: row}}}


def trainings(options: _Options) -> list[tuple[_Options, RowTraining | None]]:
    """Returns the trainings of a row for one task or all, with the options of their pipelines.

    Without a suite, the options are those of the only training. Raises UserError for other names.
    """
    if not options.suite:
        return [(options, None)]
    suite = suite_named(options.suite, options.config)
    if options.pipeline not in suite.rows:
        rows = ", ".join(suite.rows)
        name = f"{options.pipeline!r} is not a row of it; " if options.pipeline else ""
        raise UserError(f"{name}name a row of the suite {options.suite!r}: {rows}")
    columns: dict[tuple[str, str], list[str]] = {}
    for column, pipeline in suite.pipelines(options.pipeline).items():
        columns.setdefault((pipeline, suite.columns[column].task), []).append(column)
    chosen = {job: n for job, n in columns.items() if fnmatchcase(job[1], options.task or "*")}
    if not chosen:
        tasks = ", ".join(dict.fromkeys(task for _, task in columns))
        raise UserError(
            f"row {options.pipeline!r} has no task {options.task!r}; its tasks: {tasks}"
        )
    row, out = suite.rows[options.pipeline], options.out
    result: list[tuple[_Options, RowTraining | None]] = []
    for (pipeline, task), names in chosen.items():
        folder = out / names[0] if out and len(chosen) > 1 else out
        place = RowTraining(suite.name, options.pipeline, tuple(names), row.published)
        result.append((replace(options, suite="", pipeline=pipeline, task=task, out=folder), place))
    return result


def only_training(options: _Options) -> tuple[_Options, RowTraining | None]:
    """Returns the only training that the options name; raises UserError for several."""
    result = trainings(options)
    if len(result) > 1:
        tasks = ", ".join(single.task for single, _ in result)
        raise UserError(f"row {options.pipeline!r} has several tasks; name one of: {tasks}")
    return result[0]
