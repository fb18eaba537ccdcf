"""The recipe `plots`: learns word weights from SQuALITY's summaries."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leporello.core.files import opened
from leporello.core.records import JSON
from leporello.readers.word_evidence import plot_words
from leporello.text.sentences import sentence_spans
from recipes.settings import exclusion
from recipes.weights import LearntWords, card_of, write_words

_FEWEST = 5  # minimum number of sentences of a summary
_STORIES = 3  # minimum number of stories of a word, to exclude names
_REGULARISATION = 100.0

Plots = dict[str, list[list[str]]]


@dataclass(frozen=True)
class PlotsSettings:
    """Settings; relative paths count from their file."""

    data: tuple[Path, ...]  # files of SQuALITY, JSON Lines
    # Python file with `is_apart(text)`, which is run: stories are left out if it returns true.
    exclude: Path | None = None


SETTINGS = PlotsSettings


def train(settings: PlotsSettings, folder: Path) -> dict[str, Any]:
    """Fits and writes word weights; returns counts of the data."""
    is_apart = exclusion(settings.exclude)
    rows = [row for file in settings.data for row in _rows(file)]
    free = [row for row in rows if not is_apart(row["document"])]
    plots = read_plots(free)
    learnt = fit(plots)
    before, after = ({row["metadata"]["passage_id"] for row in part} for part in (rows, free))
    counts: dict[str, JSON] = {
        "stories": len(plots),
        "summaries": sum(map(len, plots.values())),
        "excluded": len(before) - len(after),
    }
    card = card_of("plots").format(words=len(learnt.words), **counts)
    write_words(learnt, folder, card, counts)
    return {**counts, "words": len(learnt.words)}


def read_plots(rows: Sequence[dict[str, Any]]) -> Plots:
    """Returns the sentences of the summaries of complete stories, by story.

    The first question of a row of SQuALITY asks for the plot.
    """
    plots: defaultdict[str, dict[str, list[str]]] = defaultdict(dict)
    for row in rows:
        for response in row["questions"][0]["responses"]:
            text = response["response_text"].strip()
            sentences = [text[start:end] for start, end in sentence_spans(text)]
            if len(sentences) >= _FEWEST:
                plots[row["metadata"]["passage_id"]][text] = sentences
    return {story: [*summaries.values()] for story, summaries in plots.items()}


def fit(plots: Plots) -> LearntWords:
    """Returns word weights; their sum is a position in the story, about -0.5 to 0.5."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import Ridge

    stories: defaultdict[str, set[str]] = defaultdict(set)
    texts, places = [], []
    for story, summaries in plots.items():
        for sentences in summaries:
            texts += sentences
            places += [*np.linspace(-0.5, 0.5, len(sentences))]
            for word in plot_words(" ".join(sentences)):
                stories[word].add(story)
    words = sorted(word for word, users in stories.items() if len(users) >= _STORIES)
    rows = CountVectorizer(analyzer=plot_words, vocabulary=words).transform(texts)
    model = Ridge(alpha=_REGULARISATION).fit(rows, places)
    return LearntWords(words, model.coef_, float(model.intercept_))


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    with opened(file) as lines:
        yield from map(json.loads, lines)
