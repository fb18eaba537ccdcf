"""The best path through all places: exact where they are few, by beam search where they are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_EXACT = 12  # of so many, the best path from each place through each of 2 ** 12 sets is found
_CRUMB = 1e-9  # what sums of floats differ by, though they are equal


def best_path(steps: NDArray[np.float64], beam: int) -> list[int]:
    """Returns the order with the largest sum of steps; of equals the first one as words sort.

    It is exact for up to 12 places (Held and Karp 1962).

    Args:
        steps: Worth of going from the row's straight to the column's, shape (n, n), finite.
        beam: Number of beginnings of paths that are kept, of those that are as long.
    """
    if not len(steps):
        return []
    return _exact(steps) if len(steps) <= _EXACT else _by_beam(steps, beam)


def _exact(steps: NDArray[np.float64]) -> list[int]:
    import numpy as np

    count = len(steps)
    # Of paths through a set: the best that begins at each place, shape (sets, count).
    best = np.full((1 << count, count), -np.inf)
    for members in range(1, 1 << count):
        for item in (item for item in range(count) if members >> item & 1):
            rest = members ^ 1 << item
            best[members, item] = (steps[item] + best[rest]).max() if rest else 0.0
    members, path = (1 << count) - 1, [_first_of(best[-1])]
    while members := members ^ 1 << path[-1]:
        path.append(_first_of(steps[path[-1]] + best[members]))
    return path


def _first_of(values: NDArray[np.float64]) -> int:
    """Returns the first place with the largest value."""
    return int((values >= values.max() - _CRUMB).argmax())


def _by_beam(steps: NDArray[np.float64], beam: int) -> list[int]:
    worth = steps.tolist()
    paths: list[tuple[float, tuple[int, ...]]] = [(0.0, (item,)) for item in range(len(worth))]
    for _ in range(len(worth) - 1):
        # Of those that have the same behind them and end alike only the best can lead on.
        longer: dict[tuple[frozenset[int], int], tuple[float, tuple[int, ...]]] = {}
        for negated, path in paths:
            behind = frozenset(path)
            for item in (item for item in range(len(worth)) if item not in behind):
                grown = round(negated - worth[path[-1]][item], 9), (*path, item)
                key = behind, item
                longer[key] = min(longer.get(key, grown), grown)
        paths = sorted(longer.values())[:beam]
    return [*min(paths)[1]]
