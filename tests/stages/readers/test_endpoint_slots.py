"""Tests of the reader Endpoint in many threads: slots, refusals, limits, interruptions and ends."""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest
from command_line import ROOT
from endpoint_server import Request, endpoint, reads, reply, running, sliding, texts

from leporello.core.calls.budget import Budget
from leporello.core.errors import BudgetSpentError, UserError
from leporello.core.protocols import SharesLimits
from leporello.core.records import Output, Read
from leporello.engine.failures import time_limit
from leporello.readers.endpoint.responses import EndpointError

SLOTS = 32


def names(count: int) -> list[str]:
    return [f"input {number}" for number in range(count)]


def test_each_slot_has_one_request_under_way() -> None:
    together = threading.Barrier(SLOTS)

    def all_at_once(request: Request) -> None:
        together.wait(30)  # waits for one request per slot
        reply(request)

    with running(all_at_once) as server:
        reader = endpoint(server, concurrency=SLOTS)
        assert (reader.slots, reader.depends_on_batch) == (SLOTS, False)
        outputs = sliding(reader, reads(*names(8 * SLOTS)))
        assert texts(outputs) == [name.upper() for name in names(8 * SLOTS)]
        assert server.most == SLOTS
        assert server.connections == SLOTS


def test_equal_prompts_of_several_threads_are_sent_once() -> None:
    ready = threading.Barrier(SLOTS + 1)

    def when_all_are_there(request: Request) -> None:
        ready.wait(30)
        reply(request)

    with running(when_all_are_there) as server:
        reader = endpoint(server, concurrency=SLOTS)

        def read(_: int) -> str:
            ready.wait(30)
            return reader.read(reads("a"))[0].text

        with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(SLOTS) as pool:
            future = first.submit(lambda: reader.read(reads("a"))[0].text)
            assert set(pool.map(read, range(SLOTS))) == {"A"}
            assert future.result() == "A"
        assert server.prompts == {"a": 1}


def test_reads_can_be_cancelled_from_another_thread() -> None:
    hanging = threading.Barrier(SLOTS + 1)

    def hang(request: Request) -> None:
        if request.prompt == "good":
            reply(request)
        else:
            hanging.wait(30)
            request.hang()

    with running(hang) as server, ThreadPoolExecutor(2 * SLOTS) as pool:
        reader = endpoint(server, concurrency=SLOTS)
        assert isinstance(reader, SharesLimits)
        futures = [pool.submit(reader.read, [read]) for read in reads(*names(2 * SLOTS))]
        hanging.wait(30)
        reader.cancel()
        assert {type(future.exception(30)) for future in futures} == {CancelledError}
        assert texts(reader.read(reads("good"))) == ["GOOD"]


def test_the_number_of_concurrent_requests_adapts_to_a_server_that_refuses_some() -> None:
    def narrow(request: Request) -> None:
        if request.server.under_way > 6:
            request.fail(429)
        else:
            request.server.ending.wait(0.004)
            reply(request)

    with running(narrow) as server:
        outputs = sliding(endpoint(server, concurrency=SLOTS, retries=0), reads(*names(400)))
        assert texts(outputs) == [name.upper() for name in names(400)]
        assert len(server.requests) < 1.5 * 400


