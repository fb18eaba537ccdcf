"""The recipe from labelled opinions to the folder `polarity`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leporello.core.records import JSON
from leporello.text.english.polarity import opinion_words
from leporello.training.recipes.polarity.opinions import Opinion, read_opinions
from leporello.training.recipes.settings import exclusion
from leporello.training.recipes.word_weights import LearntWords, write_words

_SEEN = 3  # opinions that a word must stand in
_STRENGTH = 0.2  # of the regularisation, inverse
_WEIGHTS = {"pros_cons": 0.05}  # pairs of phrases without a sentence: many, and unlike reviews
# Of sums of weights: sentences are shorter than reviews, whose words are no independent witnesses;
# and reviews say bad things even of what they like (decision 22).
_SLOPE, _OFFSET = 0.8, 0.5

_CARD = """\
# Polarity

Weights of {words} words and negated words, a logistic regression; English. It tells positive from
negative reviews, and is read by `Polarity`.

- *Data*, all CC BY 4.0: {counts}. Sentence polarity v1.0 (Pang and Lee 2005); product reviews (Hu
  and Liu 2004; Ding, Liu and Yu 2008); pros and cons (Ganapathibhotla and Liu 2008); sentiment
  labelled sentences (Kotzias et al. 2015).
- *Recipe*: `leporello/training/recipes/polarity`. {excluded} texts were left out, which belong to
  documents of the final measurement.
- *Scores*: docs/decisions/0022-space-digest.md.
- *Limits*: no irony, no context; reviews of other things than films, hotels, restaurants and goods
  are unknown to it.
"""


@dataclass(frozen=True)
class PolaritySettings:
    """Settings; relative paths count from their file.

    Attributes:
        data: Folder of `read_opinions`.
        exclude: Python file with `is_apart(text)`, which is run: opinions it knows are left out.
    """

    data: Path
    exclude: Path | None = None


SETTINGS = PolaritySettings


def train(settings: PolaritySettings, folder: Path) -> dict[str, Any]:
    """Ships weights by settings, and returns what was counted."""
    every = read_opinions(settings.data)
    is_apart = exclusion(settings.exclude)
    opinions = [opinion for opinion in every if not is_apart(opinion.text)]
    learnt = fit(opinions)
    counts = Counter(opinion.source for opinion in opinions)
    excluded = len(every) - len(opinions)
    shown = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    card = _CARD.format(words=len(learnt.words), counts=shown, excluded=excluded)
    told: dict[str, JSON] = {"opinions": {**counts}, "excluded": excluded}
    write_words(learnt, folder, card, told)
    return {**told, "words": len(learnt.words)}


def fit(opinions: Sequence[Opinion]) -> LearntWords:
    """Returns the weights of words; every source weighs as its number, both labels the same."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    labels = np.array([opinion.is_positive for opinion in opinions])
    kinds = [(opinion.source, opinion.is_positive) for opinion in opinions]
    of_kind = Counter(kinds)
    of_source = Counter(source for source, _ in kinds)
    shares = [_WEIGHTS.get(kind[0], 1.0) * of_source[kind[0]] / 2 / of_kind[kind] for kind in kinds]
    vectorizer = CountVectorizer(analyzer=opinion_words, min_df=_SEEN)
    rows = vectorizer.fit_transform(opinion.text for opinion in opinions)
    model = LogisticRegression(C=_STRENGTH, max_iter=1000).fit(rows, labels, sample_weight=shares)
    return LearntWords(
        [*vectorizer.get_feature_names_out()],
        _SLOPE * model.coef_[0],
        _SLOPE * (float(model.intercept_[0]) + _OFFSET),
    )
