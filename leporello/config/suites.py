"""Suites: papers' tables as names of tasks, scores and pipelines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from leporello.core.errors import Fault, UserError, did_you_mean
from leporello.core.yaml.tree import Tree

_FORBID = ConfigDict(extra="forbid")
_HERE = Path(__file__).parents[1] / "suites" / "published"


@dataclass(frozen=True, slots=True)
class SuiteColumn:
    """A column of a paper's table.

    Attributes:
        score: Name of the score that enters the average.
        task: Name of the task; `SUITE/COLUMN` if left out.
        split: Name of the paper's split; the suite's if left out, the task's if empty.
        shown: Scores that the column shows, in the paper's order, as `TASK:SCORE` for a score of
            another task; only `score` if left out. If `score` is not among them, it is their
            geometric mean.
        examples: Number of examples in the published files of the paper's split; None if unknown.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _FORBID
    score: str
    task: str
    split: str = "test"
    shown: tuple[str, ...] = ()
    examples: int | None = None

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """Task and score of each number."""
        pairs = (text.rpartition(":") for text in self.shown or (self.score,))
        return tuple((task or self.task, score) for task, _, score in pairs)

    def entering(self, numbers: Sequence[float]) -> float:
        """Returns the number that enters the average, computed from the shown numbers."""
        if not self.shown or self.score in self.shown:
            return numbers[self.shown.index(self.score) if self.shown else 0]
        # SCROLLS averages ROUGE as the geometric mean of its three scores. It is computed for
        # published numbers too, so that both averages follow one rule (decision 45).
        product = 1.0
        for number in numbers:
            product *= max(0.0, number)
        return float(product ** (1 / len(numbers)))


