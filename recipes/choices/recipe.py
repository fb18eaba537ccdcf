"""From questions with options to a shipped ranker of options.

A conditional logit over a few features: traits that right options have in stories and in everyday
texts alike, and how far an option agrees with what the answers' encoder reads.
"""

from __future__ import annotations

import csv
import gzip
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leporello.core.protocols import NonNegative, Positive, Share
from leporello.core.training import AboveZero
from leporello.readers.embedded import choices
from leporello.readers.embedded.choices import TRAITS, option_terms
from leporello.text.tokens import Words
from recipes import encoder
from recipes.settings import exclusion
from recipes.weights import pack, write_model

_OPTIONS = 4
_NONE = "none of the above"
_WORDS = 200  # of a passage

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ChoicesSettings:
    """All that decides what a training gives.

    Attributes:
        encoder: Folder of the answers' encoder.
        quality: JSON lines of SCROLLS' `quality`, cross-validated by story.
        cosmos: CosmosQA's `valid.csv`.
        questions: Rows of questions with answers in passages, gzipped JSON lines; other answers of
            the same document are the wrong options.
        source: Name of the set that is taken from the rows.
        cosmos_weight: Weight of a question of CosmosQA, where one of QuALITY has 1.
        questions_weight: The same for questions made of rows.
        made: Number of questions that are made.
        ridge: Strength of regularisation.
        exclude: Python file with `is_apart(text, share)`, which is run: texts that it knows are
            left out.
        exclude_share: Share of a text that it must know.
        seed: Seed of the questions that are made.
    """

    encoder: Path
    quality: Path
    cosmos: Path
    questions: Path
    source: str = "fairytaleqa"
    cosmos_weight: NonNegative = 0.2
    questions_weight: NonNegative = 0.3
    made: Positive = 110
    ridge: AboveZero = 3.0
    exclude: Path | None = None
    exclude_share: Share = 0.25
    seed: int = 3


@dataclass(frozen=True)
class Multiple:
    """A question with options.

    Attributes:
        document: Document that it is on: questions on one are held out together.
        question: The question.
        options: Options.
        passages: Passages to read.
        right: Index of the right option.
    """

    document: str
    question: str
    options: tuple[str, ...]
    passages: tuple[str, ...]
    right: int


SETTINGS = ChoicesSettings


def train(settings: ChoicesSettings, out: Path) -> dict[str, Any]:
    """Ships a ranker by settings, and returns what was measured."""
    excluded = exclusion(settings.exclude, settings.exclude_share)
    sets = [
        ([*_quality(settings.quality, excluded)], 1.0),
        ([*_cosmos(settings.cosmos, excluded)], settings.cosmos_weight),
        (_made(settings, excluded), settings.questions_weight),
    ]
    questions = [question for found, _ in sets for question in found]
    weights = np.array([weight for found, weight in sets for _ in found])
    features = _observed(settings, questions)
    spread = np.std([row for rows in features[: -len(sets[2][0])] for row in rows], axis=0)
    spread[spread == 0] = 1.0
    spread[len(TRAITS) :] = 0.1  # agreement is rare in stories and must not be overrated for it
    features = [rows / spread for rows in features]
    right = np.array([question.right for question in questions])
    measured = _cross_validated(questions[: len(sets[0][0])], features, right, weights, settings)
    learnt = fit(features, right, weights, settings.ridge) / spread
    files = {"weights.safetensors": pack({"weights": learnt})}
    write_model(out, files, {"features": [*TRAITS, "agreed"]})
    return {
        "questions": [len(found) for found, _ in sets],
        "validation": measured,
        "weights": learnt.tolist(),
    }


def fit(
    features: Sequence[Floats], right: NDArray[np.int64], weights: Floats, ridge: float
) -> Floats:
    """Returns the weights of features by which right options are likeliest.

    Args:
        features: Features of the options of each question, shape (options, features).
        right: Index of the right option of each question.
        weights: Weight of each question.
        ridge: Strength of regularisation.
    """
    from scipy.optimize import minimize

    def loss(learnt: Floats) -> tuple[float, Floats]:
        total, slope = ridge * float(learnt @ learnt) / 2, ridge * learnt
        for rows, place, weight in zip(features, right, weights, strict=True):
            odds = rows @ learnt
            odds = odds - np.logaddexp.reduce(odds)
            total -= weight * float(odds[place])
            slope = slope - weight * (rows[place] - np.exp(odds) @ rows)
        return total, slope

    found: Floats = minimize(loss, np.zeros(features[0].shape[1]), jac=True).x
    return found