@pytest.fixture
def pass_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Function that lets seconds pass on the clock of event loops."""
    steps = list[float]()
    monkeypatch.setattr(asyncio.BaseEventLoop, "time", lambda _: time.monotonic() + sum(steps))
    return steps.append


def test_the_run_stops_if_a_server_only_refuses_for_too_long(
    pass_time: Callable[[float], None],
) -> None:
    def refuse(request: Request) -> None:
        pass_time(30)
        request.fail(429, {"message": "slow down"})

    with running(refuse) as server:
        reader = endpoint(server, patience=100, timeout=9999, concurrency=4)
        outputs = sliding(reader, reads(*names(4)))
        assert {type(output) for output in outputs} == {UserError}
        count = len(server.requests)
        with pytest.raises(UserError):
            reader.read(reads("later"))
        assert len(server.requests) > count + 1  # the time starts again
        assert str(outputs[0]) == (
            "the server answered 429: slow down; it only answers this, and patience is 100 s;"
            " run the same command again to resume"
        )


def test_the_time_before_the_first_refusal_is_not_part_of_the_patience(
    pass_time: Callable[[float], None],
) -> None:
    def slow(request: Request) -> None:
        if request.prompt == "queued" and request.times <= 2:
            request.fail(429)
        else:
            pass_time(1000)
            reply(request)

    with running(slow) as server:
        reader = endpoint(server, patience=100, timeout=9999, concurrency=1, retries=0)
        assert texts(reader.read(reads("first", "queued"))) == ["FIRST", "QUEUED"]


def test_a_wait_longer_than_patience_is_an_error_at_once() -> None:
    with running(lambda request: request.fail(429, Retry_After="99999999")) as server:
        reader = endpoint(server, patience=0.3, concurrency=4)
        messages = []
        for name in ("first", "later"):
            with pytest.raises(UserError, match="asks to wait 10000000 s") as error:
                reader.read(reads(name))
            messages.append(str(error.value))
        assert messages[0] == messages[1]
        assert len(server.requests) == 1


def test_a_single_input_that_is_always_refused_does_not_affect_others(
    pass_time: Callable[[float], None],
) -> None:
    failed = threading.Event()

    def all_but_one(request: Request) -> None:
        if request.prompt == "bad":
            request.fail(429)
        else:
            pass_time(60)
            reply(request)

    def inputs() -> Iterator[Read]:
        number = 0
        while not failed.is_set():
            number += 1
            yield from reads(f"good {number}")

    with running(all_but_one) as server, ThreadPoolExecutor(1) as pool:
        reader = endpoint(server, patience=100, timeout=9999, concurrency=4)
        bad = pool.submit(reader.read, reads("bad"))
        bad.add_done_callback(lambda _: failed.set())
        outputs = [reader.read([read])[0] for read in inputs()]
        assert isinstance(bad.exception(), EndpointError)
        assert str(bad.exception()).startswith("the server answered 429: status 429; asked ")
    assert all(isinstance(output, Output) for output in outputs)


def test_workers_share_the_limits_of_a_run() -> None:
    with running(reply) as server:
        reader = endpoint(server, concurrency=9)
        assert isinstance(reader, SharesLimits)
        reader.share_limits(4, Budget())
        assert reader.slots == 2
        assert len(texts(sliding(reader, reads(*names(9))))) == 9
        assert server.most <= 2
        reader.share_limits(99, Budget())
        assert reader.slots == 1


def test_a_reader_can_receive_further_shares_of_the_budget() -> None:
    with running(reply) as server:
        reader = endpoint(
            server, budget_tokens=999, budget_dollars=1.0, input_price=2.0, output_price=4.0
        )
        assert reader.budget == Budget(tokens=999, dollars=1.0)
        reader.share_limits(3, Budget(tokens=20, dollars=0.5))
        reader.read(reads("a"))
        reader.read(reads("b"))
        with pytest.raises(BudgetSpentError, match=r"budget_tokens \(20\) is spent: 2 answers"):
            reader.read(reads("c"))
        assert texts(reader.read(reads("a"))) == ["A"]  # is free
        assert (round(reader.spent.dollars, 9), reader.spent.tokens) == (56e-6, 24)
        reader.share_limits(3, Budget(tokens=100, dollars=0.00003))
        reader.read(reads("c"))
        reader.read(reads("d"))
        with pytest.raises(BudgetSpentError, match=r"budget_dollars \(8\.6e-05\) is spent"):
            reader.read(reads("e"))
        assert server.prompts == {"a": 1, "b": 1, "c": 1, "d": 1}


def test_requests_under_way_are_answered_when_a_budget_ends() -> None:
    """Their answers are returned, since they are paid; no further request is sent."""
    together = threading.Barrier(8)

    def all_at_once(request: Request) -> None:
        together.wait(30)
        reply(request)

    with running(all_at_once) as server:
        outputs = sliding(endpoint(server, budget_tokens=12), reads(*names(20)))
        assert texts(outputs) == [name.upper() for name in names(8)]
        assert {type(output) for output in outputs[8:]} == {BudgetSpentError}
        assert len(server.requests) == 8


@pytest.mark.parametrize(
    ("error", "message", "number"),
    [
        (TimeoutError, "took longer than", signal.SIGALRM),  # --example-timeout
        (KeyboardInterrupt, None, signal.SIGINT),
    ],
)
def test_interruptions_end_all_requests(
    error: type[BaseException], message: str | None, number: signal.Signals
) -> None:
    """Also if all slots wait for the server."""
    recovered, hanging = threading.Event(), list[Request]()

    def hang(request: Request) -> None:
        if not request.prompt.startswith("bad") or recovered.is_set():
            reply(request)
            return
        hanging.append(request)
        if len(hanging) == 4:
            os.kill(os.getpid(), number)
        request.hang()

    with running(hang) as server:
        reader = endpoint(server, concurrency=4)
        names = ["a", "b", "c", *[f"bad {number}" for number in range(6)]]
        # Background processes ignore Ctrl-C by default.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(error, match=message), time_limit(600):
                reader.read(reads(*names))
        finally:
            signal.signal(signal.SIGINT, before)
        recovered.set()
        assert texts(reader.read(reads(*names))) == [name.upper() for name in names]
        assert server.prompts["a"] == 1


@pytest.mark.integration
def test_a_process_ends_silently_with_closed_connections() -> None:
    """Threads of the reader do not delay the end."""
    import subprocess  # `make test-fast` skips files that import it

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
