"""A tree of summaries: of chunks that are about the same, of those summaries, and so on."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge

from leporello.core.passages import reading_text
from leporello.core.protocols import ANSWER, Count, Positive, Role
from leporello.core.records import Chunk, Document, Enrichment
from leporello.enrichers.summarising import INSTRUCTION, cut, in_order, summaries
from leporello.text.tokens import terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class SummaryTree:
    """Summarises clusters of chunks, clusters of these summaries, and so on: RAPTOR.

    As Sarthi et al. describe (ICLR 2024), with latent semantic vectors of TF-IDF for embeddings, so
    that no model is needed. Clusters are soft: a chunk may be in several. All levels are searched
    together (RAPTOR's collapsed tree), or from the top down by the retriever `TreeSearch`.

    Attributes:
        role: Role of the reader that summarises.
        width: Number of chunks or summaries of a cluster at most; fewer where they do not fit.
        levels: Number of levels of summaries at most.
        roots: Number of summaries from which on there is no further level.
        instruction: Instruction for summaries.
        seed: Seed of the clusters.
    """

    role: Role = ANSWER
    width: Annotated[int, Ge(2)] = 10
    levels: Positive = 5
    roots: Positive = 5
    instruction: str = INSTRUCTION
    seed: Count = 0

    def enrich(self, document: Document, chunks: Sequence[Chunk]) -> Enrichment:  # noqa: ARG002
        """Yields a round of reads a level; returns the chunks and all summaries."""
        level = in_order(chunks)
        made: list[Chunk] = [*level]
        for _ in range(self.levels):
            if len(level) <= self.roots:
                break
            found = clusters([reading_text(node) for node in level], self.width, self.seed)
            groups = [numbers for numbers in found if len(numbers) > 1]
            alone = set(range(len(level))).difference(*groups)
            summed = yield from summaries(
                [[level[n] for n in numbers] for numbers in groups], self.instruction
            )
            made += summed
            if not summed or len(summed) + len(alone) >= len(level):
                break
            level = in_order([*summed, *(level[n] for n in alone)])
        return made


_GLOBAL = 64  # dimensions of all texts
_LOCAL = 10  # dimensions of the texts that a mixture is fitted to, as in RAPTOR
_BLOCK = 200  # texts that a mixture is fitted to
_MEMBER = 0.1  # probability from which on a text is in a cluster, as in RAPTOR
_SAME = 1e-6  # distance of vectors below which nothing tells them apart


def clusters(texts: Sequence[str], width: int, seed: int = 0) -> list[tuple[int, ...]]:
    """Returns numbers of texts in clusters, each ascending; a text may be in several.

    Neighbours are put together where nothing tells texts apart, or there would be as many clusters
    as texts.

    Args:
        texts: Texts in the order of the document.
        width: Number of texts of a cluster at most, two or more.
        seed: Seed of what is random.
    """
    if len(texts) <= width:
        return [tuple(range(len(texts)))]
    vectors = _vectors(texts, seed)
    found = set() if vectors is None else _found(vectors, width, seed)
    return sorted(
        found if 0 < len(found) < len(texts) else map(tuple, cut(range(len(texts)), width))
    )


def _vectors(texts: Sequence[str], seed: int) -> NDArray[np.float64] | None:
    """Returns latent semantic vectors of TF-IDF, one a text; None if all are equal."""
    import numpy as np
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    if not any(map(terms, texts)):
        return None
    weighed = TfidfVectorizer(analyzer=terms, sublinear_tf=True).fit_transform(texts)
    size = min(_GLOBAL, weighed.shape[1] - 1, len(texts) - 1)
    if size < 1:
        return None
    with warnings.catch_warnings():  # equal texts have no variance
        warnings.simplefilter("ignore")
        vectors = TruncatedSVD(size, random_state=seed).fit_transform(weighed)
    unit: NDArray[np.float64] = normalize(vectors)
    return None if np.ptp(unit, axis=0).max() < _SAME else unit


def _found(vectors: NDArray[np.float64], width: int, seed: int) -> set[tuple[int, ...]]:
    """Returns clusters: blocks of near texts first, then a mixture in each."""
    import numpy as np
    from sklearn.cluster import KMeans

    with warnings.catch_warnings():  # fewer points than clusters, or no convergence: still clusters
        warnings.simplefilter("ignore")
        blocks = KMeans(-(-len(vectors) // _BLOCK), n_init=1, random_state=seed).fit_predict(
            vectors
        )
        found: set[tuple[int, ...]] = set()
        for block in np.unique(blocks):
            numbers = np.flatnonzero(blocks == block)
            for members in _mixture(vectors[numbers], width, seed):
                found.update(map(tuple, cut(numbers[members].tolist(), width)))
    return found


def _mixture(vectors: NDArray[np.float64], width: int, seed: int) -> list[NDArray[np.intp]]:
    """Returns who is in each component of the Gaussian mixture that BIC chooses among few."""
    import numpy as np
    from sklearn.mixture import GaussianMixture

    count = len(vectors)
    if count <= width:
        return [np.arange(count)]
    centred = vectors - vectors.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    local = centred @ axes[:_LOCAL].T
    numbers = {min(-(-count * part // (2 * width)), count) for part in (2, 3, 4)}
    fitted = [
        GaussianMixture(
            n, covariance_type="diag", reg_covar=1e-4, max_iter=50, random_state=seed
        ).fit(local)
        for n in sorted(numbers)
    ]
    share = min(fitted, key=lambda one: one.bic(local)).predict_proba(local)
    inside = (share > _MEMBER) | (share == share.max(axis=1, keepdims=True))
    return [np.flatnonzero(column) for column in inside.T if column.any()]
