"""Simulates a cluster by discrete events, to find the limits of a run of millions of documents.

    python -m benchmarks.scale --model [--select S] [--read R] [--driver D] [--load L] ...

One driver gives shards to workers, one after the other. For each shard, a worker selects, reads,
and writes files to an object store with a limited rate of requests. The times of shards are
log-normal. Inputs are measured times (see docs/scale.md). Outputs are the hours of the run, the
utilisation of workers, the time in which only some workers have shards at the end, and the price.
Leporello itself does not run.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

_HOUR = 3600


@dataclass(frozen=True)
class Cluster:
    """Parameters of a run; times are in seconds.

    Attributes:
        workers: Number of workers, one per GPU.
        documents: Number of documents, with one question each.
        shard: Number of documents per shard.
        select: CPU seconds for dividing and selecting per document.
        cores: Number of a worker's cores that select ahead of the reader.
        read: Seconds for reading per document on the worker's GPU.
        driver: Seconds of the driver per example.
        load: Seconds to start workers and load their models.
        put: Seconds per request to the object store.
        puts: Number of requests per shard.
        put_limit: Maximum number of requests per second of the store.
        spread: Standard deviation of the logarithm of a shard's time.
        tail: Share of the documents at the end that are in smaller and smaller shards.
        price: Dollars per worker and hour.
    """

    workers: int
    documents: int = 10_000_000
    shard: int = 128
    select: float = 0.1
    cores: int = 8
    read: float = 0.05
    driver: float = 0.0002
    load: float = 60.0
    put: float = 0.05
    puts: int = 7
    put_limit: float = 3500.0
    spread: float = 0.5
    tail: float = 0.0
    price: float = 2.5


@dataclass(frozen=True)
class Outcome:
    """Results of a simulated run.

    Attributes:
        hours: Hours until the last shard was finished.
        busy: Share of the workers' time in which they selected or read.
        waiting: Share of the workers' time in which they waited for the driver or the store.
        end: Hours between the first and the last worker that ran out of shards.
        dollars: Price of all workers until the end.
    """

    hours: float
    busy: float
    waiting: float
    end: float
    dollars: float


def simulate(cluster: Cluster, seed: int = 0) -> Outcome:
    """Returns the results of a run."""
    generator = random.Random(seed)
    mean = -(cluster.spread**2) / 2  # of the logarithm, so that the mean of the factor is 1
    shards, seconds = _shards(cluster), _seconds(cluster)
    # Time, worker, and whether the worker writes a finished shard to the store.
    events = [(cluster.load, worker, False) for worker in range(cluster.workers)]
    driver = store = work = waited = 0.0
    ends: list[float] = []
    while events:
        now, worker, puts = heapq.heappop(events)
        if puts:
            begins = max(now, store)
            store = begins + cluster.puts / cluster.put_limit
            waited += begins + cluster.puts * cluster.put - now
            heapq.heappush(events, (begins + cluster.puts * cluster.put, worker, False))
        elif size := next(shards, 0):
            begins = max(now, driver)
            driver = begins + cluster.driver * size
            duration = seconds * size * generator.lognormvariate(mean, cluster.spread)
            work, waited = work + duration, waited + begins - now
            heapq.heappush(events, (begins + duration, worker, True))
        else:
            ends.append(now)
    total = max(ends) * cluster.workers
    dollars = total / _HOUR * cluster.price
    tail = (max(ends) - min(ends)) / _HOUR
    return Outcome(max(ends) / _HOUR, work / total, waited / total, tail, dollars)


def _seconds(cluster: Cluster) -> float:
    """Returns the seconds per document of a worker that selects ahead of its reader."""
    return max(cluster.read, cluster.select / cluster.cores)


def _shards(cluster: Cluster) -> Iterator[int]:
    """Yields the shards' numbers of documents, which fall at the end if `tail` is set."""
    remaining = cluster.documents
    last = int(cluster.documents * cluster.tail)
    while remaining:
        size = cluster.shard
        if remaining <= last:
            size = max(1, min(cluster.shard, remaining // (2 * cluster.workers)))
        yield min(size, remaining)
        remaining -= min(size, remaining)


def table(cluster: Cluster, workers: Sequence[int]) -> None:
    """Prints a table in Markdown with one line per number of workers."""
    print(f"{cluster.documents:,} documents; {cluster}\n")
    heads = ("GPUs", "hours", "busy", "waiting", "end, min", "end, smaller shards", "dollars")
    print("|", " | ".join(heads), "|")
    print("|", " | ".join("---" for _ in heads), "|")
    for count in workers:
        plain = simulate(replace(cluster, workers=count))
        tail = simulate(replace(cluster, workers=count, tail=0.02))
        cells = (
            f"{count:,}",
            f"{plain.hours:,.1f}",
            f"{plain.busy:.1%}",
            f"{plain.waiting:.1%}",
            f"{plain.end * 60:.1f}",
            f"{tail.end * 60:.1f}",
            f"{plain.dollars:,.0f}",
        )
        print("|", " | ".join(cells), "|")
    print(f"\nDriver: at most {1 / cluster.driver:,.0f} examples per second, that is")
    print(f"{_seconds(cluster) / cluster.driver:,.0f} workers of this kind; the store:")
    per_worker = cluster.puts / (_seconds(cluster) * cluster.shard)
    print(f"{cluster.put_limit / per_worker:,.0f} workers with shards of {cluster.shard}.")