def _names(value: Any) -> Any:  # noqa: ANN401 -- any YAML
    return [value] if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """A row with scores of our pipelines.

    Attributes:
        pipelines: Name of the pipeline, in which `{column}` is replaced by the column's name; or
            names by column.
        published: Names of the published rows that it continues, in several of the paper's tables.
            YAML may have a single name.
        settings: Parameters of the tasks for this row, `chat=true`.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _FORBID
    pipelines: str | Mapping[str, str]
    published: Annotated[
        tuple[str, ...], BeforeValidator(_names, json_schema_input_type=str | tuple[str, ...])
    ] = ()
    settings: str = ""


@dataclass(frozen=True, slots=True)
class SuiteSubmission:
    """File for the benchmark's leaderboard.

    Attributes:
        file: Name of the CSV in the benchmark's script.
        tasks: Names of the columns, in the CSV's order.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _FORBID
    file: str
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Suite:
    """A paper's table.

    Attributes:
        name: Name of the suite.
        columns: Columns by name, in the paper's order.
        rows: Rows by name.
        published: Data file of the published numbers: a built-in name, or a path ending in `.yaml`.
        table: Table of the data file to which the rows belong.
        split: Name of the split for columns without one.
        average: Whether the paper has a mean of the columns' scores.
        by: Values of a task's parameter by label, under its name: each column is repeated for each
            value as `COLUMN@PARAMETER=VALUE`, and their mean is the group LABEL of `table`.
        groups: Means of columns or earlier groups, by name of a table and of its column. A name
            that is repeated counts twice.
        submission: File for the benchmark's leaderboard; None without a leaderboard.
        description: Description for `list`.
        tree: Tree of the suite in its file.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _FORBID
    name: str
    columns: Annotated[Mapping[str, SuiteColumn], Field(min_length=1)]
    rows: Mapping[str, SuiteRow] = field(default_factory=dict)
    published: str = ""
    table: str = "results"
    split: str = "test"
    average: Literal["mean", "none"] = "none"
    by: Annotated[Mapping[str, Mapping[str, int]], Field(max_length=1)] = field(
        default_factory=dict
    )
    groups: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    submission: SuiteSubmission | None = None
    description: str = ""
    tree: Any = field(default=None, compare=False, repr=False)

    @property
    def tasks(self) -> dict[str, None]:
        """The names of the suite's tasks."""
        return {task: None for column in self.columns.values() for task, _ in column.parts}

    def has(self, task: str) -> bool:
        """Returns whether a task belongs to the suite; it may have more parameters."""
        return any(added_settings(task, name) is not None for name in self.tasks)

    @property
    def file(self) -> Path | None:
        """Path of the data file of the published numbers; None if the suite has no data file."""
        is_path = self.published.endswith((".yaml", ".yml"))
        path = Path(self.published) if is_path else _HERE / f"{self.published}.yaml"
        return path if self.published else None

    def pipelines(self, row: str) -> dict[str, str]:
        """Returns the names of a row's pipelines by column."""
        # One name in a paper may be several trainings, one per column (decision 45).
        names = self.rows[row].pipelines
        if not isinstance(names, str):
            return {**names}
        return {column: names.replace("{column}", column) for column in self.columns}

    def fault(self, text: str, *path: str) -> Fault:
        """Returns a fault at a path below the suite."""
        tree: Tree = self.tree
        for key in path:
            tree = tree.items.get(key) or tree.items.get(key.partition("@")[0], tree)
        return tree.fault(f"suites.{'.'.join((self.name, *path))}: {text}")

    def jobs(
        self, rows: Sequence[str], tasks: Sequence[str], pipelines: Iterable[str]
    ) -> list[tuple[str, str, str]]:
        """Returns the jobs that fill rows of the table, as names of pipeline, task and split.

        `rows` are names of rows, or of pipelines, which are run on every task; all rows if empty.
        `tasks` are names or `*` patterns of the only tasks; all if empty. `NAME@background=FOLDER`
        adds a parameter to a task.
        """
        jobs: dict[tuple[str, str, str], None] = {}
        all_pipelines = {*pipelines}
        for row in rows or self.rows:
            if row not in self.rows and row not in all_pipelines:
                hint = did_you_mean(row, [*self.rows])
                raise UserError(
                    f"suite {self.name!r} has no row {row!r}, and no pipeline has this name{hint}"
                )
            names = self.pipelines(row) if row in self.rows else dict.fromkeys(self.columns, row)
            settings = self.rows[row].settings if row in self.rows else ""
            for column, pipeline in names.items():
                for task, _ in self.columns[column].parts:
                    with_settings = _matching_names(task, [f"*@{settings}"])
                    for name in chain(*(_matching_names(t, tasks or "*") for t in with_settings)):
                        jobs[pipeline, name, self.columns[column].split] = None
        if not jobs:
            hint = did_you_mean(tasks[0], self.tasks) if tasks else ""
            raise UserError(f"suite {self.name!r} has none of these tasks{hint}")
        return [*jobs]


def added_settings(task: str, base: str) -> str | None:
    """Returns the parameters that a task `NAME@PARAMETER=VALUE,…` adds to another, or None."""
    (name, settings), (base_name, fixed) = _parted(task), _parted(base)
    if name != base_name or not fixed.items() <= settings.items():
        return None
    return _joined({key: value for key, value in settings.items() if key not in fixed})


def _matching_names(task: str, patterns: Sequence[str]) -> Iterator[str]:
    """Yields a task's name for each pattern that matches, with the parameters of the pattern."""
    name, values = _parted(task)
    for pattern in patterns:
        name_pattern, added = _parted(pattern)
        if fnmatch(name, name_pattern) and all(values.get(k, v) == v for k, v in added.items()):
            settings = _joined(values | added)
            yield f"{name}@{settings}" if settings else name


def _parted(task: str) -> tuple[str, dict[str, str]]:
    """Returns the name and the parameters of `NAME@PARAMETER=VALUE,…`."""
    name, *settings = task.replace("@", ",").split(",")
    return name, dict(setting.partition("=")[::2] for setting in settings if setting)


def _joined(settings: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in settings.items())
