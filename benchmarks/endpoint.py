"""Measures how busy readers keep a server: `python -m benchmarks.endpoint [--slots 32]`.

A server in another process answers after log-normal latencies with sigma 1, as real services do.
Printed are the share of slots x time in which the server had a request (`busy`), from the first
request to the last answer, and the reader's CPU time per request. With `--refuse 0.5`, the server
answers half of the requests with 429 at once; then the number of requests per answer counts, and
the number of lost reads must be 0.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import random
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from urllib.request import urlopen

from leporello.core.records import Read
from leporello.readers.endpoint import Endpoint
from leporello.readers.endpoint.responses import EndpointError

SENTENCE = "The miller had three sons, and left them a mill, a donkey and a cat. "
REFUSAL = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"


@dataclass
class Served:
    """Counts of a server.

    Attributes:
        answers: Number of answered requests.
        refusals: Number of refused requests.
        seconds: Sum of the latencies in seconds.
        first: Time of the first request.
        last: Time of the last answer.
    """

    answers: int = 0
    refusals: int = 0
    seconds: float = 0.0
    first: float = 0.0
    last: float = 0.0


def serve(ready: Connection, median: float, refuse: float) -> None:
    """Answers after log-normal latencies until it is killed; GET returns the counts."""
    served, generator = Served(), random.Random(0)
    content = {
        "choices": [{"message": {"content": "the cat"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 300, "completion_tokens": 2},
    }

    def response(value: object) -> bytes:
        body = json.dumps(value).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        return head.encode() + b"\r\n\r\n" + body

    async def answer() -> bytes:
        served.first = served.first or time.time()
        if generator.random() < refuse:
            served.refusals += 1
            return REFUSAL
        latency = median * generator.lognormvariate(0, 1)
        await asyncio.sleep(latency)
        served.answers, served.seconds = served.answers + 1, served.seconds + latency
        served.last = time.time()
        return response(content)

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                header = (await reader.readuntil(b"\r\n\r\n")).lower()
                if header.startswith(b"get"):
                    writer.write(response(asdict(served)))
                    continue
                length = header.partition(b"content-length:")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length))
                writer.write(await answer())
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def listen() -> None:
        server = await asyncio.start_server(converse, "127.0.0.1", 0, backlog=1024)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(listen())


@contextmanager
def running(median: float, refuse: float) -> Iterator[int]:
    """Runs the server, and yields its port."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(there, median, refuse), daemon=True)
    process.start()
    yield here.recv()
    process.kill()
    process.join()


def inputs(count: int) -> list[Read]:
    """Returns different inputs of about 250 words."""
    passage = SENTENCE * 16
    return [Read((f"{number} {passage}",), "Who had the cat?") for number in range(count)]


def slide(reader: Endpoint, reads: Iterable[Read]) -> int:
    """Reads inputs one by one, in one thread per slot; returns the number of failed inputs."""

    def fails(read: Read) -> bool:
        try:
            [output] = reader.read([read])
        except EndpointError:
            return True
        return output.text != "the cat"

    with ThreadPoolExecutor(reader.slots) as pool:
        return sum(pool.map(fails, reads))


def measure(
    count: int,
    slots: int,
    median: float,
    refuse: float,
    drive: Callable[[Endpoint, Iterable[Read]], int] = slide,
) -> None:
    """Prints the measurements of reading a number of inputs.

    Args:
        count: Number of inputs.
        slots: Concurrency of the reader.
        median: Median latency in seconds.
        refuse: Share of requests that the server refuses.
        drive: Function that reads inputs with a reader, and returns the number of failed inputs.
    """
    with running(median, refuse) as port:
        reader = Endpoint(f"http://127.0.0.1:{port}/v1", "m", concurrency=slots)
        reader.load()
        reads, before = inputs(count), time.process_time()
        lost = drive(reader, reads)
        cpu = time.process_time() - before
        with urlopen(f"http://127.0.0.1:{port}/", timeout=10) as counts:
            served = Served(**json.load(counts))
    wall, requests = served.last - served.first, served.answers + served.refusals
    print(
        f"{count} reads, {slots} slots, median {median * 1000:.0f} ms, {refuse:.0%} refused:"
        f" {wall:.1f} s, busy {served.seconds / (slots * wall):.1%},"
        f" CPU {1000 * cpu / requests:.2f} ms per request,"
        f" {requests / served.answers:.2f} requests per answer, {lost} lost",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reads", type=int, default=4000)
    parser.add_argument("--slots", type=int, default=32)
    parser.add_argument("--median", type=float, default=0.3, help="median latency in seconds")
    parser.add_argument("--refuse", type=float, default=0.0, help="share of answers with 429")
    options = parser.parse_args()
    measure(options.reads, options.slots, options.median, options.refuse)
