"""The journal of one pipeline on one task: what resume reads.

One append-only JSON Lines file, in order of completion. Three kinds of line:

* `{"step": 3, "cursor": 40, "outputs": [[example, output], …]}`: what the reader said in one
  step, written before any combiner is told; `cursor` examples had been admitted by then.
* `{"done": 17, "prediction": …}` or `{"done": 17, "failure": …}`: a finished example.
* `{"retry": [4, 17]}`: these failed and are tried again; steps are counted from 0 again.

Examples are numbered in task order. A torn last line, left by a kill, is cut off.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from leporello.errors import UserError
from leporello.finished import Finished
from leporello.records import JSON

__all__ = ["Journal"]

_KINDS: tuple[frozenset[str], ...] = (
    frozenset({"done", "statistics"}),
    frozenset({"step", "cursor", "outputs"}),
    frozenset({"retry"}),
)
# Examples that may have been begun and not written down; a higher number is no example's.
_MOST_ALOFT = 10_000_000


class Journal:
    """Reads what an earlier process left, and appends to it.

    Attributes:
        path: The file.
        done: The finished examples, and where the line of each begins.
        failed: Which of them failed.
        cursors: How many examples had been admitted before each step of this pass.
        lines: Written by this process.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done = Finished()
        self.failed: set[int] = set()
        self.cursors: list[int] = []
        self.lines = 0
        self._recorded: dict[int, list[tuple[int, Mapping[str, JSON]]]] = {}
        self._end = self._load() if path.exists() else 0
        self._file: int | None = None

    def _load(self) -> int:
        """Takes every whole line; returns where they end."""
        end = 0
        with self.path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break  # torn by a kill
                try:
                    self._take(self._parse(line, end), end)
                except (ValueError, TypeError, KeyError, AttributeError):
                    raise self._damage(end) from None
                end += len(line)
        return end

    def _parse(self, line: bytes, offset: int) -> dict[str, Any]:
        try:
            row: dict[str, Any] = json.loads(line)
            if any(kind <= row.keys() for kind in _KINDS):
                return row
        except (ValueError, TypeError, AttributeError, RecursionError):
            pass
        raise self._damage(offset)

    def _damage(self, offset: int) -> UserError:
        return UserError(
            f"{self.path}: the journal is damaged at byte {offset}; to give up what it holds,"
            " delete the file and run again"
        )

    def _take(self, row: Mapping[str, Any], offset: int) -> None:
        if "done" in row:
            number = row["done"]
            possible = isinstance(number, int) and 0 <= number <= offset + _MOST_ALOFT
            if not possible or not {"prediction", "failure"} & row.keys():
                raise ValueError
            self._land(number, offset, failed="failure" in row)
        elif "retry" in row:
            self._begin_pass(row["retry"])
        else:
            for example, output in row["outputs"]:
                self._recorded.setdefault(example, []).append((row["step"], output))
            self.cursors.append(row["cursor"])

    def _land(self, example: int, offset: int, *, failed: bool) -> None:
        self.done.add(example, offset)
        self._recorded.pop(example, None)
        if failed:
            self.failed.add(example)

    def _begin_pass(self, examples: Collection[int]) -> None:
        for example in examples:
            self.done.remove(example)
        self.failed.difference_update(examples)
        self.cursors.clear()
        self._recorded.clear()

    @property
    def size(self) -> int:
        """Of its whole lines, in bytes."""
        return self._end

    def recorded(self, example: int) -> Sequence[tuple[int, Mapping[str, JSON]]]:
        """Returns (step, output) of every read of an unfinished example, in order."""
        return self._recorded.pop(example, ())

    def admitted_before(self, example: int) -> int | None:
        """Returns the first step that an example had been admitted before, or None."""
        step = bisect_right(self.cursors, example)  # cursors never go back
        return step if step < len(self.cursors) else None

    def step(self, cursor: int, outputs: Sequence[tuple[int, Mapping[str, JSON]]]) -> None:
        """Records what the reader said, on disk before this returns."""
        cursor = max([cursor, *self.cursors[-1:]])  # a limited run may have admitted fewer
        row = {"step": len(self.cursors), "cursor": cursor, "outputs": outputs}
        self._append(self.encode(row), sync=True)
        self.cursors.append(cursor)

    def finish(self, example: int, encoded: bytes, *, failed: bool = False) -> None:
        """Records a finished example.

        Args:
            example: Its number.
            encoded: Its row, with `done`, as `encode` gives it.
            failed: Whether the row holds a failure.
        """
        begin = self._end
        self._append(encoded)
        self._land(example, begin, failed=failed)

    def retry(self, examples: Collection[int]) -> None:
        """Begins another pass, in which these failed examples are tried again."""
        self._append(self.encode({"retry": sorted(examples)}))
        self._begin_pass(examples)

    @staticmethod
    def encode(row: Mapping[str, Any]) -> bytes:
        """Returns a row as a line.

        Raises:
            TypeError: It holds something that is no JSON.
            ValueError: It holds a number that is not finite.
        """
        line = json.dumps(row, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return line.encode("utf-8", "surrogatepass") + b"\n"

    def _append(self, line: bytes, *, sync: bool = False) -> None:
        """Writes a whole line or, where that fails, nothing."""
        try:
            file, written = self._opened(), 0
            while written < len(line):
                written += os.write(file, line[written:])
            if sync:
                os.fsync(file)
        except OSError as error:
            self._cut_off()
            raise UserError(
                f"{self.path}: cannot be written to: {error.strerror}; what is finished is kept:"
                " make room, and the same command goes on from here"
            ) from error
        self._end += len(line)
        self.lines += 1

    def _opened(self) -> int:
        """Opens the file for appending, a torn last line cut off; reading alone changes nothing."""
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            self._cut_off()
        return self._file

    def _cut_off(self) -> None:
        """Leaves whole lines only."""
        if self._file is not None and os.fstat(self._file).st_size > self._end:
            os.ftruncate(self._file, self._end)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yields the finished rows in task order."""
        return self.rows_of(self.done)

    def rows_of(self, examples: Iterable[int]) -> Iterator[dict[str, Any]]:
        """Yields the rows of these finished examples."""
        if not self.done:
            return
        with self.path.open("rb") as file:
            for example in examples:
                place = self.done.place(example)
                file.seek(place)
                yield self._parse(file.readline(), place)

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
