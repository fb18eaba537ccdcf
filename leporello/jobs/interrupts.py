"""Ctrl-C, SIGTERM and SIGHUP: the first asks for a clean end, the second ends at once."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any

from leporello.core.environment import signals
from leporello.core.errors import Interrupted, Stopped


class Interrupts:
    """Notes the first signal, raises Interrupted at the second, and waits for nothing at more.

    Attributes:
        signal: Number of the first signal that came; 0 if none.
    """

    def __init__(self) -> None:
        self.signal = 0
        self._raised = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.getsignal(number) for number in signals.SIGNALS}
            signals.handle(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            if handler is not None:  # one of another language's, which Python cannot set
                signal.signal(number, handler)

    def _note(self, number: int, _: FrameType | None) -> None:
        if self._raised:
            signals.leave()
        if self.signal:
            self._raised = True
            raise Interrupted
        self.signal = number
        signals.remember(number)
        # Not print: a handler may have come in the middle of one.
        os.write(2, b"\nending after what is being read; once more ends at once\n")

    def cancel(self) -> None:
        """Asks for a clean end, as a signal does."""
        self.signal = signal.SIGINT

    def check(self) -> None:
        """Raises `Stopped` if a signal has come."""
        if self.signal:
            raise Stopped("interrupted")
