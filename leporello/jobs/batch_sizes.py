"""Sizes that a reader found itself, kept in manifest.json: a resumed run packs the same batches."""

from __future__ import annotations

from collections.abc import Mapping

from leporello.config import PipelineSpec
from leporello.jobs.directory import RunDirectory
from leporello.jobs.timings import reading_key


class BatchSizes:
    """The sizes of one reader in a run; other pipelines with an equal reader share them.

    Attributes:
        kept: Sizes by name, found by an earlier process or by this one.
    """

    def __init__(self, directory: RunDirectory, pipeline: PipelineSpec) -> None:
        """Looks up what is kept.

        Args:
            directory: Directory of the run.
            pipeline: The pipeline whose reader it is.
        """
        self._directory, self._key = (
            directory,
            " ".join(reading_key(pipeline, role) for role in pipeline.readers),
        )
        self.kept: Mapping[str, int] = directory.sizes().get(self._key, {})

    def keep(self, sizes: Mapping[str, int]) -> None:
        """Keeps the sizes in use."""
        if sizes != self.kept:
            self._directory.keep_sizes(self._key, sizes)
            self.kept = dict(sizes)
