"""How well a reader keeps a server busy: `python -m benchmarks.endpoint [inputs] [concurrency …]`.

2,000 inputs go through a server, in a process of its own, that answers each after 50 ms. Printed
is the time that reading takes over requests x latency / concurrency, the least that is possible,
in windows of all inputs, of 256 and of 32; between two windows the server stands idle. Beside it,
in turns, the same for sockets without any client: what this machine can do at the moment.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from statistics import median

from leporello.records import Read
from readers.endpoint import Endpoint

LATENCY = 0.05
ROUNDS = 3
CONCURRENCIES = (4, 8, 16, 32, 64)
SENTENCE = "The miller had three sons, and left them a mill, a donkey and a cat. "


def serve(ready: Connection) -> None:
    """Answers everything after the latency, until it is killed."""
    said = {
        "choices": [{"message": {"content": "the cat"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 300, "completion_tokens": 2},
    }
    body = json.dumps(said).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    answer = head.encode() + b"\r\n\r\n" + body

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                header = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = header.partition(b"content-length:")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length))
                await asyncio.sleep(LATENCY)
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def listen() -> None:
        server = await asyncio.start_server(converse, "127.0.0.1", 0, backlog=1024)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(listen())


@contextmanager
def running() -> Iterator[int]:
    """Runs the server, and yields its port."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    process.start()
    yield here.recv()
    process.kill()
    process.join()


def inputs(count: int) -> list[Read]:
    """Returns inputs of some 250 words each, all different."""
    passage = SENTENCE * 16
    return [Read((f"{number} {passage}",), "Who had the cat?") for number in range(count)]


def seconds(reader: Endpoint, reads: list[Read], window: int) -> float:
    """Returns how long reading takes once connections are open."""
    reader.read(inputs(2 * reader.concurrency + 100_000)[100_000:])
    start = time.perf_counter()
    for first in range(0, len(reads), window):
        outputs = reader.read(reads[first : first + window])
        assert all(output.text == "the cat" for output in outputs)
    return time.perf_counter() - start


def bare_seconds(port: int, count: int, concurrency: int) -> float:
    """Returns how long requests of the same size take that nobody makes, checks or reads."""
    body = (SENTENCE * 16).encode()
    request = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    left = iter(range(count))

    async def ask() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in left:
            writer.write(request)
            await reader.readuntil(b"}}")
        writer.close()

    async def ask_all() -> float:
        start = time.perf_counter()
        await asyncio.gather(*[ask() for _ in range(concurrency)])
        return time.perf_counter() - start

    return asyncio.run(ask_all())


def main(count: int = 2000, concurrencies: Sequence[int] = CONCURRENCIES) -> None:
    """Prints the median ratio of some rounds, for each concurrency and window."""
    reads, windows = inputs(count), (count, 256, 32)
    print(f"{count} inputs, {1000 * LATENCY:.0f} ms each; time over the least possible")
    print("concurrency   bare sockets", *(f"{f'windows of {w}':>15}" for w in windows))
    with running() as port:
        base_url = f"http://127.0.0.1:{port}/v1"
        for concurrency in concurrencies:
            rows = []
            for _ in range(ROUNDS):
                rows.append([bare_seconds(port, count, concurrency)])
                for window in windows:
                    reader = Endpoint(base_url, "m", concurrency=concurrency)
                    rows[-1].append(seconds(reader, reads, window))
            least = count * LATENCY / concurrency
            ratios = [median(column) / least for column in zip(*rows, strict=True)]
            print(f"{concurrency:11}", *(f"{ratio:15.2f}" for ratio in ratios), flush=True)


if __name__ == "__main__":
    sizes = [int(argument) for argument in sys.argv[1:]]
    main(sizes[0] if sizes else 2000, sizes[1:] or CONCURRENCIES)
