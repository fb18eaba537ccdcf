"""A suite: a paper's table as names of tasks, scores and pipelines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from leporello.core.errors import Fault, UserError, did_you_mean
from leporello.core.yaml.tree import Tree

_FORBID = ConfigDict(extra="forbid")
_HERE = Path(__file__).parents[2] / "suites" / "published"


@dataclass(frozen=True, slots=True)
class SuiteColumn:
    """A column of a paper's table.

    Attributes:
        score: Name of the score that enters the average.
        task: Name of the task; `SUITE/COLUMN` if left out.
        split: Name of the paper's split; the suite's if left out, the task's own if empty.
        shown: Scores that the column shows, in the paper's order, `TASK:SCORE` for one of another
            task; the score alone if left out. If the score is none of them, it is their geometric
            mean.
        examples: Number of examples of the paper's split; None if it is not known.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _FORBID
    score: str
    task: str
    split: str = "test"
    shown: tuple[str, ...] = ()
    examples: int | None = None

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """The task and the score of each number."""
        named = (text.rpartition(":") for text in self.shown or (self.score,))
        return tuple((task or self.task, score) for task, _, score in named)

    def entering(self, numbers: Sequence[float]) -> float:
        """Returns what enters the average, of the numbers that are shown."""
        if not self.shown or self.score in self.shown:
            return numbers[self.shown.index(self.score) if self.shown else 0]
        product = 1.0
        for number in numbers:
            product *= max(0.0, number)
        return float(product ** (1 / len(numbers)))


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """A row that pipelines of ours continue.

    Attributes:
        pipelines: Name of the pipeline, in which `{column}` stands for the column's; or names by
            column.
        published: Name of the published row beside which it stands; empty if there is none.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _FORBID
    pipelines: str | Mapping[str, str]
    published: str = ""


@dataclass(frozen=True, slots=True)
class SuiteSubmission:
    """What the benchmark's leaderboard takes.

    Attributes:
        file: Name that its script gives the CSV.
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
        published: Data file of the published numbers: a name of ours, or a path ending in `.yaml`.
        table: Table of the data file that the rows continue.
        average: Whether the paper has a mean of the columns' scores.
        by: Values of a task's parameter by label, under its name: each column is there at each
            value, as `COLUMN@PARAMETER=VALUE`, and their mean is the group LABEL of `table`.
        groups: Means of columns by name of a table and of its column; also of groups before. One
            that is named twice counts twice.
        submission: What its leaderboard takes; None if it has none.
        description: Line about it for `list`.
        tree: Place of it in the file.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _FORBID
    name: str
    columns: Annotated[Mapping[str, SuiteColumn], Field(min_length=1)]
    rows: Mapping[str, SuiteRow] = field(default_factory=dict)
    published: str = ""
    table: str = "results"
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
        """The names of its tasks."""
        return {task: None for column in self.columns.values() for task, _ in column.parts}

    def has(self, task: str) -> bool:
        """Whether a task, with whatever further parameters, is one of its."""
        return any(further(task, own) is not None for own in self.tasks)

    @property
    def file(self) -> Path | None:
        """The data file of the published numbers."""
        own = self.published.endswith((".yaml", ".yml"))
        path = Path(self.published) if own else _HERE / f"{self.published}.yaml"
        return path if self.published else None

    def pipelines(self, row: str) -> dict[str, str]:
        """Returns the pipeline of a row by column."""
        named = self.rows[row].pipelines
        if not isinstance(named, str):
            return {**named}
        return {column: named.replace("{column}", column) for column in self.columns}

    def fault(self, text: str, *path: str) -> Fault:
        """Returns a fault at the place below the suite that a path leads to."""
        tree: Tree = self.tree
        for key in path:
            tree = tree.items.get(key) or tree.items.get(key.partition("@")[0], tree)
        return tree.fault(f"suites.{'.'.join((self.name, *path))}: {text}")

    def jobs(
        self, rows: Sequence[str], tasks: Sequence[str], pipelines: Iterable[str]
    ) -> list[tuple[str, str, str]]:
        """Returns what fills rows of the table: names of pipeline, task and split.

        Args:
            rows: Names of rows, or of pipelines, which are run on every task; all rows if empty.
            tasks: Names or `*` patterns of the only tasks; all if empty. Further parameters are
                those of the tasks, `NAME@background=FOLDER`.
            pipelines: Names of all pipelines.

        Raises:
            UserError: There is no such row, or nothing of these tasks.
        """
        jobs: dict[tuple[str, str, str], None] = {}
        known = {*pipelines}
        for row in rows or self.rows:
            if row not in self.rows and row not in known:
                hint = did_you_mean(row, [*self.rows])
                raise UserError(
                    f"suite {self.name!r} has no row {row!r}, nor is it a pipeline{hint}"
                )
            named = self.pipelines(row) if row in self.rows else dict.fromkeys(self.columns, row)
            for column, pipeline in named.items():
                for task, _ in self.columns[column].parts:
                    for name in _asked(task, tasks) if tasks else [task]:
                        jobs[pipeline, name, self.columns[column].split] = None
        if not jobs:
            hint = did_you_mean(tasks[0], self.tasks) if tasks else ""
            raise UserError(f"suite {self.name!r} has none of these tasks{hint}")
        return [*jobs]


def further(task: str, own: str) -> str | None:
    """Returns the parameters that a task's name has beyond another's; None if it is not that one.

    Args:
        task: `NAME@PARAMETER=VALUE,…`.
        own: Name of the other one.
    """
    (name, *given), (wanted, *known) = (text.replace("@", ",").split(",") for text in (task, own))
    if name != wanted or not {*known} <= {*given}:
        return None
    return ",".join(one for one in given if one not in known)


def _asked(task: str, patterns: Sequence[str]) -> Iterator[str]:
    """Yields a task's name as patterns ask for it, with the parameters that they add."""
    name, *own = task.replace("@", ",").split(",")
    known = dict(one.split("=") for one in own)
    for pattern in patterns:
        wanted, _, settings = pattern.partition("@")
        given = dict(one.partition("=")[::2] for one in settings.split(",") if one)
        if fnmatch(name, wanted) and all(
            known.get(k, value) == value for k, value in given.items()
        ):
            settled = ",".join(f"{key}={value}" for key, value in (known | given).items())
            yield f"{name}@{settled}" if settled else name
