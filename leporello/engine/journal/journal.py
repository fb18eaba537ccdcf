"""The journal of one pipeline on one shard: what resume reads, and what results are made from.

One append-only JSON Lines file, in order of completion. Its rows are the classes below:

* `{"shard": 3, …}`: the first line, which says what the journal is of;
* `{"step": 3, …}`: what the reader said in one step, written before any combiner is sent it;
* `{"done": 17, …}`: a finished example; its outputs stand in the steps before;
* `{"retry": [4, 17]}`: these failed and are tried again; steps are counted from 0 again;
* `{"sizes": …}`: sizes of batches that the reader changed on the way, since memory ran out.

Examples are numbered in the order of the shard. Each line ends with a checksum of it and of all
before it (`checksums`): one that does not fit, torn by a kill or changed since, ends what is
believed. What follows is done again.
"""

from __future__ import annotations

import logging
import os
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from leporello.core.errors import UserError
from leporello.core.records import Read
from leporello.engine.journal.checksums import believed, sealed
from leporello.engine.journal.rows import (
    FORM,
    FinishedRow,
    RetryRow,
    Row,
    ShardRow,
    SizesRow,
    StepRow,
    decode,
    encode,
)
from leporello.engine.journal.serialization import Reply, output_rows, outputs_to_columns

_log = logging.getLogger("leporello")

_SYNC = 1.0  # seconds between writings to the disk itself: what only a power cut can lose


@dataclass(frozen=True, slots=True)
class RecordedExample:
    """What the reader said to one read of an example that is not finished.

    Attributes:
        step: Number of the step.
        place: Place of the read among all of the example.
        output: Output as `output_rows` has it.
    """

    step: int
    place: int
    output: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FinishedExample:
    """A finished example with everything that a journal holds of it.

    Attributes:
        number: Number of the example in its task.
        row: The row itself.
        outputs: One output a read, in the form of `output_rows`; none if the example failed.
    """

    number: int
    row: FinishedRow
    outputs: Sequence[Mapping[str, Any]] = ()


class Journal:
    """Reads what an earlier process left, and appends to it.

    Attributes:
        path: Path of the file.
        of: Shard that the journal is of; None if there is nothing yet.
        done: Numbers of the finished examples.
        failed: Numbers of those that failed.
        cursors: Numbers of examples that had been admitted before each step of this pass.
        sizes: Sizes of batches that the reader changed on the way.
        lines: Number of lines written by this process.
    """

    def __init__(self, path: Path) -> None:
        """Reads what can be believed of the file, if there is one."""
        self.path = path
        self.of: ShardRow | None = None
        self.done: set[int] = set()
        self.failed: set[int] = set()
        self.cursors: list[int] = []
        self.sizes: Mapping[str, int] = {}
        self.lines = 0
        self._recorded: dict[int, list[RecordedExample]] = {}
        self._end, self._sum = _read(path, self._take) if path.exists() else (0, b"")
        self._file: int | None = None
        self._synced = 0.0

    # -- reading -----------------------------------------------------------------------------

    def _take(self, row: Row) -> None:
        if isinstance(row, ShardRow):
            self.of = row
        elif isinstance(row, FinishedRow):
            self._finished(row.done, failed=row.failure is not None)
        elif isinstance(row, RetryRow):
            self._begin_pass(row.retry)
        elif isinstance(row, SizesRow):
            self.sizes = row.sizes
        else:
            _record(self._recorded, row)
            self.cursors.append(row.cursor)

    def _finished(self, example: int, *, failed: bool) -> None:
        self.done.add(example)
        self._recorded.pop(example, None)
        if failed:
            self.failed.add(example)

    def _begin_pass(self, examples: Collection[int]) -> None:
        self.done.difference_update(examples)
        self.failed.difference_update(examples)
        self.cursors.clear()
        self._recorded.clear()

    def recorded(self, example: int) -> Sequence[RecordedExample]:
        """Returns what was said to an unfinished example, in the order of its reads."""
        return sorted(self._recorded.pop(example, ()), key=lambda record: record.place)

    def admitted_before(self, example: int) -> int | None:
        """Returns the first step that an example had been admitted before, or None."""
        step = bisect_right(self.cursors, example)  # cursors never go back
        return step if step < len(self.cursors) else None

    # -- writing -----------------------------------------------------------------------------

    def begin(self, of: ShardRow) -> None:
        """Says what the journal is of, in its first line; one of something else begins anew."""
        if self.of == of:
            return
        self.discard()
        self.append(of)
        self.of = of

    def discard(self) -> None:
        """Gives up all that the journal holds."""
        self.close()
        self.path.unlink(missing_ok=True)
        lines = self.lines
        self.__init__(self.path)  # type: ignore[misc]  # as if it had just been made
        self.lines = lines

    def step(
        self,
        cursor: int,
        replies: Sequence[tuple[int, int, Read, Reply]],
        notes: Mapping[int, str] | None = None,
    ) -> None:
        """Records what the reader said, before any combiner is sent it.

        Args:
            cursor: Number of examples that have been admitted.
            replies: Outputs, each with its example, its place among the example's reads, and the
                read.
            notes: Notes on examples, by their numbers, which join those of their stages.
        """
        cursor = max([cursor, *self.cursors[-1:]])  # a limited run may have admitted fewer
        outputs = outputs_to_columns([(read, reply) for _, _, read, reply in replies])
        of = _runs([(example, place) for example, place, _, _ in replies])
        told = {str(number): text for number, text in (notes or {}).items()}
        self.append(StepRow(len(self.cursors), cursor, of, outputs, told))
        self.cursors.append(cursor)

    def finish(self, example: int, line: bytes, *, failed: bool = False) -> None:
        """Records a finished example.

        Args:
            example: Number of the example.
            line: Its `FinishedRow`, as `encode` gives it.
            failed: Whether the row holds a failure.
        """
        self._write(line)
        self._finished(example, failed=failed)

    def retry(self, examples: Collection[int]) -> None:
        """Begins another pass, in which these failed examples are tried again."""
        self.append(RetryRow(sorted(examples)))
        self._begin_pass(examples)

    def keep_sizes(self, sizes: Mapping[str, int]) -> None:
        """Records the sizes that the reader uses, if they have changed."""
        if sizes != self.sizes:
            self.append(SizesRow(sizes))
            self.sizes = dict(sizes)

    def append(self, row: Row) -> None:
        """Writes a row."""
        self._write(encode(row))

    def _write(self, row: bytes) -> None:
        """Writes a whole line or, where that fails, nothing."""
        line, checksum = sealed(row, self._sum)
        try:
            file, written = self._opened(), 0
            while written < len(line):
                written += os.write(file, line[written:])
            if (now := time.monotonic()) - self._synced > _SYNC:
                os.fsync(file)
                self._synced = now
        except OSError as error:
            self._cut_off()
            raise UserError(
                f"{self.path}: cannot be written to: {error.strerror}; what is finished is kept:"
                " make room, and the same command goes on from here"
            ) from error
        self._end, self._sum = self._end + len(line), checksum
        self.lines += 1

    def _opened(self) -> int:
        """Opens the file for appending, behind what is believed; reading alone changes nothing."""
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            self._cut_off()
        return self._file

    def _cut_off(self) -> None:
        """Leaves whole lines only."""
        if self._file is not None and os.fstat(self._file).st_size > self._end:
            os.ftruncate(self._file, self._end)

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def finished_in(path: Path) -> list[FinishedExample]:
    """Returns the finished examples of a journal in the shard's order."""
    return contents(path)[1]


