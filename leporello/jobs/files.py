"""Files of a job in a run's directory: stores, and the results that are merged from them.

journal/PIPELINE/TASK/00000.sqlite     one store per shard
PIPELINE/TASK/predictions.jsonl failures.jsonl statistics.jsonl tracebacks/
PIPELINE/TASK/.merged.json             numbers and checksums of these results
"""

import json
import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leporello.core.errors import UserError
from leporello.core.files import atomically, read_json, read_rows, sha256, write_json
from leporello.core.hashing import digest
from leporello.core.passages import from_table
from leporello.core.records import JSON, Chunk, Document
from leporello.engine.database import FORM, StoreCounts, counts_in, finished_in, passages_in
from leporello.engine.results.finished import TRACEBACKS, ExampleStatistics, FinishedRow
from leporello.jobs.directory import RunDirectory
from leporello.jobs.results import Summary

RESULTS = ("predictions.jsonl", "failures.jsonl", "statistics.jsonl")
METRICS_FILE = "metrics.json"
_MERGED = ".merged.json"
_SUM = "sum"  # key of the checksum of a mark
_OLD = {"limit", "shards", "examples", "failures"}  # keys of older marks, without a checksum
_STORE = ".sqlite"
_log = logging.getLogger("leporello")


@dataclass(frozen=True)
class JobFiles:
    """Files of one pipeline on one task."""

    directory: RunDirectory
    pipeline: str
    task: str

    @property
    def folder(self) -> Path:
        """Folder of the results."""
        return self.directory.results(self.pipeline, self.task)

    @property
    def stores(self) -> Path:
        """Folder of the stores."""
        return self.directory.journals(self.pipeline, self.task)

    def store(self, shard: int) -> Path:
        """Returns the path of a shard's store."""
        return self.stores / f"{shard:05}{_STORE}"

    # -- progress ----------------------------------------------------------------------------

    def stored_shards(self) -> list[int]:
        """Returns the numbers of all shards that have a store, ascending."""
        stems = (path.stem for path in self.stores.glob(f"*{_STORE}"))
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def finished(self, run: str) -> dict[int, StoreCounts]:
        """Returns the counts of a run's finished shards by number, without damaged stores."""
        # Every row is checked, so that a damaged shard runs again instead of failing the merge.
        counts = {shard: counts_in(self.store(shard)) for shard in self.stored_shards()}
        return {
            shard: count
            for shard, count in counts.items()
            # A copied or renamed store would otherwise count as another shard.
            if (count.key.shard, count.key.run, count.key.form) == (shard, run, FORM)
            and count.examples == count.key.examples > 0
        }

    @property
    def mark(self) -> Mapping[str, Any]:
        """Numbers and checksums of the results; empty if they are out of date or incomplete."""
        path = self.folder / _MERGED
        if not path.exists():
            return {}
        with suppress(UserError, AttributeError):  # not JSON, or not an object
            fields: dict[str, Any] = read_json(path)
            # Runs of earlier versions have no checksum, and must remain readable.
            if fields.keys() <= _OLD or fields.pop(_SUM, None) == digest(fields):
                return fields
        # A changed mark could claim any results, and they are cheap to merge again from the stores.
        _log.warning("%s: changed since it was written; the results that it lists are redone", path)
        return {}

    def write_mark(self, numbers: Mapping[str, JSON]) -> None:
        """Marks the results as up to date, with their numbers and checksums."""
        mark: dict[str, JSON] = {**numbers, "sha256": self._checksums((*RESULTS, METRICS_FILE))}
        write_json(self.folder / _MERGED, {**mark, _SUM: digest(mark)}, indent=None)

    def _checksums(self, names: Iterable[str]) -> dict[str, JSON]:
        """Returns the SHA-256 of results by name; empty for missing files."""
        paths = {name: self.folder / name for name in names}
        return {name: sha256(path) if path.is_file() else "" for name, path in paths.items()}

    def changed(self, *names: str) -> str:
        """Returns the first result that changed since the run wrote it; empty without one."""
        hashes = self.mark.get("sha256", {})
        sums = self._checksums(name for name in names if name in hashes)
        return next((name for name, checksum in sums.items() if checksum != hashes[name]), "")

    def check(self, *names: str) -> None:
        """Raises UserError if a result of a finished run is missing or was changed."""
        if name := self.changed(*names):
            raise UserError(
                f"{self.folder / name}: is missing, or changed since the run wrote it; run the same"
                " command again, which restores it from the stores without any read"
            )

    @property
    def is_merged(self) -> bool:
        """Whether the results contain all finished examples."""
        return all((self.folder / name).exists() for name in RESULTS) and bool(self.mark)

    def is_complete(self, limit: int | None) -> bool:
        """Returns whether the results contain all examples up to a limit; False if not merged."""
        if not self.is_merged:
            return False
        merged_limit = self.mark["limit"]
        return merged_limit is None or (limit is not None and limit <= merged_limit)

    def unmark(self) -> None:
        """Marks the results as out of date, before a store changes, which a kill may interrupt."""
        (self.folder / _MERGED).unlink(missing_ok=True)

    def unmark_changed(self) -> None:
        """Marks the results as out of date if any is missing, or changed since it was written."""
        if self.changed(*RESULTS, METRICS_FILE):
            self.unmark()

    # -- finished examples -------------------------------------------------------------------

    def statistics(self) -> Iterator[ExampleStatistics]:
        """Yields the statistics of all finished examples, in the order of the task."""
        if self.is_merged:
            self.check("statistics.jsonl")
            rows = read_rows(self.folder / "statistics.jsonl")
            yield from map(ExampleStatistics.from_row, rows)
        else:
            yield from (row.statistics for row in self.rows())

    def examples(self) -> Iterator[FinishedRow]:
        """Yields all finished examples, in the order of the task.

        Raises:
            UserError: A file is damaged, or changed since it was written.
        """
        if not self.is_merged:
            yield from self.rows()
            return
        self.check(*RESULTS)
        has_stores = bool(self.stored_shards())  # a run of version 0.2 has none, and no reads
        stored = ((row.number, row.lines[1]) for row in self.rows())
        with ExitStack() as stack:
            files = [stack.enter_context((self.folder / name).open("rb")) for name in RESULTS]
            predictions, failures, statistics = files
            for line in statistics:
                example = ExampleStatistics.from_row(json.loads(line))
                number, reads = next(stored, (-1, b"")) if has_stores else (example.number, b"")
                if number != example.number:
                    raise UserError(
                        f"{self.stores}: lacks the example {example.id!r}; delete"
                        f" {self.folder / _MERGED} and run the same command again"
                    )
                failed = example.failure is not None
                first = next(failures if failed else predictions)
                yield FinishedRow(number, example.id, failed, (first, reads, line, b""))

    def row(self, example_id: str) -> FinishedRow | None:
        """Returns a finished example from its store, by id; None if it is not finished."""
        rows = (row for n in self.stored_shards() for row in finished_in(self.store(n), example_id))
        return next(rows, None)

    def passages(self, document: Document) -> tuple[Chunk, ...]:
        """Returns the passages that the run stored for a document; empty without an enricher."""
        for shard in self.stored_shards():
            if row := passages_in(self.store(shard), document.sha256):
                return from_table(document, row)
        return ()

    def rows(self) -> Iterator[FinishedRow]:
        """Yields all finished examples as the stores have them, in the order of the task."""
        for shard in self.stored_shards():
            yield from finished_in(self.store(shard))

    # -- results -----------------------------------------------------------------------------

    def results(self) -> list[Path]:
        """Returns the files that the driver writes: all but stores."""
        names = (_MERGED, *RESULTS, METRICS_FILE, "timings.json", TRACEBACKS)
        return [self.folder / name for name in names]

    def merge(self, summary: Summary, rows: Iterable[FinishedRow]) -> None:
        """Writes the results of all finished examples, and adds them to the summary."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.unmark()
        with ExitStack() as stack:
            # All are renamed together at the end, so they always have the same examples.
            files = [stack.enter_context(atomically(self.folder / n)).buffer for n in RESULTS]
            predictions, failures, statistics = files
            for row in rows:
                # A store has the lines of these files, which need no parsing (decision 49).
                (failures if row.failed else predictions).write(row.lines[0])
                statistics.write(row.lines[2])
                summary.add(row.statistics)
                if row.lines[3] and row.failure:  # equal tracebacks are in one file
                    path = self.folder / row.failure["traceback"]
                    path.parent.mkdir(exist_ok=True)
                    path.write_bytes(row.lines[3])

    def write_metrics(self, row: Mapping[str, JSON], *, limit: int | None, complete: bool) -> None:
        """Writes metrics.json; marks the results as up to date if every shard is finished."""
        write_json(self.folder / METRICS_FILE, {**row})
        if complete:
            counts = {name: row[name] for name in ("examples", "failures")}
            # The mark is written last: without it, a merge that was killed is repeated.
            self.write_mark({"limit": limit, **counts})

    def read(self, name: str) -> Mapping[str, Any]:
        """Returns a result file of one JSON object; empty if the run was killed before."""
        self.check(name)
        path = self.folder / name
        values: Mapping[str, Any] = read_json(path) if path.exists() else {}
        return values

    def discard(self) -> None:
        """Removes all stores and results."""
        shutil.rmtree(self.stores, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)
