"""Processes of a launcher (torchrun, accelerate): only the first one prints and writes files."""

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from leporello.core.errors import UserError

_INTERRUPTED = 130
# A launcher ends all processes once one has failed, so the others give the first time to report.
_PATIENCE = 5.0  # seconds
_MAIN_PATIENCE = 2.0  # seconds for the report of another process whose failure caused this one


def processes() -> int:
    """Returns the number of processes that a launcher started; 1 without a launcher."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main_process() -> bool:
    """Returns whether this process is the only one, or the first one of a launcher."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def main_process_only() -> Iterator[None]:
    """Silences all processes but the first, even if all fail; their UserErrors have the rank."""
    if processes() == 1:
        yield
        return
    try:
        with ExitStack() as stack:
            if not is_main_process():
                nowhere = stack.enter_context(Path(os.devnull).open("w"))
                stack.enter_context(redirect_stderr(nowhere))
                stack.enter_context(redirect_stdout(nowhere))
                logger = logging.getLogger("leporello")
                stack.callback(logger.setLevel, logger.level)
                logger.setLevel(logging.ERROR)
            yield
    except KeyboardInterrupt:
        if is_main_process():
            raise
        # 130, as shells report Ctrl-C; other tracebacks would hide the first process's message.
        sys.exit(_INTERRUPTED)
    except UserError as error:
        if is_main_process():
            raise
        # The first process usually fails for the same reason, and its message has no rank in it.
        time.sleep(_PATIENCE)
        raise UserError(f"process {os.environ['RANK']}: {error}") from error
    except Exception:
        time.sleep(_MAIN_PATIENCE if is_main_process() else _PATIENCE)
        raise


def destroy_process_group() -> None:
    """Closes the process group of PyTorch, if there is one."""
    if processes() == 1:
        return
    from torch import distributed

    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()
