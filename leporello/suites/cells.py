"""Cells of a suite's tables: published numbers with their sources, and scores of runs."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ConfigDict

from leporello.analysis.comparison.scores import Draws, scores_of
from leporello.analysis.finished import FinishedJob, FinishedRun, finished_runs
from leporello.config.parameters import structured
from leporello.config.suites import Suite
from leporello.core.errors import ConfigError, Fault, UserError, build_all, did_you_mean
from leporello.core.yaml.tree import Tree, read_tree
from leporello.jobs.manifest import metrics_of_run
from leporello.metrics.statistics import StatisticsTable

_FORBID = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A row of a paper's table."""

    __pydantic_config__: ClassVar[ConfigDict] = _FORBID
    name: str  # name of the row in the paper
    # Counts stay integers, so that they are shown without decimals.
    # Numbers are data with their quote, and a test finds each number in it. A value that no text at
    # hand contains has no number (decision 45).
    # Numbers by column, without columns where the paper has a dash.
    numbers: Mapping[str, tuple[int | float | None, ...]]
    quote: str  # line of the paper's text with the numbers


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A table of a paper."""

    __pydantic_config__: ClassVar[ConfigDict] = _FORBID
    title: str
    columns: Mapping[str, tuple[str, ...]]  # labels of the numbers by column
    rows: tuple[PublishedRow, ...]  # rows in the paper's order


@dataclass(frozen=True, slots=True)
class PublishedPaper:
    """The tables of a paper."""

    __pydantic_config__: ClassVar[ConfigDict] = _FORBID
    paper: str = ""  # authors, year and title
    source: str = ""  # URL of the text with the numbers
    tables: Mapping[str, PublishedTable] = field(default_factory=dict)


def published_of(suite: Suite) -> PublishedPaper:
    """Returns the published numbers of a suite, empty without a file; raises ConfigError."""
    if suite.file is None:
        return PublishedPaper()
    tree = read_tree(suite.file)
    published = structured(PublishedPaper, tree.plain(), tree)
    faults = [*_faults(published, tree), *_unmatched(suite, published)]
    if faults:
        raise ConfigError(faults)
    return published


def check_published(suites: Mapping[str, Suite]) -> None:
    """Reads the published numbers of all suites; raises ConfigError with all faults."""
    build_all(suites.values(), published_of)


def _faults(published: PublishedPaper, tree: Tree) -> Iterator[Fault]:
    """Yields faults for numbers without a column, or without labels in it."""
    for name, table in published.tables.items():
        rows: Any = tree.items["tables"].items[name].items["rows"].value
        for row, place in zip(table.rows, rows, strict=True):
            for column, numbers in row.numbers.items():
                labels = table.columns.get(column)
                if labels is None:
                    hint = did_you_mean(column, table.columns)
                    yield place.fault(f"{name}: {row.name}: unknown column {column!r}{hint}")
                elif len(labels) != len(numbers):
                    text = f"has {len(numbers)} numbers for {len(labels)} labels"
                    yield place.fault(f"{name}: {row.name}: {column} {text}")


def _unmatched(suite: Suite, published: PublishedPaper) -> Iterator[Fault]:
    """Yields faults for tables, rows and columns of a suite that the data file does not have."""
    table = published.tables.get(suite.table)
    if table is None and suite.table in suite.groups:
        table = PublishedTable("", {}, ())  # a table of means, which is not published
    if table is None:
        hint = did_you_mean(suite.table, published.tables)
        yield suite.fault(f"{suite.file} has no table {suite.table!r}{hint}", "table")
        return
    names = {row.name for entry in published.tables.values() for row in entry.rows}
    for key, row in suite.rows.items():
        for name in {*row.published} - names:
            text = f"{suite.file.name if suite.file else ''} has no row {name!r}"
            yield suite.fault(f"{text}{did_you_mean(name, names)}", "rows", key, "published")
    for name, groups in suite.groups.items():
        columns = published.tables[name].columns if name in published.tables else {}
        for key in groups if columns or name != suite.table else ():
            if key not in columns:
                text = f"{suite.file} has no column {key!r} in {name!r}{did_you_mean(key, columns)}"
                yield suite.fault(text, "groups", name, key)
    for key, column in suite.columns.items():
        labels = table.columns.get(key)
        if labels is not None and len(labels) != len(column.parts):
            text = f"shows {len(column.parts)} scores where the paper has {'/'.join(labels)}"
            yield suite.fault(text, "columns", key)


_DRAWS = Draws(samples=1_000)  # enough for the first digits of an interval, and fast


@dataclass(frozen=True, slots=True)
class Cell:
    """Results of one pipeline on one task in one run."""

    job: FinishedJob
    examples: int  # number of finished examples, including failed ones
    partial: bool  # whether the run is not finished
    limited: bool  # whether the run may have left out examples of its data (`--limit`)
    unscored: int  # number of examples without a reference, which are in no mean
    scores: Mapping[str, float]  # scores by name, 0 to 100
    intervals: Mapping[str, tuple[float, float]]  # 95 % intervals by score, if it can be resampled

    @property
    def name(self) -> str:
        """Pipeline, task and run, for messages."""
        return f"{self.job.name} in {self.job.run.directory.path}"


def cells_of(runs: Sequence[Path], suite: Suite) -> list[Cell]:
    """Returns the results of runs on a suite's tasks; without any, raises UserError."""
    cells = [cell for run in finished_runs(runs) for cell in _of_run(run, suite)]
    if runs and not cells:
        names = ", ".join(map(str, runs))
        tasks = dict.fromkeys(task.partition("@")[0] for task in suite.tasks)
        raise UserError(f"{names}: has no finished examples of {', '.join(tasks)}")
    return cells


def _of_run(run: FinishedRun, suite: Suite) -> Iterator[Cell]:
    expected = run.directory.expected()
    for job in run.jobs:
        if suite.has(job.task):
            cell = _cell(job, expected[job.pipeline, job.task])
            if cell.examples:
                yield cell


def _cell(job: FinishedJob, expected: int | None) -> Cell:
    tables: dict[str, StatisticsTable] = defaultdict(StatisticsTable)
    examples = unscored = 0
    for example in job.files.statistics():
        examples += 1
        unscored += all(statistics is None for statistics in example.statistics.values())
        for name, statistics in example.statistics.items():
            table = tables[name]
            if statistics is not None:
                table.append(statistics)
    metrics = metrics_of_run(job.signature, [*tables])
    results = {n: scores_of(metrics[n], [tables[n]], None, _DRAWS)[0] for n in metrics}
    scores = {name: value for score in results.values() for name, value in score.others.items()}
    ends = {metrics[n].headline: score.interval for n, score in results.items() if score.interval}
    for name in scores:  # the Shuffle Test has an interval for each block size
        if name.startswith("accuracy["):
            size = name.removeprefix("accuracy")
            ends[name] = (scores[f"low{size}"], scores[f"high{size}"])
    return Cell(
        job,
        examples=examples,
        partial=expected is not None and examples < expected,
        limited=not job.files.is_complete(None),
        unscored=unscored,
        scores=scores,
        intervals=ends,
    )
