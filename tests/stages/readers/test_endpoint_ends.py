"""Tests of interrupting and closing the reader Endpoint."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from command_line import ROOT
from endpoint_server import Request, endpoint, reads, reply, running, texts

from leporello.core.records import Output
from leporello.engine.failures import time_limit


@contextmanager
def interrupted_by_limit() -> Iterator[None]:
    """Interrupts the block like --example-timeout."""
    with pytest.raises(TimeoutError, match="took longer than"), time_limit(2):
        yield


@contextmanager
def interrupted_by_signal() -> Iterator[None]:
    """Interrupts the block like Ctrl-C, which background processes ignore by default."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    main = threading.main_thread().ident
    timer = threading.Timer(2, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("interrupted", [interrupted_by_limit, interrupted_by_signal])
def test_interruptions_end_all_requests(
    interrupted: Callable[[], AbstractContextManager[None]],
) -> None:
    def hanging(request: Request) -> None:
        request.hang() if request.prompt.startswith("bad") and not recovered.is_set() else reply(
            request
        )

    recovered = threading.Event()

    with running(hanging) as server:
        reader = endpoint(server, concurrency=4)
        names = ["a", "b", "c", *[f"bad {number}" for number in range(6)]]
        with interrupted():
            reader.read(reads(*names))
        recovered.set()
        assert texts(reader.read(reads(*names))) == [name.upper() for name in names]
        assert server.prompts()["a"] == 1


def test_a_process_ends_silently_with_closed_connections() -> None:
    """Threads of the reader do not delay the end."""
    script = (
        "import logging, sys; sys.path.insert(0, sys.argv[2])\n"
        # Warnings about slow callbacks depend on the machine.
        "logging.getLogger('asyncio').setLevel(logging.ERROR)\n"
        "from leporello.core.records import Read\n"
        "from readers import Endpoint\n"
        "reader = Endpoint(sys.argv[1], 'm')\n"
        "print(reader.read([Read((str(n),)) for n in range(20)])[0].output_tokens)\n"
    )
    with running(reply) as server:
        process = subprocess.run(
            [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", script,
             server.base_url, str(ROOT)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert (process.returncode, process.stdout.strip(), process.stderr) == (0, "2", "")


def test_a_reader_works_in_a_notebook() -> None:
    """A notebook already runs an event loop."""
    with running(reply) as server:
        reader = endpoint(server)

        async def cell() -> list[Output]:
            endpoint(server).read(reads("forgotten here"))
            return reader.read(reads("a"))

        assert texts(asyncio.run(cell())) == ["A"]
