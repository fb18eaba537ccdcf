"""The files of one pipeline on one task in a run's directory: journals, parts, merged results.

journal/PIPELINE/TASK/00000.jsonl            one a shard; stays
journal/PIPELINE/TASK/00000.passages.jsonl   likewise, where the pipeline has an enricher
PIPELINE/TASK/.parts/00000/                  what a finished shard adds to each file below
PIPELINE/TASK/predictions.jsonl calls.jsonl failures.jsonl statistics.jsonl tracebacks/
PIPELINE/TASK/.merged.json                   what these hold; parts are removed then
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from leporello.core.environment.json_table import JsonTable
from leporello.core.files import atomically, read_rows, write_json
from leporello.core.hashing import digest
from leporello.core.records import JSON
from leporello.engine.journal.journal import FinishedExample, Journal, contents
from leporello.engine.journal.serialization import calls_from_row, calls_row
from leporello.jobs.checksums import (
    MERGED,
    changed,
    check_results,
    checksums,
    read_mark,
    write_mark,
)
from leporello.jobs.directory import RunDirectory
from leporello.jobs.results import ExampleStatistics, Summary

_log = logging.getLogger("leporello")

RESULTS = ("predictions.jsonl", "calls.jsonl", "failures.jsonl", "statistics.jsonl")
METRICS_FILE = "metrics.json"
_COUNTS = "shard.json"
_TRACEBACKS = "tracebacks"
_BLOCK = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How much of a shard is finished.

    Attributes:
        examples: Number of examples finished, failed ones included.
        failures: Number of those that failed.
        run: What the shard's journal says that it is of.
    """

    examples: int = 0
    failures: int = 0
    run: str = ""


@dataclass(frozen=True)
class ExampleFiles:
    """A finished example as the results hold it.

    Attributes:
        statistics: Its row of statistics.jsonl.
        prediction: Its row of predictions.jsonl; None if it failed.
        columns: Its calls as columns; None if it failed.
        failure: Its row of failures.jsonl; None unless it failed.
    """

    statistics: ExampleStatistics
    prediction: Mapping[str, Any] | None = None
    columns: Mapping[str, Any] | None = None
    failure: Mapping[str, Any] | None = None

    @cached_property
    def calls(self) -> list[dict[str, Any]]:
        """One mapping a read: its parts, and its `output`."""
        return calls_from_row(self.columns) if self.columns else []