def contents(path: Path) -> tuple[ShardRow | None, list[FinishedExample]]:
    """Returns what a journal is of, and its finished examples in the shard's order."""
    recorded: dict[int, list[RecordedExample]] = {}
    finished: dict[int, FinishedExample] = {}
    notes: defaultdict[int, list[str]] = defaultdict(list)
    of: ShardRow | None = None

    def take(row: Row) -> None:
        nonlocal of
        if isinstance(row, ShardRow):
            of = row
        elif isinstance(row, StepRow):
            _record(recorded, row)
            for number, note in row.notes.items():
                notes[int(number)].append(note)
        elif isinstance(row, RetryRow):
            recorded.clear()
            notes.clear()
        elif isinstance(row, FinishedRow):
            if told := notes.pop(row.done, None):
                row = replace(row, notes=list(dict.fromkeys([*row.notes, *told])))
            first = of.first if of else 0
            finished[row.done] = _joined(first, row, recorded.pop(row.done, []))

    _read(path, take)
    return of, [finished[number] for number in sorted(finished)]


def _joined(first: int, row: FinishedRow, recorded: Sequence[RecordedExample]) -> FinishedExample:
    if row.reads is None:
        return FinishedExample(first + row.done, row)
    outputs = [record.output for record in sorted(recorded, key=lambda record: record.place)]
    if len(outputs) != row.reads["count"]:
        raise ValueError("not as many outputs as reads")
    return FinishedExample(first + row.done, row, outputs)


def _record(recorded: dict[int, list[RecordedExample]], row: StepRow) -> None:
    outputs = iter(output_rows(row.outputs, sum(count for _, _, count in row.of)))
    for example, place, count in row.of:
        recorded.setdefault(example, []).extend(
            RecordedExample(row.step, place + n, next(outputs)) for n in range(count)
        )


def _runs(reads: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Returns (example, place of the first, how many) of reads whose places follow each other."""
    runs: list[list[int]] = []
    for example, place in reads:
        if runs and runs[-1][0] == example and sum(runs[-1][1:]) == place:
            runs[-1][2] += 1
        else:
            runs.append([example, place, 1])
    return runs


def _read(path: Path, take: Callable[[Row], None]) -> tuple[int, bytes]:
    """Has rows of a file taken, as far as they are believed; returns where these end.

    Returns:
        The end in bytes, and the checksum of the last line.
    """
    end, checksum = 0, b""
    with path.open("rb") as file:
        for line, found in believed(file):
            row = decode(line)
            if not end and not (isinstance(row, ShardRow) and row.form == FORM):
                break
            take(row)
            end, checksum = file.tell(), found
        file.seek(end)
        left = file.read().count(b"\n")
    if left:
        _log.warning(
            "%s: %s behind byte %d changed since they were written, or are of another version: what"
            " they held is done again",
            path, "1 line" if left == 1 else f"{left} lines", end,
        )  # fmt: skip
    return end, checksum
