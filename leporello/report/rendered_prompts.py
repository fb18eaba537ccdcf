"""Renders the exact inputs of readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leporello.config import Config, Pipeline, load_config
from leporello.core.errors import UserError
from leporello.core.protocols import RendersPrompt
from leporello.core.records import Example
from leporello.engine.results.serialization import read_from_row
from leporello.jobs.directory import RunDirectory
from leporello.jobs.manifest import named_files
from leporello.report.join import JobRows

_NO = "exact inputs are left out"
_MOST = 20_000  # characters of one input
_ALL = 40_000  # characters of all inputs of an example


@dataclass
class Prompts:
    """Renders inputs; after the first failure of a job's reader, it skips that job."""

    notes: list[str] = field(default_factory=list)  # reasons why inputs are left out, one per job
    _stages: dict[JobRows, Pipeline | None] = field(default_factory=dict)
    _configs: dict[Path, Config] = field(default_factory=dict)

    def config(self, run: Path) -> Config:
        """Returns a run's config, loaded once.

        Raises:
            ConfigError: A file or class that the config names does not exist any more.
        """
        if run not in self._configs:
            self._configs[run] = load_config([RunDirectory(run).config])
        return self._configs[run]

    def render(
        self, job: JobRows, calls: Sequence[Mapping[str, Any]], example: Example
    ) -> list[str | None]:
        """Returns the input of each call, shortened in the middle if it is long; or None."""
        if job not in self._stages:
            self._stages[job] = self._built(job)
        prompts: list[str | None] = []
        remaining = _ALL
        for call in calls:
            stages = self._stages[job] if remaining > 0 else None
            prompt = self._rendered(job, stages, call, example) if stages else None
            remaining -= len(prompt or "")
            prompts.append(prompt)
        return prompts

    def _built(self, job: JobRows) -> Pipeline | None:
        directory = RunDirectory(job.run)
        try:
            [point] = self.config(job.run).select([job.pipeline])
            stages = point.build()
            recorded = directory.jobs()[job.pipeline, job.task].get("files", {})
            has_changed = named_files(point) != recorded
        except UserError as error:
            self._leave_out(job, str(error))
            return None
        if has_changed:
            self._leave_out(job, "a file of its stages has changed since the run")
            return None
        return stages

    def _rendered(
        self, job: JobRows, stages: Pipeline, call: Mapping[str, Any], example: Example
    ) -> str | None:
        reader = stages.reader_of(call["role"])
        if not isinstance(reader, RendersPrompt):
            return None  # it reads the passages without a prompt
        try:
            text = reader.render(read_from_row(call, example.document))
        except Exception as error:  # a plug-in, or a model that is not on this machine
            self._leave_out(job, f"{type(error).__name__}: {error}")
            self._stages[job] = None
            return None
        return _shortened(text)

    def _leave_out(self, job: JobRows, reason: str) -> None:
        self.notes.append(f"{job.label} on {job.task}: {_NO}: {reason}")


def _shortened(text: str) -> str:
    if len(text) <= _MOST:
        return text
    half = _MOST // 2
    return f"{text[:half]}\n[… {len(text) - _MOST:,} characters left out …]\n{text[-half:]}"
