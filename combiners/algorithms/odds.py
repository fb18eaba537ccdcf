"""Log odds that pairs of paragraphs are by one author, and their means over neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SUREST = 6.0  # beyond, one pair would outweigh many


def log_odds(likeness: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the log odds of probabilities; NaN stays NaN."""
    import numpy as np

    with np.errstate(divide="ignore"):
        odds: NDArray[np.float64] = np.log(likeness) - np.log1p(-likeness)
    return np.clip(odds, -_SUREST, _SUREST)


def averaged(odds: NDArray[np.float64], radius: int) -> NDArray[np.float64]:
    """Returns means over squares, of what is known in them; 0, undecided, where nothing is.

    Args:
        odds: Log odds, shape (paragraphs, paragraphs), symmetric; NaN where nothing is known.
        radius: Number of paragraphs to either side.
    """
    import numpy as np
    from scipy.ndimage import uniform_filter

    is_known = ~np.isnan(odds)
    size, shares = 2 * radius + 1, is_known.astype(np.float64)
    sums = uniform_filter(np.where(is_known, odds, 0.0), size, mode="constant")
    weights = uniform_filter(shares, size, mode="constant")
    # The filter keeps running sums, which leave crumbs where there is nothing.
    some = weights > 0.5 / size**2
    means: NDArray[np.float64] = np.divide(sums, weights, out=np.zeros_like(sums), where=some)
    return np.asarray((means + means.T) / 2)


def smoothed(likeness: NDArray[np.float64], radius: int) -> NDArray[np.float64]:
    """Returns the probabilities that averaged log odds stand for."""
    import numpy as np

    return np.asarray(1 / (1 + np.exp(-averaged(log_odds(likeness), radius))))
