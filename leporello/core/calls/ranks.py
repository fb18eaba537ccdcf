"""Reciprocal rank fusion of several rankings."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from leporello.core.records import Chunk, Hit

CONSTANT = 60  # the value of Cormack, Clarke and Buettcher


def fused(rankings: Iterable[Sequence[Hit]], constant: int = CONSTANT) -> list[Hit]:
    """Returns each chunk once, best first, scored by the sum of 1 / (constant + rank).

    A chunk counts once per ranking, at its best rank.
    """
    shares: defaultdict[Chunk, list[float]] = defaultdict(list)
    for hits in rankings:
        for rank, chunk in enumerate(dict.fromkeys(hit.chunk for hit in hits), start=1):
            shares[chunk].append(1 / (constant + rank))
    # fsum: equal summands give equal sums, whatever the order of the rankings.
    fused_hits = [Hit(chunk, math.fsum(summands)) for chunk, summands in shares.items()]
    return sorted(fused_hits, key=lambda hit: (-hit.score, hit.chunk.start, hit.chunk.end))
