"""Pairs of paragraphs to compare for authorship, their log odds, and the format of the answer.

PAN 2021 asks of a document whether several authors wrote it (task 1), between which paragraphs the
author changes (task 2), and who wrote each paragraph (task 3).
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from leporello.combiners.stuff import chunks_of
from leporello.core.errors import UserError
from leporello.core.protocols import Positive
from leporello.core.records import JSON, Chunk, Combination, Example, Hit, Output, Read

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SAME, DIFFERENT = "same", "different"
_SEED = 0  # of the draw of pairs


def by_appearance(labels: Sequence[int]) -> list[int]:
    """Returns authors numbered from 1 in the order in which they first appear."""
    numbers: dict[int, int] = {}
    return [numbers.setdefault(label, len(numbers) + 1) for label in labels]


def changes_of(authors: Sequence[int]) -> list[bool]:
    """Returns for each pair of neighbours whether the author changes."""
    return [first != second for first, second in pairwise(authors)]


def answer(authors: Sequence[int], changes: Sequence[bool]) -> JSON:
    """Returns the answers to the three tasks in the format of PAN's files; authors are from 1."""
    return {
        "multi-author": int(any(changes)),
        "changes": list(map(int, changes)),
        "paragraph-authors": list(authors),
    }


@dataclass(frozen=True, kw_only=True)
class ComparesAuthors:
    """A combiner that compares pairs of paragraphs and derives the authors from the results.

    Single paragraphs are often too short. So the earlier paragraph of a pair is read with those
    before it, and the later one with those after it, `context` paragraphs each, and the two texts
    never overlap.

    Attributes:
        context: Number of paragraphs in each of the two texts of a pair.
        training_pairs: Maximum number of training pairs of each kind, `same` and `different`, per
            document.
    """

    # One paragraph as in the paper: half of them have fewer than 176 characters, and the area
    # under the curve is 0.69, with five paragraphs 0.91 (decision 16).
    context: Positive = 1
    # A long document would otherwise outweigh all others in the training.
    training_pairs: Positive = 1000

    def decide(self, likeness: NDArray[np.float64]) -> JSON:
        """Returns PAN's three answers.

        `likeness` has the probabilities of `same`, shape (paragraphs, paragraphs), symmetric, with
        NaN on the diagonal.
        """
        raise NotImplementedError

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:  # noqa: ARG002 -- the signature of combiners
        """Yields one read per pair of paragraphs, in one round; returns PAN's three answers."""
        chunks = chunks_of(hits)
        outputs = yield self._reads(chunks)
        return self.decide(_likeness(outputs, len(chunks)))

    def supervise(self, example: Example, reads: Sequence[Read]) -> Sequence[str | None]:
        """Returns `same` and `different` equally often, for drawn pairs; None for other pairs."""
        labels = _labels(example, reads) if reads else []
        kinds = [[i for i, name in enumerate(labels) if name == kind] for kind in (SAME, DIFFERENT)]
        # Equally many, so that a probability of 0.5 means undecided (decision 16).
        count = min(self.training_pairs, *map(len, kinds))
        # By the example's id, so that `--limit` and the order of examples change no draw.
        generator = random.Random(f"{_SEED} {example.id}")
        sample = {index for indices in kinds for index in generator.sample(indices, count)}
        return [label if index in sample else None for index, label in enumerate(labels)]

    def _reads(self, chunks: Sequence[Chunk]) -> list[Read]:
        """Returns one read per pair, with the two texts and their chunks."""
        reach, last = self.context - 1, len(chunks) - 1
        before = [_join(chunks[max(0, i - reach)], chunk) for i, chunk in enumerate(chunks)]
        after = [_join(chunk, chunks[min(last, i + reach)]) for i, chunk in enumerate(chunks)]
        texts = [[chunk.text for chunk in side] for side in (before, after)]
        return [
            Read((before[earlier], after[later]), pair=(texts[0][earlier], texts[1][later]))
            for earlier, later in _index_pairs(len(chunks))
        ]


