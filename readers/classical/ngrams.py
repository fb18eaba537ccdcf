"""Classifier of texts: logistic regression over TF-IDF of words and character n-grams."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from leporello.readers.batching.memo import remembered
from leporello.readers.prompting.template import encodable

# Hashed, so the model's file contains no words of the user's documents.
_BUCKETS = 2**18  # of hashed n-grams, which need no vocabulary
_CACHE_SIZE = 4096  # texts


def fit_ngrams(texts: Sequence[str], labels: Sequence[str], seed: int) -> Any:  # noqa: ANN401 -- scikit-learn has no types
    """Returns a fitted pipeline; all classes have equal weight, however rare."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import FeatureUnion, Pipeline

    words = {"token_pattern": r"(?u)\b\w+\b", "ngram_range": (1, 2)}
    characters = {"analyzer": "char_wb", "ngram_range": (2, 5)}
    counted = FeatureUnion([("words", _tf_idf(words)), ("characters", _tf_idf(characters))])
    # Balanced, as the tasks' F1 gives all classes equal weight (decision 26).
    classifier = LogisticRegression(
        C=10.0, class_weight="balanced", max_iter=1000, random_state=seed
    )
    model = Pipeline([("features", counted), ("classifier", classifier)])
    return model.fit(list(map(encodable, texts)), list(labels))


def _tf_idf(counting: dict[str, Any]) -> Any:  # noqa: ANN401 -- as above
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
    from sklearn.pipeline import Pipeline

    counts = HashingVectorizer(n_features=_BUCKETS, norm=None, alternate_sign=False, **counting)
    return Pipeline([("counts", counts), ("weights", TfidfTransformer(sublinear_tf=True))])


@dataclass(frozen=True)
class NGramModel:
    """A fitted pipeline with a cache of the probabilities of the last texts.

    Attributes:
        pipeline: Pipeline of scikit-learn from `fit_ngrams`.
    """

    pipeline: Any
    _cached: OrderedDict[str, tuple[float, ...]] = field(default_factory=OrderedDict, repr=False)

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes in the order of their probabilities."""
        return tuple(map(str, self.pipeline.classes_))

    def probabilities(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        """Returns the probability of each class for each text."""

        def compute(missing: list[str]) -> Iterable[tuple[float, ...]]:
            return map(tuple, self.pipeline.predict_proba(list(map(encodable, missing))).tolist())

        return remembered(self._cached, texts, compute, _CACHE_SIZE)
