"""Rows of a paper's table, as the trainings that make the models of their pipelines."""

from collections.abc import Iterator, Sequence
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
    columns: tuple[str, ...]  # names of the columns, which have one task
    pipeline: str  # name of the row's pipeline for them
    task: str
    published: tuple[str, ...]  # names of the published rows that the row continues

    @property
    def trained_row(self) -> str:
        """Name of the row with trained pipelines."""
        return f"{self.row}-trained"

    @property
    def trained_pipeline(self) -> str:
        """Name of the trained pipeline; a row may use one pipeline in several columns."""
        return f"{self.suite}-{self.row}-{self.columns[0]}-trained"

    def of_pipeline(self, options: _Options) -> _Options:
        """Returns the options with the row's pipeline and task in place of the row."""
        return replace(options, suite="", pipeline=self.pipeline, task=self.task)

    def declaration(self) -> dict[str, JSON]:
        """Returns the suite that adds these columns to the trained row, as YAML declares it."""
        row: dict[str, JSON] = {
            "published": list(self.published),
            "pipelines": dict.fromkeys(self.columns, self.trained_pipeline),
        }
        return {self.suite: {"rows": {self.trained_row: row}}}


def places_of(options: TrainOptions) -> list[RowTraining]:
    """Returns the trainings of a row for one task or all; raises UserError for other names."""
    suite = suite_named(options.suite, options.config)
    if options.pipeline not in suite.rows:
        rows = ", ".join(suite.rows)
        name = f"{options.pipeline!r} is not a row of it; " if options.pipeline else ""
        raise UserError(f"{name}name a row of the suite {options.suite!r}: {rows}")
    columns: dict[tuple[str, str], list[str]] = {}
    for column, pipeline in suite.pipelines(options.pipeline).items():
        columns.setdefault((pipeline, suite.columns[column].task), []).append(column)
    pattern = options.task or "*"
    places = [
        RowTraining(
            suite.name, options.pipeline, tuple(names), *job, suite.rows[options.pipeline].published
        )
        for job, names in columns.items()
        if fnmatchcase(job[1], pattern)
    ]
    if not places:
        tasks = ", ".join(dict.fromkeys(task for _, task in columns))
        raise UserError(
            f"row {options.pipeline!r} has no task {options.task!r}; its tasks: {tasks}"
        )
    return places


def place_of(options: TrainOptions) -> RowTraining | None:
    """Returns the only training that the options name, or None; raises UserError for several."""
    if not options.suite:
        return None
    places = places_of(options)
    if len(places) > 1:
        tasks = ", ".join(place.task for place in places)
        raise UserError(f"row {options.pipeline!r} has several tasks; name one of: {tasks}")
    return places[0]


def options_of(options: TrainOptions) -> Iterator[TrainOptions]:
    """Yields the options of each training of a row; the options themselves without a suite."""
    places: Sequence[RowTraining] = places_of(options) if options.suite else ()
    for place in places:
        folder = options.out / place.columns[0] if options.out and len(places) > 1 else options.out
        yield replace(options, task=place.task, out=folder)
    if not places:
        yield options
