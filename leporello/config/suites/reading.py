"""The suites of several files, read without the classes of pipelines and tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from os.path import expanduser  # which leaves the name of a user who is not there
from typing import Any

from pydantic import TypeAdapter, ValidationError

from leporello.config.built_in import built_in_path
from leporello.config.layers import Layers
from leporello.config.specs import TaskSpec
from leporello.config.suites.suite import Suite, SuiteColumn, SuiteRow, SuiteSubmission
from leporello.core.environment.input_limits import COLUMNS
from leporello.core.errors import ConfigError, Fault, UserError, did_you_mean
from leporello.core.yaml.tree import ConfigSource, Tree, read_tree


def read_suites(files: Sequence[ConfigSource] = ()) -> dict[str, Suite]:
    """Returns the suites of the built-in file and the user's over it, by name.

    No class is looked at.

    Raises:
        UserError: A file cannot be read.
        ConfigError: What is wrong with the suites themselves.
    """
    layers = Layers()
    for file in (built_in_path(), *files):
        layers.add(read_tree(file))
    suites, faults = suites_of(layers)
    if faults:
        raise ConfigError(faults)
    return suites


def suite_named(name: str, files: Sequence[ConfigSource] = ()) -> Suite:
    """Returns a suite.

    Raises:
        UserError: There is none of this name.
    """
    suites = read_suites(files)
    if name not in suites:
        raise UserError(f"there is no suite {name!r}{did_you_mean(name, suites)}")
    return suites[name]


def suites_of(layers: Layers) -> tuple[dict[str, Suite], list[Fault]]:
    """Returns the suites of several files, and what is wrong with their form and own names."""
    suites: dict[str, Suite] = {}
    faults: list[Fault] = []
    for name, tree in layers.suites.items():
        if (count := _count(tree)) > COLUMNS:
            text = f"suites.{name}: has {count:,} columns, and {COLUMNS:,} are the most"
            faults.append(tree.fault(text))
            continue
        try:
            suites[name] = _adapter().validate_python(_given(name, tree))
        except ValidationError as error:
            faults += [_fault(name, tree, one) for one in error.errors()]
            continue
        faults += _own_faults(suites[name])
    return suites, faults


_OPINIONS = ("judge",)  # metrics that a reader says


def check_names(
    suites: Mapping[str, Suite], pipelines: Iterable[str], tasks: Mapping[str, TaskSpec | None]
) -> list[Fault]:
    """Returns what suites name that is not there."""
    faults: list[Fault] = []
    known, all_tasks = {*pipelines}, {*tasks}
    for suite in suites.values():
        faults += _untaken(suite, tasks)
    for suite in suites.values():
        for name, column in suite.columns.items():
            faults += [
                suite.fault(
                    f"there is no task {task!r}{did_you_mean(task, all_tasks)}", "columns", name
                )
                for task in {task: None for task, _ in column.parts}
                if task.partition("@")[0] not in all_tasks
            ]
            if suite.average and column.score.partition("[")[0] in _OPINIONS:
                text = f"{column.score} is an opinion: it enters no average of a suite"
                faults.append(suite.fault(text, "columns", name))
        for row in suite.rows:
            for pipeline in dict.fromkeys(suite.pipelines(row).values()):
                if pipeline not in known:
                    text = f"there is no pipeline {pipeline!r}{did_you_mean(pipeline, known)}"
                    faults.append(suite.fault(text, "rows", row, "pipelines"))
    return faults


def _untaken(suite: Suite, tasks: Mapping[str, TaskSpec | None]) -> Iterator[Fault]:
    """Yields the parameters that tasks do not take, each value once."""
    told = set()
    for key, column in suite.columns.items():
        name, _, settings = column.task.partition("@")
        if settings not in told and (task := tasks.get(name)) and settings:
            told.add(settings)
            try:
                task.adjusted(settings)
            except UserError as error:
                yield suite.fault(str(error), "by" if suite.by else "columns", key)


@cache
def _adapter() -> TypeAdapter[Suite]:
    return TypeAdapter(Suite)


def _count(tree: Tree) -> int:
    """Returns how many columns a suite has, at every value of its parameter."""
    columns, by = (tree.items.get(key, Tree({}, None, 0)).items for key in ("columns", "by"))
    return len(columns) * max(1, sum(len(values.items) for values in by.values()))


def _given(name: str, tree: Tree) -> dict[str, Any]:
    """Returns what the file says, with what follows from names filled in."""
    plain: Any = tree.plain()
    split = plain.pop("split", "test")
    if isinstance(columns := plain.get("columns"), dict):
        columns, means = _by(name, columns, plain.get("by"))
        if means and isinstance(groups := plain.get("groups", {}), dict):
            table = plain.get("table", "results")
            plain["groups"] = groups | {table: means | groups.get(table, {})}
        plain["columns"] = {
            key: {"task": f"{name}/{key}", "split": split, **column}
            if isinstance(column, dict)
            else column
            for key, column in columns.items()
        }
    published = tree.items.get("published")
    if published and str(published.value).endswith((".yaml", ".yml")) and published.file:
        plain["published"] = str(published.file.parent / expanduser(str(published.value)))  # noqa: PTH111 -- Path raises for such a one
    return {**plain, "name": name, "tree": tree}


def _by(
    suite: str,
    columns: dict[str, Any],
    by: Any,  # noqa: ANN401 -- any YAML
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Returns columns at each value of a parameter, and the names of those of each."""
    at: dict[str, Any] = {}
    means: dict[str, list[str]] = {}
    for parameter, values in by.items() if isinstance(by, dict) else ():
        for label, value in values.items() if isinstance(values, dict) else ():
            for key, column in columns.items():
                own = {"task": f"{suite}/{key}"} | (column if isinstance(column, dict) else {})
                named = f"{key}@{parameter}={value}"
                at[named] = own | {"task": f"{own['task']}@{parameter}={value}"}
                means.setdefault(label, []).append(named)
    return at or columns, means


