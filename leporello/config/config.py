"""Pipelines, tasks and suites by name, each checked when a command uses it."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from leporello.config.specs import PipelineSpec, TaskSpec
from leporello.config.suites import Suite
from leporello.core.environment.classes import Lazy
from leporello.core.errors import UserError, build_all, no_such


def matching(name: str, pipelines: Collection[str]) -> list[str]:
    """Returns the pipelines that match a name, the name of a point, or a `*` pattern."""
    if name in pipelines:
        return [name]
    base = name.partition("@")[0]
    return [p for p in pipelines if p == base or fnmatch.fnmatchcase(p, base)]


@dataclass(frozen=True, slots=True)
class Config:
    """Pipelines, tasks and suites by name, with defaults.

    Attributes:
        pipelines: Pipelines by name; each is a list of points, a single one without a sweep.
        default_pipeline: Name of the default pipeline of `run`.
        default_task: Name of the task for pipelines without `tasks`.
        default_pipelines: Names of default pipelines by task, for tasks that have their own.
        collections: Paths, patterns and URLs of collections by name.
    """

    pipelines: Lazy[Sequence[PipelineSpec]]
    tasks: Lazy[TaskSpec]
    suites: Lazy[Suite]
    default_pipeline: str
    default_task: str
    default_pipelines: Mapping[str, str] = field(default_factory=dict)
    collections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def check_all(self) -> None:
        """Checks every declaration, including built-in ones; raises ConfigError with all faults."""
        sections: tuple[Lazy[Any], ...] = (self.pipelines, self.tasks, self.suites)
        build_all(sections, lambda section: section.of(section))

    def jobs(
        self, pipelines: Sequence[str], tasks: Sequence[str]
    ) -> list[tuple[PipelineSpec, TaskSpec]]:
        """Returns pairs of pipeline and task: named pipelines, or default ones, on each task."""
        if pipelines or not tasks:
            chosen = self.select(pipelines)
            return [(point, task) for point in chosen for task in self.select_tasks(point, tasks)]
        return [
            (point, task)
            for task in self.tasks_named(tasks)
            for point in self.select([self.default_pipelines.get(task.name, self.default_pipeline)])
        ]

    def select(self, names: Sequence[str]) -> list[PipelineSpec]:
        """Returns the points of these pipelines: names, names of points, or `*` patterns."""
        chosen: dict[str, PipelineSpec] = {}
        unknown = []
        candidates_of = {n: matching(n, self.pipelines) for n in names or [self.default_pipeline]}
        groups = self.pipelines.of(dict.fromkeys(chain.from_iterable(candidates_of.values())))
        for name, candidates in candidates_of.items():
            points = {p.name: p for candidate in candidates for p in groups[candidate]}
            fitting = [p for p in points if p == name] or fnmatch.filter(points, name)
            group = self.pipelines.get(name) or [points[point] for point in fitting]
            if not group:
                unknown.append(no_such("pipeline", name, {*self.pipelines, *points}))
            chosen.update((point.name, point) for point in group)
        if unknown:
            raise UserError("\n".join(unknown))
        return list(chosen.values())

    def select_tasks(self, pipeline: PipelineSpec, names: Sequence[str]) -> list[TaskSpec]:
        """Returns the named tasks, or else the pipeline's tasks, or else the default task."""
        return self.tasks_named(list(names) or list(pipeline.tasks) or [self.default_task])

    def tasks_named(self, names: Sequence[str]) -> list[TaskSpec]:
        """Returns the tasks that match these names or `*` patterns.

        `NAME@length=8192` is a task with another value of a parameter, which its name includes.
        """
        fitting = {
            name: self.tasks.of(fnmatch.filter(self.tasks, name)) or self._adjusted(name)
            for name in names
        }
        if unknown := [name for name, tasks in fitting.items() if not tasks]:
            raise UserError("\n".join(no_such("task", name, self.tasks) for name in unknown))
        return [
            *{name: task for tasks in fitting.values() for name, task in tasks.items()}.values()
        ]

    def _adjusted(self, name: str) -> dict[str, TaskSpec]:
        pattern, _, settings = name.partition("@")
        names = fnmatch.filter(self.tasks, pattern) if settings else []
        tasks = [task.adjusted(settings) for task in self.tasks.of(names).values()]
        return {task.name: task for task in tasks}
