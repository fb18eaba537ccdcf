"""The recipe `summaries`: reads rows, computes features, and fits one regression per kind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leporello.core.errors import UserError, did_you_mean
from leporello.readers.embedded.summaries import kind_of
from leporello.readers.embedded.summary_features import describe
from leporello.readers.embedded.summary_units import clean, units_of
from leporello.text.english.questions import Wanted, wanted
from leporello.text.english.terms import EMPTY_TERMS, is_script
from recipes.settings import exclusion
from recipes.weights import card_of, write_model

_WORD = re.compile(r"[a-z0-9]+")  # words of ROUGE
_LONG = 60  # words of a unit with the maximum weight
_SHAPE = ("redundancy", "words", "power")  # optional settings of a kind
_UNITS = 6  # minimum number of units of a text
Moments = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class SummarySource:
    """Rows of one source."""

    source: str  # name of the format of its files
    path: Path  # file or folder; relative paths count from the file of the settings
    share: float  # relative weight of the source within its kind


@dataclass(frozen=True)
class SummaryFit:
    """Settings of one kind of summary."""

    penalty: float  # number that is added to the features' variance of 1
    sets: tuple[SummarySource, ...]  # sources of training data
    # Penalty of a repetition, in standard deviations of the score.
    redundancy: int | float | None = None
    words: int | float | None = None  # length in words
    power: int | float | None = None  # exponent of the length as a function of the texts' length


@dataclass(frozen=True)
class SummariesSettings:
    """Settings; relative paths count from their file."""

    questions: int  # maximum number of questions per set
    seed: int  # seed of the draw of questions
    kinds: dict[str, SummaryFit]  # settings by kind of summary
    # Python file with `is_apart(text)`, which is run: texts are left out if it returns true.
    exclude: Path | None = None


SETTINGS = SummariesSettings


def train(settings: SummariesSettings, folder: Path) -> dict[str, Any]:
    """Fits and writes the weights of each kind; returns numbers of questions."""
    is_apart = exclusion(settings.exclude)
    kinds: dict[str, Any] = {}
    counts: dict[str, dict[str, int]] = {}
    for kind, options in settings.kinds.items():
        weighted: list[tuple[float, Moments]] = []
        counts[kind] = {}
        for part in options.sets:
            rows = [row for row in _rows(part, is_apart) if _kind(row) == kind]
            sample = _draw(rows, settings.questions, settings.seed)
            moments = [_moments(*_features_and_gains(row)) for row in sample]
            usable = [row_moments for row_moments in moments if row_moments is not None]
            if not usable:
                raise UserError(f"{part.path} has no usable rows of the kind {kind!r}")
            weighted.append((part.share, _mean(usable)))
            counts[kind][part.source] = len(usable)
        names = _features_and_gains(sample[0])[0].names
        weights = ridge(*_sum(weighted), options.penalty)
        kinds[kind] = {
            "weights": dict(zip(names, np.round(weights, 5).tolist(), strict=True)),
            **{name: value for name in _SHAPE if (value := getattr(options, name)) is not None},
        }
    write_model(folder, {"weights.json": json.dumps(kinds, indent=1).encode() + b"\n"}, {})
    (folder / "card.md").write_text(card_of("summaries"), encoding="utf-8")
    return {"questions": counts}


def gains(texts: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
    """Returns numbers of words and word pairs that texts share with summaries, shape (texts, 2).

    Function words count only in pairs with a content word; otherwise, texts with many function
    words would be chosen. The numbers are means over the summaries.
    """
    sums = np.zeros((len(texts), 2))
    words_of_texts = [_WORD.findall(text.lower()) for text in texts]
    for reference in references:
        words = _WORD.findall(reference.lower())
        single = {*words} - EMPTY_TERMS
        double = {pair for pair in pairwise(words) if not single.isdisjoint(pair)}
        sums += [
            (sum(w in single for w in text_words), sum(p in double for p in pairwise(text_words)))
            for text_words in words_of_texts
        ]
    return sums / max(len(references), 1)


def ridge(
    products: NDArray[np.float64], targets: NDArray[np.float64], penalty: float
) -> NDArray[np.float64]:
    """Returns the weights of features by ridge regression on features of variance 1.

    `products` of the features have the shape (features, features), `targets` are products of
    features and target, shape (features,). `penalty` is added to the variance.
    """
    scale = np.sqrt(np.diag(products)) + 1e-9
    scaled = products / np.outer(scale, scale) + penalty * np.eye(len(scale))
    weights: NDArray[np.float64] = np.linalg.solve(scaled, targets / scale) / scale
    return weights


def _features_and_gains(row: Mapping[str, Any]) -> tuple[Any, NDArray[np.float64]]:
    """Returns the features and gains of a text's units."""
    texts, question = [row["text"]], row["question"]
    script = is_script(texts)
    units = units_of(texts, script=script, join=script or bool(question))
    unit_texts = [clean(row["text"][unit.start : unit.end]) for unit in units]
    return describe(units, texts, question), gains(unit_texts, row["references"])