@dataclass(frozen=True)
class JobFiles:
    """The files of one pipeline on one task.

    Attributes:
        directory: Directory of the run.
        pipeline: Name of the pipeline.
        task: Name of the task.
    """

    directory: RunDirectory
    pipeline: str
    task: str

    @property
    def folder(self) -> Path:
        """Folder of the results."""
        return self.directory.results(self.pipeline, self.task)

    @property
    def journals(self) -> Path:
        """Folder of the journals."""
        return self.directory.journals(self.pipeline, self.task)

    def journal(self, shard: int) -> Path:
        """Returns the journal of a shard."""
        return self.journals / f"{shard:05}.jsonl"

    def passages(self, shard: int) -> Path:
        """Returns the journal of what the pipeline's enricher makes of a shard's documents."""
        return self.journals / f"{shard:05}.passages.jsonl"

    def part(self, shard: int) -> Path:
        """Returns the folder of what a finished shard adds to the results."""
        return self._parts / f"{shard:05}"

    @property
    def _parts(self) -> Path:
        return self.folder / ".parts"

    @property
    def _merged(self) -> Path:
        return self.folder / MERGED

    @property
    def later(self) -> Path:
        """What metrics say that are computed once all is read: a line an example."""
        return self.folder / ".later.jsonl"

    # -- what is finished --------------------------------------------------------------------

    def finished(self) -> dict[int, RowCounts]:
        """Returns the shards that are finished, by number."""
        merged = read_mark(self.folder).get("shards", {})
        finished = {int(number): RowCounts(*counts) for number, counts in merged.items()}
        for number in _numbers(self._parts):
            if (counts := _counts(self.part(number))).examples:
                finished[number] = counts
        return finished

    def lost(self) -> dict[int, RowCounts]:
        """Returns the finished shards of which neither part nor journal holds all; what they hold.

        Merged results alone are no source: what is done again is merged from the journals.
        """
        lost = {}
        for number, counts in self.finished().items():
            part, journal = self.part(number), self.journal(number)
            if part.exists() and _is_whole(part):
                continue
            held = Journal(journal) if journal.is_file() else None
            of = held and held.of and (held.of.shard, counts.run and held.of.run)
            done = len(held.done) if held and of == (number, counts.run) else 0
            if done < counts.examples:
                _log.warning("%s: holds %d of %d examples", journal, done, counts.examples)
                lost[number] = RowCounts(done)
        return lost

    def begun(self) -> list[int]:
        """Returns the numbers of all shards that have a journal, ascending."""
        return sorted(_numbers(self.journals))

    @property
    def is_merged(self) -> bool:
        """Whether the results hold everything that is finished."""
        exists = all((self.folder / name).exists() for name in RESULTS)
        return exists and not self._parts.exists() and bool(read_mark(self.folder))

    def is_complete(self, limit: int | None) -> bool:
        """Says whether nothing is left to do; of a run that is not merged, this is not known.

        Args:
            limit: Examples that are wanted at most; None wants all.
        """
        if not self.is_merged:
            return False
        merged_limit = read_mark(self.folder)["limit"]
        return merged_limit is None or (limit is not None and limit <= merged_limit)

    def statistics(self) -> Iterator[ExampleStatistics]:
        """Yields what tables need of all finished examples, in task order.

        Raises:
            UserError: A file is damaged, or changed since it was written.
        """
        check_results(self.folder, "statistics.jsonl")
        for folder in self._folders():
            yield from map(ExampleStatistics.from_row, read_rows(folder / "statistics.jsonl"))

    def examples(self) -> Iterator[ExampleFiles]:
        """Yields all finished examples with everything that is known of them, in task order.

        Raises:
            UserError: A file is damaged, or changed since it was written.
        """
        check_results(self.folder, *RESULTS)
        for folder in self._folders():
            predictions, calls, failures, statistics = (read_rows(folder / n) for n in RESULTS)
            for example in map(ExampleStatistics.from_row, statistics):
                if example.failure:
                    yield ExampleFiles(example, failure=next(failures))
                else:
                    yield ExampleFiles(example, next(predictions), next(calls)["calls"])

    def example(self, example_id: str) -> ExampleFiles | None:
        """Returns one finished example; None if it is not finished."""
        return next((e for e in self.examples() if e.statistics.id == example_id), None)

    def _folders(self) -> Iterator[Path]:
        """Yields the folders that hold the results: the merged ones, or each shard's."""
        if self.is_merged:
            yield self.folder
        else:
            yield from (part for _, part in self._sources())

    def results(self) -> list[Path]:
        """Returns what the driver writes, or has removed: all but journals and parts."""
        names = (METRICS_FILE, "timings.json", "verify.json", _TRACEBACKS)
        paths = [self._merged, *(self.folder / name for name in (*RESULTS, *names))]
        return paths if self._parts.exists() else [*paths, self._parts]

    # -- parts -------------------------------------------------------------------------------

    def write_part(self, shard: int, to: Path | None = None) -> RowCounts:
        """Writes what a shard adds to the results, from its journal alone.

        Args:
            shard: Number of the shard.
            to: Folder; the shard's part by default, renamed into place.

        Raises:
            OSError: It cannot be written.
        """
        folder = to or self.part(shard)
        # Renamed when it is whole: a part that is there is finished, whenever a process is killed.
        partial = folder.with_name(f".{folder.name}.part")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        of, examples = contents(self.journal(shard))
        _write(partial, examples)
        failures = sum(example.row.failure is not None for example in examples)
        counts = RowCounts(len(examples), failures, of.run if of else "")
        hashes: JSON = {**checksums(partial, RESULTS)}
        write_mark(partial, {**asdict(counts), "sha256": hashes}, _COUNTS)
        shutil.rmtree(folder, ignore_errors=True)  # of an earlier pass
        partial.rename(folder)
        return counts

    # -- results -----------------------------------------------------------------------------

    def merge(
        self,
        summary: Summary,
        *,
        limit: int | None,
        complete: bool,
        later: JsonTable | None = None,
    ) -> None:
        """Makes the results of what is finished, in task order, in bounded memory.

        Args:
            summary: Summary that is told of each finished example.
            limit: Examples that were wanted at most; None wants all.
            complete: Whether every shard is finished; parts are removed then.
            later: Statistics that no part holds, by the example's number; None if there are none.

        Raises:
            OSError: The results cannot be written.
        """
        counts: dict[str, JSON] = {}
        self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            files = {n: stack.enter_context(atomically(self.folder / n)) for n in RESULTS}
            for number, part in self._sources():
                for name, file in files.items():
                    if name == "statistics.jsonl":
                        continue
                    with (part / name).open(
                        encoding="utf-8", errors="surrogatepass", newline="\n"
                    ) as source:
                        shutil.copyfileobj(source, file, _BLOCK)
                for row in read_rows(part / "statistics.jsonl"):
                    known = {**row["statistics"], **((later and later.get(row["number"])) or {})}
                    whole = {**row, "statistics": known}
                    files["statistics.jsonl"].write(_line(whole))
                    summary.add(ExampleStatistics.from_row(whole))
                _take_tracebacks(part, self.folder)
                counts[str(number)] = [*asdict(_counts(part)).values()]
        # The mark first: killed in between, parts are there twice, and never missing.
        if complete:
            hashes: dict[str, JSON] = {**checksums(self.folder, RESULTS)}
            write_mark(self.folder, {"limit": limit, "shards": counts, "sha256": hashes})
            shutil.rmtree(self._parts, ignore_errors=True)
        else:
            self._merged.unlink(missing_ok=True)

    def write_metrics(self, row: Mapping[str, JSON]) -> None:
        """Writes metrics.json, whose checksum joins those of finished results."""
        write_json(self.folder / METRICS_FILE, {**row})
        if mark := read_mark(self.folder):
            mark["sha256"] = {**mark["sha256"], **checksums(self.folder, [METRICS_FILE])}
            write_mark(self.folder, mark)

    @property
    def has_metrics(self) -> bool:
        """Whether metrics.json is there, as it was written."""
        there = (self.folder / METRICS_FILE).exists()
        return there and not changed(self.folder, METRICS_FILE)

    def _sources(self) -> Iterator[tuple[int, Path]]:
        """Yields the part of each shard; of one that has none, what its journal holds by now."""
        parts = set(_numbers(self._parts))
        for number in sorted({*parts, *self.begun()}):
            if number in parts and _is_whole(self.part(number)):
                yield number, self.part(number)
                continue
            with TemporaryDirectory() as folder:
                part = Path(folder) / "part"
                self.write_part(number, part)
                yield number, part

    def discard(self) -> None:
        """Removes everything."""
        shutil.rmtree(self.journals, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def _counts(part: Path) -> RowCounts:
    mark = read_mark(part, _COUNTS)
    return RowCounts(mark.get("examples", 0), mark.get("failures", 0), mark.get("run", ""))


def _is_whole(part: Path) -> bool:
    """Says whether a part is as it was written; else it is made again from its journal."""
    if read_mark(part, _COUNTS).get("sha256") == checksums(part, RESULTS):
        return True
    _log.warning("%s: changed since it was written: it is made again from its journal", part)
    return False


def _numbers(folder: Path) -> Iterator[int]:
    """Yields the numbers of shards that a folder has something of."""
    if folder.is_dir():
        stems = (path.name.removesuffix(".jsonl") for path in folder.iterdir())
        yield from (int(stem) for stem in stems if stem.isdecimal())


def _write(folder: Path, examples: Iterable[FinishedExample]) -> None:
    """Writes the lines of these examples into all files of results."""
    lines: dict[str, list[str]] = {name: [] for name in RESULTS}
    for example in examples:
        row = example.row
        lines["statistics.jsonl"].append(_line(ExampleStatistics.of(example).row()))
        if row.failure is not None:
            failure = _with_traceback_file(folder, row.failure)
            lines["failures.jsonl"].append(_line(failure))
            continue
        assert row.prediction is not None
        assert row.reads is not None
        calls = calls_row(row.reads, example.outputs)
        lines["predictions.jsonl"].append(_line(row.prediction))
        lines["calls.jsonl"].append(
            _line({"id": row.prediction["id"], "calls": calls, "notes": [*row.notes]})
        )
    for name, texts in lines.items():
        (folder / name).write_text("".join(texts), encoding="utf-8", errors="backslashreplace")


def _with_traceback_file(folder: Path, failure: Mapping[str, Any]) -> dict[str, JSON]:
    """Returns the failure with a file in place of the traceback; equal ones share it."""
    trace = failure["traceback"]
    if not trace:
        return {**failure}
    path = folder / _TRACEBACKS / f"{digest(trace)}.txt"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text(trace, encoding="utf-8", errors="backslashreplace")
    return {**failure, "traceback": f"{_TRACEBACKS}/{path.name}"}


def _take_tracebacks(part: Path, folder: Path) -> None:
    if (part / _TRACEBACKS).is_dir():
        shutil.copytree(part / _TRACEBACKS, folder / _TRACEBACKS, dirs_exist_ok=True)


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"