def _cross_validated(
    stories: Sequence[Multiple],
    features: Sequence[Floats],
    right: NDArray[np.int64],
    weights: Floats,
    settings: ChoicesSettings,
) -> dict[str, float]:
    """Returns accuracies on stories, each story's questions held out in turn."""
    documents = np.array([question.document for question in stories])
    hits, likelihood = np.zeros(len(stories)), np.zeros(len(stories))
    for document in dict.fromkeys(documents.tolist()):
        held = np.flatnonzero(documents == document)
        rest = np.setdiff1d(np.arange(len(features)), held)
        learnt = fit([features[i] for i in rest], right[rest], weights[rest], settings.ridge)
        for i in held.tolist():
            odds = features[i] @ learnt
            hits[i] = odds.argmax() == right[i]
            likelihood[i] = odds[right[i]] - np.logaddexp.reduce(odds)
    longest = [max(q.options, key=len) == q.options[q.right] for q in stories]
    return {
        "accuracy": float(hits.mean()),
        "standard_error": float(hits.std() / np.sqrt(len(hits))),
        "log_likelihood": float(likelihood.mean()),
        "longest": float(np.mean(longest)),
    }


def _observed(settings: ChoicesSettings, questions: Sequence[Multiple]) -> list[Floats]:
    asked = [(q.question, q.options, q.passages) for q in questions]
    head = encoder.head_of(settings.encoder)
    return [rows for rows, _ in choices.features(head, asked)]


def _quality(path: Path, excluded: Callable[[str], bool]) -> Iterator[Multiple]:
    """Yields the questions of SCROLLS' layout: question, options and story in one text."""
    with path.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    for row in rows:
        question, _, rest = row["input"].partition("\n\n")
        options = re.findall(r"^ *\([A-D]\) *(.*?) *$", rest, re.MULTILINE)[:_OPTIONS]
        story = rest.partition(f"(D) {options[-1]}")[2]
        if not excluded(story):
            passages = _passages(story)
            right = options.index(row["output"].strip())
            yield Multiple(row["input"][-200:], question, tuple(options), passages, right)


def _cosmos(path: Path, excluded: Callable[[str], bool]) -> Iterator[Multiple]:
    """Yields questions whose right option is no `none of the above`, nor any other option."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    for row in rows:
        options = [row[f"answer{i}"].strip() for i in range(_OPTIONS)]
        if excluded(row["context"]) or any(_NONE in option.lower() for option in options):
            continue
        yield Multiple(row["id"], row["question"], tuple(options), (), int(row["label"]))


def _made(settings: ChoicesSettings, excluded: Callable[[str], bool]) -> list[Multiple]:
    """Returns questions with their own answer and three others of the same document."""
    documents = defaultdict(list)
    with gzip.open(settings.questions, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            if row["set"] == settings.source and row["answers"] and not excluded(row["passage"]):
                documents[row["document_id"]].append(row)
    rng = random.Random(settings.seed)
    found = []
    for name in rng.sample(sorted(documents), len(documents)):
        own = rng.choice(documents[name])
        answer = own["answers"][0][1]
        wrong = [
            o for o in _others(own, documents[name]) if not option_terms(o) & option_terms(answer)
        ]
        if len(wrong) >= _OPTIONS - 1:
            options = [answer, *rng.sample(wrong, _OPTIONS - 1)]
            rng.shuffle(options)
            right = options.index(answer)
            found.append(Multiple(name, own["question"], tuple(options), (own["passage"],), right))
    return found[: settings.made]


def _others(own: dict[str, Any], rows: Sequence[dict[str, Any]]) -> list[str]:
    """Returns the answers to other questions that begin with the same word."""
    first = own["question"].split()[0]
    return list(
        dict.fromkeys(r["answers"][0][1] for r in rows if r["question"].split()[0] == first)
    )


def _passages(story: str) -> tuple[str, ...]:
    offsets = Words().offsets(story)
    return tuple(
        story[offsets[i][0] : offsets[min(i + _WORDS, len(offsets)) - 1][1]]
        for i in range(0, len(offsets), _WORDS)
    )
