"""Hits of several searches as one ranking."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from leporello.core.records import Chunk, Hit

CONSTANT = 60  # of the ranks, as Cormack, Clarke and Buettcher have it


def fused(rankings: Iterable[Sequence[Hit]], constant: int = CONSTANT) -> list[Hit]:
    """Returns each chunk once, best first, scored by the sum of 1 / (constant + rank).

    A chunk votes once in each ranking, at its best rank.
    """
    shares: defaultdict[Chunk, list[float]] = defaultdict(list)
    for hits in rankings:
        for rank, chunk in enumerate(dict.fromkeys(hit.chunk for hit in hits), start=1):
            shares[chunk].append(1 / (constant + rank))
    # fsum: equal votes give equal sums, whichever search cast them.
    found = [Hit(chunk, math.fsum(votes)) for chunk, votes in shares.items()]
    return sorted(found, key=lambda hit: (-hit.score, hit.chunk.start, hit.chunk.end))
