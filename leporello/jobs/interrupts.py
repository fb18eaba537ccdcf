"""Handlers of Ctrl-C, SIGTERM and SIGHUP: the first signal stops cleanly, the second at once."""

import os
import signal
import threading
from types import FrameType
from typing import Any, Self

from leporello.core.environment import process
from leporello.core.errors import Interrupted, Stopped


class Interrupts:
    """Records the first signal, raises Interrupted at the second, and exits at the third."""

    def __init__(self) -> None:
        self.signal = 0  # number of the first one
        self._raised = False
        self._earlier_handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        # Python installs handlers only in the main thread; a server's threads use `cancel`.
        if threading.current_thread() is threading.main_thread():
            self._earlier_handlers = {
                number: signal.getsignal(number) for number in process.SIGNALS
            }
            process.handle(self._record)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._earlier_handlers.items():
            if handler is not None:  # None: not set by Python, which cannot restore it
                signal.signal(number, handler)

    def _record(self, number: int, _: FrameType | None) -> None:
        if self._raised:
            process.leave()
        if self.signal:
            self._raised = True
            raise Interrupted
        self.signal = number
        process.remember(number)
        # Not print: the signal may have interrupted a print.
        os.write(2, b"\nstopping after the current read; interrupt again to stop at once\n")

    def cancel(self) -> None:
        """Requests a clean stop, as a signal does."""
        self.signal = signal.SIGINT

    def check(self) -> None:
        """Raises `Stopped` after a signal."""
        if self.signal:
            raise Stopped("interrupted")
