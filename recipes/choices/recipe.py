"""The recipe `choices`: trains a ranker of options from multiple-choice questions.

The model is a conditional logit over a few features: traits of right options in stories and in
everyday texts, and the agreement of an option with the answer of the recipe `answers`' encoder.
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
from leporello.readers.embedded.spans import SpanHead
from leporello.text.tokens import Words
from recipes.settings import exclusion
from recipes.weights import pack, write_model

_OPTIONS = 4
_NONE = "none of the above"
_WORDS = 200  # words per passage

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ChoicesSettings:
    """Settings that determine the result of a training."""

    encoder: Path  # folder of the recipe `answers`' encoder
    quality: Path  # JSON Lines of SCROLLS' `quality`, cross-validated by story
    cosmos: Path  # CosmosQA's `valid.csv`
    # Rows of questions with answers in passages, gzipped JSON Lines, to make multiple-choice
    # questions; wrong options are answers of other questions.
    questions: Path
    source: str = "fairytaleqa"  # name of the set of rows to use
    cosmos_weight: NonNegative = 0.2  # weight of a question of CosmosQA, relative to one of QuALITY
    # Weight of a question from rows, relative to one of QuALITY.
    questions_weight: NonNegative = 0.3
    made: Positive = 110  # number of questions to make from rows
    ridge: AboveZero = 3.0  # strength of regularisation
    # Python file with `is_apart(text, share)`, which is run: texts are left out if it returns true.
    exclude: Path | None = None
    exclude_share: Share = 0.25  # second argument of `is_apart`: share of a text that must match
    seed: int = 3  # seed of the questions made from rows


@dataclass(frozen=True)
class Multiple:
    """A multiple-choice question."""

    document: str  # document of the question; its questions are held out together
    question: str  # text of the question
    options: tuple[str, ...]  # options
    passages: tuple[str, ...]  # passages to read
    right: int  # index of the right option


SETTINGS = ChoicesSettings


def train(settings: ChoicesSettings, out: Path) -> dict[str, Any]:
    """Trains and writes a ranker; returns its scores and weights."""
    excluded = exclusion(settings.exclude, settings.exclude_share)
    sets = [
        ([*_quality(settings.quality, excluded)], 1.0),
        ([*_cosmos(settings.cosmos, excluded)], settings.cosmos_weight),
        (_from_rows(settings, excluded), settings.questions_weight),
    ]
    questions = [question for members, _ in sets for question in members]
    weights = np.array([weight for members, weight in sets for _ in members])
    features = _features(settings, questions)
    spread = np.std([row for rows in features[: -len(sets[2][0])] for row in rows], axis=0)
    spread[spread == 0] = 1.0
    spread[len(TRAITS) :] = 0.1  # not measured: agreement is rare in stories, and would weigh more
    features = [rows / spread for rows in features]
    right = np.array([question.right for question in questions])
    scores = _cross_validated(questions[: len(sets[0][0])], features, right, weights, settings)
    learnt = fit(features, right, weights, settings.ridge) / spread
    files = {"weights.safetensors": pack({"weights": learnt})}
    write_model(out, files, {"features": [*TRAITS, "agreed"]})
    return {
        "questions": [len(members) for members, _ in sets],
        "validation": scores,
        "weights": learnt.tolist(),
    }


def fit(
    features: Sequence[Floats], right: NDArray[np.int64], weights: Floats, ridge: float
) -> Floats:
    """Returns the weights of features that maximise the likelihood of right options.

    `features` have the shape (options, features) for each question.
    """
    from scipy.optimize import minimize

    def loss(parameters: Floats) -> tuple[float, Floats]:
        total, gradient = ridge * float(parameters @ parameters) / 2, ridge * parameters
        for rows, place, weight in zip(features, right, weights, strict=True):
            odds = rows @ parameters
            odds = odds - np.logaddexp.reduce(odds)
            total -= weight * float(odds[place])
            gradient = gradient - weight * (rows[place] - np.exp(odds) @ rows)
        return total, gradient

    optimum: Floats = minimize(loss, np.zeros(features[0].shape[1]), jac=True).x
    return optimum


def _cross_validated(
    stories: Sequence[Multiple],
    features: Sequence[Floats],
    right: NDArray[np.int64],
    weights: Floats,
    settings: ChoicesSettings,
) -> dict[str, float]:
    """Returns scores on stories, with each story's questions held out in turn."""
    documents = np.array([question.document for question in stories])
    hits, likelihood = np.zeros(len(stories)), np.zeros(len(stories))
    for document in dict.fromkeys(documents.tolist()):
        test = np.flatnonzero(documents == document)
        train = np.setdiff1d(np.arange(len(features)), test)
        learnt = fit([features[i] for i in train], right[train], weights[train], settings.ridge)
        for i in test.tolist():
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


def _features(settings: ChoicesSettings, questions: Sequence[Multiple]) -> list[Floats]:
    head = SpanHead(settings.encoder)
    return [choices.features(head, q.question, q.options, q.passages)[0] for q in questions]


def _quality(path: Path, excluded: Callable[[str], bool]) -> Iterator[Multiple]:
    """Yields the questions of SCROLLS' rows, which have question, options and story in one text."""
    with path.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    for row in rows:
        question, _, text = row["input"].partition("\n\n")
        options = re.findall(r"^ *\([A-D]\) *(.*?) *$", text, re.MULTILINE)[:_OPTIONS]
        story = text.partition(f"(D) {options[-1]}")[2]
        if not excluded(story):
            passages = _passages(story)
            right = options.index(row["output"].strip())
            yield Multiple(row["input"][-200:], question, tuple(options), passages, right)


def _cosmos(path: Path, excluded: Callable[[str], bool]) -> Iterator[Multiple]:
    """Yields the questions without an option `none of the above`."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    for row in rows:
        options = [row[f"answer{i}"].strip() for i in range(_OPTIONS)]
        if excluded(row["context"]) or any(_NONE in option.lower() for option in options):
            continue
        yield Multiple(row["id"], row["question"], tuple(options), (), int(row["label"]))


def _from_rows(settings: ChoicesSettings, excluded: Callable[[str], bool]) -> list[Multiple]:
    """Returns questions with their answer and three other answers of the same document."""
    documents = defaultdict(list)
    with gzip.open(settings.questions, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            if row["set"] == settings.source and row["answers"] and not excluded(row["passage"]):
                documents[row["document_id"]].append(row)
    rng = random.Random(settings.seed)
    questions = []
    for name in rng.sample(sorted(documents), len(documents)):
        row = rng.choice(documents[name])
        answer, terms = row["answers"][0][1], option_terms(row["answers"][0][1])
        wrong = [o for o in _other_answers(row, documents[name]) if not option_terms(o) & terms]
        if len(wrong) >= _OPTIONS - 1:
            options = [answer, *rng.sample(wrong, _OPTIONS - 1)]
            rng.shuffle(options)
            passages, right = (row["passage"],), options.index(answer)
            questions.append(Multiple(name, row["question"], tuple(options), passages, right))
    return questions[: settings.made]


def _other_answers(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> list[str]:
    """Returns the answers to other questions that begin with the same word."""
    first = row["question"].split()[0]
    return list(
        dict.fromkeys(r["answers"][0][1] for r in rows if r["question"].split()[0] == first)
    )


def _passages(story: str) -> tuple[str, ...]:
    offsets = Words().offsets(story)
    return tuple(
        story[offsets[i][0] : offsets[min(i + _WORDS, len(offsets)) - 1][1]]
        for i in range(0, len(offsets), _WORDS)
    )