def _moments(described: Any, gained: NDArray[np.float64]) -> Moments | None:  # noqa: ANN401 -- the result of `describe`
    """Returns the products of features with each other and with the target, for one text."""
    weights = np.minimum(described.words, _LONG) * described.holds
    density = gained / np.maximum(described.words, 1)[:, None]
    weights = weights / max(weights.sum(), 1)
    mean = weights @ density
    if (weights > 0).sum() < _UNITS or not mean.all():
        return None
    target = (density / mean).sum(axis=1)
    features = described.values - weights @ described.values
    weighted = features * weights[:, None]
    return weighted.T @ features, weighted.T @ (target - weights @ target)


def _mean(all_moments: Sequence[Moments]) -> Moments:
    return _sum([(1 / len(all_moments), moments) for moments in all_moments])


def _sum(weighted: Sequence[tuple[float, Moments]]) -> Moments:
    products = [share * moments[0] for share, moments in weighted]
    targets = [share * moments[1] for share, moments in weighted]
    return np.sum(products, axis=0), np.sum(targets, axis=0)


def _rows(part: SummarySource, is_apart: Callable[[str], bool]) -> list[dict[str, Any]]:
    if part.source not in SOURCES:
        hint = did_you_mean(part.source, SOURCES)
        raise UserError(f"there is no source {part.source!r}{hint}")
    rows: Iterable[dict[str, Any]] = SOURCES[part.source](part.path)
    excluded: dict[str, bool] = {}
    usable = []
    for row in rows:
        if row["document"] not in excluded:
            excluded[row["document"]] = is_apart(row["text"])
        if not excluded[row["document"]]:
            usable.append(row)
    return usable


def _draw(rows: list[dict[str, Any]], most: int, seed: int) -> list[dict[str, Any]]:
    if len(rows) <= most:
        return rows
    sample = np.random.default_rng(seed).choice(len(rows), most, replace=False)
    return [rows[place] for place in sorted(sample.tolist())]


def _kind(row: Mapping[str, Any]) -> str:
    texts, question = [row["text"]], row["question"]
    is_whole = wanted(question, "", texts) is not Wanted.TOPIC
    return kind_of(question, script=is_script(texts), whole=is_whole)


def qmsum(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields the queries on the meetings of QMSum's folder `data/ALL/train` (MIT)."""
    for path in sorted(folder.glob("*.json")):
        meeting = json.loads(path.read_text(encoding="utf-8"))
        turns = (f"{turn['speaker']}: {turn['content']}" for turn in meeting["meeting_transcripts"])
        text = "\n".join(turns)
        for query in meeting["general_query_list"] + meeting["specific_query_list"]:
            yield _row(path.stem, text, query["query"], [query["answer"]])


def squality(file: Path) -> Iterator[dict[str, Any]]:
    """Yields the questions on the stories of SQuALITY's `v1-3/txt/train.jsonl` (CC BY 4.0)."""
    for story in _lines(file):
        for question in story["questions"]:
            answers = [answer["response_text"] for answer in question["responses"]]
            name = story["metadata"]["passage_id"]
            yield _row(name, story["document"], question["question_text"], answers)


def bamboo(file: Path) -> Iterator[dict[str, Any]]:
    """Yields papers with their abstracts from BAMBOO's `abshallu_4k.jsonl` (MIT; CC BY)."""
    for paper in _lines(file):
        if str(paper["answer"]) == "True":  # the abstracts of other papers were falsified
            yield _row(paper["title"], paper["content"], "", [paper["hypothesis"]])


def gov_report(file: Path) -> Iterator[dict[str, Any]]:
    """Yields the reports of a file of SCROLLS' `gov_report` (US government, public domain)."""
    for report in _lines(file):
        yield _row(report["id"], report["input"].removeprefix("Report:"), "", [report["output"]])


SOURCES: Mapping[str, Callable[[Path], Iterator[dict[str, Any]]]] = {
    "qmsum": qmsum,
    "squality": squality,
    "bamboo": bamboo,
    "gov_report": gov_report,
}


def _row(document: str, text: str, question: str, references: list[str]) -> dict[str, Any]:
    return {
        "document": document,
        "text": text.strip(),
        "question": question,
        "references": references,
    }


def _lines(file: Path) -> Iterator[Any]:
    try:
        with file.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read: {error}") from None
