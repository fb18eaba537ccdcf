"""The recipe `polarity`: learns word weights from labelled opinions."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leporello.core.errors import UserError
from leporello.core.records import JSON
from leporello.readers.word_evidence import opinion_words
from recipes.settings import exclusion
from recipes.weights import LearntWords, card_of, write_words

_FEWEST = 3  # minimum number of opinions with a word
_STRENGTH = 0.2  # inverse strength of regularisation
_WEIGHTS = {"pros_cons": 0.05}  # many phrases that are not sentences, unlike reviews
# Correction of sums of weights for reviews, which are longer than the sentences of the data, have
# dependent words, and mention disadvantages even if they are positive (decision 22).
_SLOPE, _OFFSET = 0.8, 0.5
SOURCES = ("sentences", "snippets", "products", "pros_cons")
_TAG = re.compile(r"<[^>]+>")
_SIGN = re.compile(r"\[([+-])\d\]")


@dataclass(frozen=True)
class PolaritySettings:
    """Settings; relative paths count from their file."""

    data: Path  # folder for `read_opinions`
    # Python file with `is_apart(text)`, which is run: opinions are left out if it returns true.
    exclude: Path | None = None


SETTINGS = PolaritySettings


def train(settings: PolaritySettings, folder: Path) -> dict[str, Any]:
    """Fits and writes word weights; returns counts of the data."""
    all_opinions = read_opinions(settings.data)
    is_apart = exclusion(settings.exclude)
    opinions = [opinion for opinion in all_opinions if not is_apart(opinion.text)]
    learnt = fit(opinions)
    by_source = Counter(opinion.source for opinion in opinions)
    excluded = len(all_opinions) - len(opinions)
    text = ", ".join(f"{name} {count:,}" for name, count in by_source.items())
    card = card_of("polarity").format(words=len(learnt.words), counts=text, excluded=excluded)
    counts: dict[str, JSON] = {"opinions": {**by_source}, "excluded": excluded}
    write_words(learnt, folder, card, counts)
    return {**counts, "words": len(learnt.words)}


def fit(opinions: Sequence[Opinion]) -> LearntWords:
    """Returns word weights; a source weighs as its number of opinions, and both labels equally."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    labels = np.array([opinion.is_positive for opinion in opinions])
    kinds = [(opinion.source, opinion.is_positive) for opinion in opinions]
    of_kind = Counter(kinds)
    of_source = Counter(source for source, _ in kinds)
    shares = [_WEIGHTS.get(kind[0], 1.0) * of_source[kind[0]] / 2 / of_kind[kind] for kind in kinds]
    vectorizer = CountVectorizer(analyzer=opinion_words, min_df=_FEWEST)
    rows = vectorizer.fit_transform(opinion.text for opinion in opinions)
    model = LogisticRegression(C=_STRENGTH, max_iter=1000).fit(rows, labels, sample_weight=shares)
    return LearntWords(
        [*vectorizer.get_feature_names_out()],
        _SLOPE * model.coef_[0],
        _SLOPE * (float(model.intercept_[0]) + _OFFSET),
    )


@dataclass(frozen=True, slots=True)
class Opinion:
    """A short opinion with its label."""

    text: str  # text of the opinion
    is_positive: bool  # whether the opinion is positive
    source: str  # name of the corpus


def read_opinions(folder: Path) -> list[Opinion]:
    """Returns the opinions of a folder with the corpora in their distributed format.

    They are NLTK's `sentence_polarity`, `product_reviews_1`, `product_reviews_2` and `pros_cons`,
    and UCI's `sentiment labelled sentences`, each unpacked.
    """
    opinions = [*_sentences(folder), *_snippets(folder), *_products(folder), *_pros_cons(folder)]
    return [opinion for opinion in opinions if opinion.text]


def _sentences(folder: Path) -> Iterator[Opinion]:
    for site in ("amazon_cells", "imdb", "yelp"):
        for line in _lines(folder / "sentiment labelled sentences" / f"{site}_labelled.txt"):
            text, _, label = line.rpartition("\t")
            if label in ("0", "1"):
                yield Opinion(text.strip(), label == "1", f"sentences/{site}")


def _snippets(folder: Path) -> Iterator[Opinion]:
    for name in ("pos", "neg"):
        for line in _lines(folder / "sentence_polarity" / f"rt-polarity.{name}"):
            yield Opinion(line.strip(), name == "pos", "snippets")


def _products(folder: Path) -> Iterator[Opinion]:
    for name in ("product_reviews_1", "product_reviews_2"):
        for file in sorted((folder / name).glob("*.txt")):
            for line in _lines(file):
                labels, _, text = line.partition("##")
                signs = set(_SIGN.findall(labels))
                if len(signs) == 1:  # mixed opinions are skipped
                    yield Opinion(text.strip(), signs == {"+"}, "products")


def _pros_cons(folder: Path) -> Iterator[Opinion]:
    for name in ("Pros", "Cons"):
        for line in _lines(folder / "pros_cons" / f"Integrated{name}.txt"):
            yield Opinion(html.unescape(_TAG.sub("", line)).strip(), name == "Pros", "pros_cons")


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from None
