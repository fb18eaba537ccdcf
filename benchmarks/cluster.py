"""A cluster in a discrete-event simulation: what bounds a run of millions of documents.

    python -m benchmarks.scale --model [--select S] [--read R] [--driver D] [--load L] ...

Workers take shards from one driver, which hands them out one after the other; each shard selects,
reads, and puts its files into an object store that takes so many requests a second. Shards differ
in length as documents do (log-normal). What goes in are measured figures (docs/scale.md says
which); what comes out are hours, how busy the workers were, what the end costs while the last
shards are finished, and what it all costs. Nothing of Leporello runs.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

_HOUR = 3600


@dataclass(frozen=True)
class Cluster:
    """What a run is given, in seconds unless it says otherwise.

    Attributes:
        workers: Number of workers, one a GPU.
        documents: Number of documents, with one question each.
        shard: Documents of a shard.
        select: Seconds of CPU that dividing and selecting takes a document.
        cores: Cores of a worker that do it, ahead of the reader.
        read: Seconds that reading takes a document on the worker's GPU.
        driver: Seconds of the driver an example.
        load: Seconds until a worker has started and loaded its model.
        put: Seconds that one request to the object store takes.
        puts: Requests a shard.
        put_limit: Requests that the store takes a second.
        spread: Standard deviation of the logarithm of a shard's time.
        tail: Share of the documents that are cut into smaller and smaller shards at the end.
        price: Dollars a worker and hour.
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
    """What came of a run.

    Attributes:
        hours: Hours until the last shard was finished.
        busy: Share of the workers' time in which they selected or read.
        waiting: Share in which they waited for the driver or the store.
        end: Hours from when the first worker had nothing more to do.
        dollars: Price of all workers until the end.
    """

    hours: float
    busy: float
    waiting: float
    end: float
    dollars: float


def simulate(cluster: Cluster, seed: int = 0) -> Outcome:
    """Returns what comes of a run."""
    chance = random.Random(seed)
    mean = -(cluster.spread**2) / 2  # of the logarithm, so that the mean of the factor is 1
    shards, seconds = _shards(cluster), _seconds(cluster)
    # When something happens, to which worker, and whether it has a shard to put into the store.
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
            took = seconds * size * chance.lognormvariate(mean, cluster.spread)
            work, waited = work + took, waited + begins - now
            heapq.heappush(events, (begins + took, worker, True))
        else:
            ends.append(now)
    whole = max(ends) * cluster.workers
    dollars = whole / _HOUR * cluster.price
    tail = (max(ends) - min(ends)) / _HOUR
    return Outcome(max(ends) / _HOUR, work / whole, waited / whole, tail, dollars)


def _seconds(cluster: Cluster) -> float:
    """Returns a document's seconds on a worker, which selects ahead of its reader."""
    return max(cluster.read, cluster.select / cluster.cores)


def _shards(cluster: Cluster) -> Iterator[int]:
    """Yields the shards' documents; those at the end are cut smaller, if any are."""
    left = cluster.documents
    last = int(cluster.documents * cluster.tail)
    while left:
        size = cluster.shard
        if left <= last:
            size = max(1, min(cluster.shard, left // (2 * cluster.workers)))
        yield min(size, left)
        left -= min(size, left)


def table(cluster: Cluster, workers: Sequence[int]) -> None:
    """Prints a table in Markdown: a line for so many workers."""
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
    print(f"\nDriver: at most {1 / cluster.driver:,.0f} examples a second, that is")
    print(f"{_seconds(cluster) / cluster.driver:,.0f} workers of this kind; the store:")
    per_worker = cluster.puts / (_seconds(cluster) * cluster.shard)
    print(f"{cluster.put_limit / per_worker:,.0f} workers with shards of {cluster.shard}.")
