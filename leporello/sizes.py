"""Sizes that a reader found itself, kept in manifest.json: a resumed run packs the same batches."""

from __future__ import annotations

from leporello.config import PipelineSpec
from leporello.directory import RunDirectory
from leporello.reading import batching_of
from leporello.timings import reading_key

__all__ = ["Sizes"]


class Sizes:
    """The sizes of one reader in a run; other pipelines with an equal reader share them."""

    def __init__(self, directory: RunDirectory, pipeline: PipelineSpec, reader: object) -> None:
        """Has the reader use the sizes that an earlier process kept.

        Args:
            directory: Of the run.
            pipeline: Whose reader it is.
            reader: Built.
        """
        self._directory, self._key = directory, reading_key(pipeline)
        self._batching = batching_of(reader)
        self._kept = directory.sizes().get(self._key, {})
        if self._batching:
            self._batching.settle(self._kept)

    def keep(self) -> None:
        """Keeps the sizes in use; they are found first, for which a model may be loaded."""
        sizes = dict(self._batching.sizes()) if self._batching else {}
        if sizes != self._kept:
            self._directory.keep_sizes(self._key, sizes)
            self._kept = sizes
