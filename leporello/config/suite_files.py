"""Reads suites from files, without importing the classes of pipelines and tasks."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from leporello.config.layers import Layers
from leporello.config.parameters import structured
from leporello.config.specs import TaskSpec
from leporello.config.suites import Suite
from leporello.core.environment.input_limits import COLUMNS
from leporello.core.errors import ConfigError, Fault, UserError, no_such
from leporello.core.files import at_home
from leporello.core.yaml.tree import ConfigSource, Tree


def suite_named(name: str, files: Sequence[ConfigSource] = ()) -> Suite:
    """Returns a suite."""
    layers = Layers(files)
    if name not in layers.suites:
        raise UserError(no_such("suite", name, layers.suites))
    suite = suite_of(layers, name)
    if faults := [*_unknown_columns(suite)]:
        raise ConfigError(faults)
    return suite


def suite_of(layers: Layers, name: str) -> Suite:
    """Returns a suite of the right structure; raises ConfigError."""
    tree = layers.suites[name]
    columns, by = (tree.at(key).items for key in ("columns", "by"))
    count = len(columns) * max(1, sum(len(values.items) for values in by.values()))
    if count > COLUMNS:
        text = f"suites.{name}: has {count:,} columns; at most {COLUMNS:,} are allowed"
        raise ConfigError([tree.fault(text)])
    return structured(Suite, _completed(name, tree), tree, f"suites.{name}")


# Their scores change with the judging model, so an average of them is comparable to no paper.
_OPINIONS = ("judge", "citations")  # metrics that a reader computes


def unknown_names(
    suite: Suite, pipelines: Collection[str], tasks: Mapping[str, TaskSpec]
) -> Iterator[Fault]:
    """Yields faults for tasks, pipelines and columns that a suite names but that do not exist."""
    yield from _unknown_columns(suite)
    checked: set[str] = set()
    for key, column in suite.columns.items():
        for task in {task: None for task, _ in column.parts}:
            name, _, settings = task.partition("@")
            if name not in tasks:
                yield suite.fault(no_such("task", task, tasks), "columns", key)
            elif settings not in checked and (problem := _problem_with(tasks, name, settings)):
                yield suite.fault(problem, "by" if suite.by else "columns", key)
            checked.add(settings)  # each value is reported once
        if suite.average == "mean" and column.score.partition("[")[0] in _OPINIONS:
            text = f"{column.score} is an opinion of a reader and cannot be averaged"
            yield suite.fault(text, "columns", key)
    for row, declared in suite.rows.items():
        name = next(iter(suite.tasks), "").partition("@")[0]
        if name in tasks and (problem := _problem_with(tasks, name, declared.settings)):
            yield suite.fault(problem, "rows", row, "settings")
        for pipeline in dict.fromkeys(suite.pipelines(row).values()):
            if pipeline not in pipelines:
                text = no_such("pipeline", pipeline, pipelines)
                yield suite.fault(text, "rows", row, "pipelines")


def _problem_with(tasks: Mapping[str, TaskSpec], name: str, settings: str) -> str | None:
    try:
        if settings:
            tasks[name].adjusted(settings)
    except ConfigError:  # faults of the task are reported with the task
        return None
    except UserError as error:
        return str(error)
    return None


def _completed(name: str, tree: Tree) -> dict[str, Any]:
    """Returns the suite as it is in the file, completed with defaults that depend on names."""
    plain: Any = tree.plain()
    split = plain.get("split", "test")
    if isinstance(columns := plain.get("columns"), dict):
        columns, means = _columns_by_value(name, columns, plain.get("by"))
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


def _columns_by_value(
    suite: str,
    columns: dict[str, Any],
    by: Any,  # noqa: ANN401 -- any YAML
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Returns the columns for each value of a parameter, and their names by label."""
    expanded: dict[str, Any] = {}
    names: dict[str, list[str]] = {}
    for parameter, values in by.items() if isinstance(by, dict) else ():
        for label, value in values.items() if isinstance(values, dict) else ():
            for key, column in columns.items():
                base = {"task": f"{suite}/{key}"} | (column if isinstance(column, dict) else {})
                name = f"{key}@{parameter}={value}"
                expanded[name] = base | {"task": f"{base['task']}@{parameter}={value}"}
                names.setdefault(label, []).append(name)
    return expanded or columns, names


def _unknown_columns(suite: Suite) -> Iterator[Fault]:
    """Yields faults for columns that rows, groups or the submission name but that do not exist."""
    used: dict[tuple[str, ...], Iterable[str]] = {
        ("rows", row, "pipelines"): suite.pipelines(row) for row in suite.rows
    }
    used["submission", "tasks"] = suite.submission.tasks if suite.submission else ()
    used |= {("groups", t, g): m for t, gs in suite.groups.items() for g, m in gs.items()}
    for place, columns in used.items():
        allowed = {*suite.columns}
        if place[0] == "groups":  # a group may contain earlier groups
            groups = [*suite.groups[place[1]]]
            allowed |= {*groups[: groups.index(place[2])]}
        for column in columns:
            if column not in allowed:
                yield suite.fault(no_such("column", column, allowed), *place)
