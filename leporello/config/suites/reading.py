"""The suites of several files, read without the classes of pipelines and tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from leporello.config.layers import Layers
from leporello.config.specs import TaskSpec
from leporello.config.suites.suite import Suite, SuiteColumn, SuiteRow, SuiteSubmission
from leporello.core.environment.input_limits import COLUMNS
from leporello.core.errors import ConfigError, Fault, UserError, did_you_mean, no_such
from leporello.core.files import at_home
from leporello.core.yaml.tree import ConfigSource, Tree


def read_suites() -> dict[str, Suite]:
    """Returns the suites of the built-in files, by name; no class is looked at.

    Raises:
        ConfigError: Everything that is wrong with the form of the suites.
    """
    layers = Layers(())
    checked = [suite_of(layers, name) for name in layers.suites]
    if faults := [fault for _, faults in checked for fault in faults]:
        raise ConfigError(faults)
    return {suite.name: suite for suite, _ in checked if suite}


def suite_named(name: str, files: Sequence[ConfigSource] = ()) -> Suite:
    """Returns a suite.

    Raises:
        UserError: There is no suite of this name.
        ConfigError: Everything that is wrong with its form.
    """
    layers = Layers(files)
    if name not in layers.suites:
        raise UserError(no_such("suite", name, layers.suites))
    suite, faults = suite_of(layers, name)
    if suite is None or faults:
        raise ConfigError(faults)
    return suite


def suite_of(layers: Layers, name: str) -> tuple[Suite | None, list[Fault]]:
    """Returns a suite, and everything that is wrong with its form and own names."""
    tree = layers.suites[name]
    if (count := _count(tree)) > COLUMNS:
        text = f"suites.{name}: has {count:,} columns, and {COLUMNS:,} are the most"
        return None, [tree.fault(text)]
    try:
        suite = _adapter().validate_python(_given(name, tree))
    except ValidationError as error:
        return None, [_fault(name, tree, one) for one in error.errors()]
    return suite, [*_own_faults(suite)]


_OPINIONS = ("judge", "citations")  # metrics that a reader says


def check_names(
    suite: Suite, pipelines: Collection[str], tasks: Mapping[str, TaskSpec]
) -> list[Fault]:
    """Returns everything that a suite names and that is not there."""
    faults: list[Fault] = []
    seen: set[str] = set()
    for key, column in suite.columns.items():
        for task in {task: None for task, _ in column.parts}:
            name, _, settings = task.partition("@")
            if name not in tasks:
                faults.append(suite.fault(no_such("task", task, tasks), "columns", key))
            elif settings not in seen and (problem := _untaken(tasks, name, settings)):
                faults.append(suite.fault(problem, "by" if suite.by else "columns", key))
            seen.add(settings)  # each value is reported once
        if suite.average == "mean" and column.score.partition("[")[0] in _OPINIONS:
            text = f"{column.score} is an opinion: it enters no average of a suite"
            faults.append(suite.fault(text, "columns", key))
    for row in suite.rows:
        for pipeline in dict.fromkeys(suite.pipelines(row).values()):
            if pipeline not in pipelines:
                text = no_such("pipeline", pipeline, pipelines)
                faults.append(suite.fault(text, "rows", row, "pipelines"))
    return faults


def _untaken(tasks: Mapping[str, TaskSpec], name: str, settings: str) -> str | None:
    """Returns what is wrong with parameters in a task's name, or None."""
    try:
        if settings:
            tasks[name].adjusted(settings)
    except ConfigError:  # the task itself is faulty, and reported as such
        return None
    except UserError as error:
        return str(error)
    return None


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
        plain["published"] = str(published.file.parent / at_home(str(published.value)))
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
                yield suite.fault(no_such("column", column, known), *place)
