"""The journal of one pipeline on one task: what resume reads.

One append-only JSON Lines file, in order of completion. Two kinds of line:

* `{"step": 3, "cursor": 40, "outputs": [[example, output], …]}`: what the reader said in one
  step, written before any combiner is told; `cursor` examples had been admitted by then.
* `{"done": 17, "prediction": …}` or `{"done": 17, "failure": …}`: a finished example.

Examples are numbered in task order. A torn last line, left by a kill, is cut off.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from leporello.errors import UserError
from leporello.records import JSON

__all__ = ["Journal"]


class Journal:
    """Reads what an earlier process left, and appends to it.

    Attributes:
        path: The file.
        done: Where the finished line of each example begins, by the example's number.
        cursors: How many examples had been admitted before each step.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done: dict[int, int] = {}
        self.cursors: list[int] = []
        self._recorded: dict[int, list[tuple[int, Mapping[str, JSON]]]] = {}
        self._end = self._load() if path.exists() else 0
        self._file: BinaryIO | None = None

    def _load(self) -> int:
        """Takes every whole line; returns where they end."""
        end = 0
        with self.path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break  # torn by a kill
                self._take(self._parse(line, end), end)
                end += len(line)
        return end

    def _parse(self, line: bytes, offset: int) -> dict[str, Any]:
        try:
            row: dict[str, Any] = json.loads(line)
            if {"done", "statistics"} <= row.keys() or {"step", "cursor", "outputs"} <= row.keys():
                return row
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        raise UserError(
            f"{self.path}: the journal is damaged at byte {offset}; to give up what it holds,"
            " delete the file and run again"
        )

    def _take(self, row: Mapping[str, Any], offset: int) -> None:
        if "done" in row:
            self.done[row["done"]] = offset
            self._recorded.pop(row["done"], None)
            return
        for example, output in row["outputs"]:
            self._recorded.setdefault(example, []).append((row["step"], output))
        self.cursors.append(row["cursor"])

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
        self.cursors.append(cursor)
        os.fsync(self._append(row).fileno())

    def finish(self, example: int, row: Mapping[str, JSON]) -> None:
        """Records a finished example."""
        begin = self._end
        self._append({"done": example, **row})
        self.done[example] = begin

    def _append(self, row: Mapping[str, Any]) -> BinaryIO:
        line = json.dumps(row, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        data = line.encode("utf-8", "surrogatepass") + b"\n"
        file = self._file or self._open()
        file.write(data)
        file.flush()
        self._end += len(data)
        return file

    def _open(self) -> BinaryIO:
        """Opens the file for appending, a torn last line cut off; reading alone changes nothing."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("ab")
        self._file.truncate(self._end)
        return self._file

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yields the finished rows in task order."""
        if not self.done:
            return
        with self.path.open("rb") as file:
            for example in sorted(self.done):
                file.seek(self.done[example])
                yield self._parse(file.readline(), self.done[example])

    def close(self) -> None:
        """Closes the file."""
        if self._file:
            self._file.close()
