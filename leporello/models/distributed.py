"""The processes of a launcher (torchrun, accelerate): one of them speaks and writes."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from leporello.core.errors import UserError

_INTERRUPTED = 130
# A launcher ends all processes once one has failed: the first tells why, so others wait for that.
_PATIENCE = 5.0  # seconds
_MAIN_PATIENCE = 2.0  # what failed may be only that it lost another, which has told


def processes() -> int:
    """Returns how many processes a launcher began together; 1 without one."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main_process() -> bool:
    """Says whether this process is the only one, or the first that a launcher began."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def main_process_only() -> Iterator[None]:
    """Has only the first of several processes speak, also where all of them fail.

    Raises:
        UserError: As what is done here; another process than the first says which it is.
        SystemExit: In place of KeyboardInterrupt, in another process than the first.
    """
    if processes() == 1:
        yield
        return
    try:
        with _silenced():
            yield
    except KeyboardInterrupt:
        if is_main_process():
            raise
        sys.exit(_INTERRUPTED)
    except UserError as error:
        if is_main_process():
            raise
        time.sleep(_PATIENCE)
        raise UserError(f"process {os.environ['RANK']}: {error}") from error
    except Exception:
        time.sleep(_MAIN_PATIENCE if is_main_process() else _PATIENCE)
        raise


@contextmanager
def _silenced() -> Iterator[None]:
    """Keeps progress and notes of other processes than the first to themselves."""
    if is_main_process():
        yield
        return
    logger = logging.getLogger("leporello")
    level = logger.level
    with ExitStack() as stack:
        nowhere = stack.enter_context(Path(os.devnull).open("w"))
        stack.enter_context(redirect_stderr(nowhere))
        stack.enter_context(redirect_stdout(nowhere))
        stack.callback(logger.setLevel, level)
        logger.setLevel(logging.ERROR)
        yield


def destroy_process_group() -> None:
    """Closes what the processes talked through, if they did."""
    if processes() == 1:
        return
    from torch import distributed

    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()