def _index_pairs(count: int) -> list[tuple[int, int]]:
    """Returns all pairs of `count` paragraphs, as (earlier, later)."""
    # All: with 20 neighbours and 20 drawn paragraphs, F1 fell by 13 points (decision 16).
    return [(earlier, later) for later in range(count) for earlier in range(later)]


def _likeness(outputs: Sequence[Output], count: int) -> NDArray[np.float64]:
    """Returns the probabilities of `same`, shape (count, count); NaN on the diagonal."""
    import numpy as np

    probabilities = np.full((count, count), np.nan)
    for (row, column), output in zip(_index_pairs(count), outputs, strict=True):
        probabilities[row, column] = probabilities[column, row] = _probability(output)
    return probabilities


def _join(first: Chunk, last: Chunk) -> Chunk:
    # One slice of the document, so that the ledger shows exactly the text that was compared.
    return first.document.chunk(first.start, max(first.end, last.end))


def _probability(output: Output) -> float:
    if output.score is None or not 0 <= output.score <= 1:
        raise ValueError(
            "authors are compared by the probability that they are the same, but the reader"
            f" returned the score {output.score!r}: use the reader PairClassifier"
        )
    return output.score


def _labels(example: Example, reads: Sequence[Read]) -> list[str]:
    try:
        value = json.loads(example.references[0])
        authors = value["paragraph-authors"] if isinstance(value, dict) else value
        paragraphs = [*zip(example.document.parts, map(int, authors), strict=True)]
        ends = {part.end: author for part, author in paragraphs}
        starts = {part.start: author for part, author in paragraphs}
        spans = [[p.span for p in read.passages if isinstance(p, Chunk)] for read in reads]
        return [SAME if ends[a.end] == starts[b.start] else DIFFERENT for a, b in spans]
    except (IndexError, KeyError, TypeError, ValueError):
        reference = example.references[0] if example.references else "nothing"
        raise UserError(
            f"the reference of example {example.id!r}, {reference!r:.60}, is not a list of the"
            " authors of its chunks: use a task of style change, the chunker Parts and the"
            " retriever All"
        ) from None


_LIMIT = 6.0  # with larger log odds, one pair would outweigh many


def log_odds(likeness: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the log odds of probabilities; NaN stays NaN."""
    import numpy as np

    with np.errstate(divide="ignore"):
        # Probabilities of exactly 0 and 1 become infinite here, and are clipped below.
        odds: NDArray[np.float64] = np.log(likeness) - np.log1p(-likeness)
    return np.clip(odds, -_LIMIT, _LIMIT)


def averaged(odds: NDArray[np.float64], radius: int) -> NDArray[np.float64]:
    """Returns means of log odds over squares of a radius; 0 (undecided) where all are NaN."""
    import numpy as np
    from scipy.ndimage import uniform_filter

    is_known = ~np.isnan(odds)
    size, shares = 2 * radius + 1, is_known.astype(np.float64)
    sums = uniform_filter(np.where(is_known, odds, 0.0), size, mode="constant")
    weights = uniform_filter(shares, size, mode="constant")
    # The filter computes running sums, whose rounding errors remain where all are NaN.
    has_values = weights > 0.5 / size**2
    # Means of the known pairs only, since zeros would pull the odds to undecided.
    means: NDArray[np.float64] = np.divide(sums, weights, out=np.zeros_like(sums), where=has_values)
    # Running sums differ in the last digits by direction; the clustering needs symmetry.
    return np.asarray((means + means.T) / 2)


def smoothed(likeness: NDArray[np.float64], radius: int) -> NDArray[np.float64]:
    """Returns the probabilities of averaged log odds."""
    import numpy as np

    return np.asarray(1 / (1 + np.exp(-averaged(log_odds(likeness), radius))))
