"""Deadline for calls such as downloads, whose time-outs apply to each byte but not to the total."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float, call: Callable[[], T]) -> T:
    """Returns the result of a call; after a time-out, the call's thread continues to run.

    Raises:
        TimeoutError: The call took too long.
    """
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    # A daemon, so that a server that never answers does not keep the process alive.
    threading.Thread(target=work, daemon=True).start()
    try:
        return future.result(seconds)
    except TimeoutError as error:
        raise TimeoutError(str(error) or f"no complete answer within {seconds:g} s") from None
