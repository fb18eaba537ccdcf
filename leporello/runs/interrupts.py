"""Ctrl-C and SIGTERM: the first asks for a clean end, the second ends at once."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from leporello.core.errors import Interrupted, Stopped

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Notes the first signal, and raises Interrupted at the second.

    Attributes:
        signal: Number of the first signal that came; 0 if none.
    """

    def __init__(self) -> None:
        self.signal = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _: FrameType | None) -> None:
        if self.signal:
            raise Interrupted
        self.signal = number
        # Not print: a handler may have come in the middle of one.
        os.write(2, b"\nending after what is being read; once more ends at once\n")

    def cancel(self) -> None:
        """Asks for a clean end, as a signal does."""
        self.signal = signal.SIGINT

    def check(self) -> None:
        """Raises `Stopped` if a signal has come."""
        if self.signal:
            raise Stopped("interrupted")