def _fault(name: str, tree: Tree, error: Any) -> Fault:  # noqa: ANN401 -- a mapping of pydantic's
    place = [str(key) for key in error["loc"]]
    for key in place:
        tree = tree.items.get(key, tree)
    *above, last = place
    if error["type"] == "unexpected_keyword_argument":
        classes: Mapping[str, type[Any]] = {
            "columns": SuiteColumn,
            "rows": SuiteRow,
            "submission": SuiteSubmission,
        }
        cls = classes[above[0]] if above else Suite
        allowed = {one.name for one in fields(cls)} | {"split"}
        text = f"suites.{'.'.join((name, *above))}: unknown key {last!r}"
        return tree.fault(f"{text}{did_you_mean(last, allowed)}")
    problem = (
        "is missing"
        if error["type"] == "missing"
        else f"{error['msg']}, got {error['input']!r:.60}"
    )
    return tree.fault(f"suites.{'.'.join((name, *place))}: {problem}")


def _own_faults(suite: Suite) -> Iterable[Fault]:
    """Yields the columns that rows, groups and the submission name and the suite does not have."""
    named: dict[tuple[str, ...], Iterable[str]] = {
        ("rows", row, "pipelines"): suite.pipelines(row) for row in suite.rows
    }
    named["submission", "tasks"] = suite.submission.tasks if suite.submission else ()
    named |= {("groups", t, g): m for t, gs in suite.groups.items() for g, m in gs.items()}
    for place, columns in named.items():
        known = {*suite.columns}
        if place[0] == "groups":  # those before it too
            groups = [*suite.groups[place[1]]]
            known |= {*groups[: groups.index(place[2])]}
        for column in columns:
            if column not in known:
                hint = did_you_mean(column, known)
                yield suite.fault(f"there is no column {column!r}{hint}", *place)
