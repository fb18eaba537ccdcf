"""Tree of summaries: of clusters of similar chunks, of clusters of these summaries, and so on."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge

from leporello.core.passages import reading_text
from leporello.core.protocols import ANSWER, Positive, Role
from leporello.core.records import Chunk, Document, Enrichment
from leporello.enrichers.summarising import INSTRUCTION, cut, in_order, summaries
from leporello.text.tokens import terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class SummaryTree:
    """Summarises clusters of chunks, clusters of these summaries, and so on: RAPTOR.

    Follows Sarthi et al. (ICLR 2024), but uses latent semantic vectors of TF-IDF as embeddings, so
    it needs no model. Clusters are soft: a chunk may be in several. All levels are searched
    together (RAPTOR's collapsed tree), or from the top down by the retriever `TreeSearch`.

    Attributes:
        role: Role of the reader that summarises.
        width: Maximum number of chunks or summaries per cluster; fewer if they do not fit.
        levels: Maximum number of levels of summaries.
        roots: Number of summaries that are not summarised again.
        instruction: Instruction for summaries.
    """

    role: Role = ANSWER
    width: Annotated[int, Ge(2)] = 10
    levels: Positive = 5
    roots: Positive = 5
    instruction: str = INSTRUCTION

    def enrich(self, document: Document, chunks: Sequence[Chunk]) -> Enrichment:  # noqa: ARG002
        """Yields a round of reads per level; returns the chunks and all summaries."""
        level = in_order(chunks)
        passages: list[Chunk] = [*level]
        for _ in range(self.levels):
            if len(level) <= self.roots:
                break
            texts = [reading_text(node) for node in level]
            groups = [c for c in clusters(texts, self.width) if len(c) > 1]
            singles = set(range(len(level))).difference(*groups)
            parents = yield from summaries(
                [("", [level[n] for n in numbers]) for numbers in groups], self.instruction
            )
            passages += parents
            # Dropped summaries could keep a level as large as the one below, forever.
            if not parents or len(parents) + len(singles) >= len(level):
                break
            level = in_order([*parents, *(level[n] for n in singles)])
        return passages


_DIMENSIONS = 64  # of the vectors of all texts
_BLOCK_DIMENSIONS = 10  # of the vectors that a mixture is fitted to, as in RAPTOR
_BLOCK = 200  # texts that a mixture is fitted to
_MEMBER = 0.1  # least probability at which a text is in a cluster, as in RAPTOR
_SEED = 0
_SAME = 1e-6  # distance below which vectors count as equal


def clusters(texts: Sequence[str], width: int) -> list[tuple[int, ...]]:
    """Returns the clusters, each as ascending numbers of texts; a text may be in several.

    Neighbouring texts form the clusters if all texts are similar, or if there would be a cluster
    for every text.
    """
    if len(texts) <= width:
        return [tuple(range(len(texts)))]
    vectors = _vectors(texts)
    groups = set() if vectors is None else _vector_clusters(vectors, width)
    return sorted(
        groups if 0 < len(groups) < len(texts) else map(tuple, cut(range(len(texts)), width))
    )


def _vectors(texts: Sequence[str]) -> NDArray[np.float64] | None:
    """Returns latent semantic vectors of TF-IDF, one per text; None if all are equal."""
    import numpy as np
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    if not any(map(terms, texts)):
        return None
    weighed = TfidfVectorizer(analyzer=terms, sublinear_tf=True).fit_transform(texts)
    size = min(_DIMENSIONS, weighed.shape[1] - 1, len(texts) - 1)
    if size < 1:
        return None
    with warnings.catch_warnings():  # equal texts have no variance
        warnings.simplefilter("ignore")
        vectors = TruncatedSVD(size, random_state=_SEED).fit_transform(weighed)
    unit: NDArray[np.float64] = normalize(vectors)
    return None if np.ptp(unit, axis=0).max() < _SAME else unit


def _vector_clusters(vectors: NDArray[np.float64], width: int) -> set[tuple[int, ...]]:
    """Returns clusters: divides the texts into blocks of near ones, and fits a mixture to each."""
    import numpy as np
    from sklearn.cluster import KMeans

    # Too few points for the clusters, or no convergence: the clusters are still usable.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        blocks = KMeans(-(-len(vectors) // _BLOCK), n_init=1, random_state=_SEED).fit_predict(
            vectors
        )
        groups: set[tuple[int, ...]] = set()
        for block in np.unique(blocks):
            numbers = np.flatnonzero(blocks == block)
            for members in _mixture(vectors[numbers], width):
                groups.update(map(tuple, cut(numbers[members].tolist(), width)))
    return groups


def _mixture(vectors: NDArray[np.float64], width: int) -> list[NDArray[np.intp]]:
    """Returns the members of each component of a Gaussian mixture; BIC chooses their number."""
    import numpy as np
    from sklearn.mixture import GaussianMixture

    count = len(vectors)
    if count <= width:
        return [np.arange(count)]
    centred = vectors - vectors.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    local = centred @ axes[:_BLOCK_DIMENSIONS].T
    sizes = {min(-(-count * part // (2 * width)), count) for part in (2, 3, 4)}
    mixtures = [
        GaussianMixture(
            n, covariance_type="diag", reg_covar=1e-4, max_iter=50, random_state=_SEED
        ).fit(local)
        for n in sorted(sizes)
    ]
    share = min(mixtures, key=lambda mixture: mixture.bic(local)).predict_proba(local)
    is_member = (share > _MEMBER) | (share == share.max(axis=1, keepdims=True))
    return [np.flatnonzero(column) for column in is_member.T if column.any()]
