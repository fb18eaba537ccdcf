"""Features of sentences for summaries, computed in time linear in the length of the text.

English function words and words of requests are ignored; in other languages, words that most
sentences have get almost no weight.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leporello.readers.embedded.summary_units import SummaryUnit, clean, word_count
from leporello.text.english.terms import EMPTY_STEMS, content_terms, stem
from leporello.text.tokens import terms


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FILLER = _words("ah hm hmm mhm mm no oh ok okay right sure uh um well yeah yep yes")
_PRONOUN = _words("he her his i it me my she that they this those we you your")
_CUE = re.compile(
    r"\b(?:this|our|the present) (?:act|article|bill|chapter|dissertation|paper|report|study|thesis"
    r"|work)\b|\bin (?:conclusion|summary)\b|\bwe (?:conclude|decided|propose|present|show)\b",
    re.IGNORECASE,
)
_LEAD = 150  # words of the beginning of a document
_DECAYS = (50, 150, 500)  # words after which the weight of the beginning falls to a third
_HALVES = (2, 6, 15, 40)  # units on either side in which the question's terms are counted


@dataclass(frozen=True)
class Described:
    """Units with their features and counts."""

    names: tuple[str, ...]  # names of the features
    values: NDArray[np.float64]  # features, shape (units, features)
    words: NDArray[np.float64]  # number of words of each unit, shape (units,)
    sizes: NDArray[np.float64]  # the same with the words of the speaker's name
    holds: NDArray[np.bool_]  # whether a unit has enough content for a summary
    unit: NDArray[np.int64]  # unit of each distinct term of a unit, ascending, shape (terms,)
    term: NDArray[np.int64]  # numbers of these terms, shape (terms,)
    weight: NDArray[np.float64]  # weights of terms by number; 0 for words without content
    asked: NDArray[np.int64]  # numbers of the terms of the question
    missed: float  # weight of the question's terms that no unit has


def describe(units: Sequence[SummaryUnit], texts: Sequence[str], question: str) -> Described:
    """Returns the features of units."""
    cleaned = [clean(texts[u.text][u.start : u.end]) for u in units]
    counts = _Counts([terms(text) for text in cleaned])
    words = np.array([word_count(text) for text in cleaned], dtype=np.float64)
    wanted = content_terms(question)
    query = np.array([counts.ids[t] for t in wanted if t in counts.ids], dtype=np.int64)
    speakers = [clean(texts[u.text][slice(*u.name)]).rstrip(": ") for u in units]
    rows = {
        **_places(units, words),
        **_centre(counts, words),
        **_forms(cleaned, counts.lists, words),
        **_speakers(speakers, words),
        **_question(counts, query, speakers, question),
    }
    content = counts.sums(np.where(counts.weight[counts.term] > 0, 1.0, 0.0))
    return Described(
        names=tuple(rows),
        values=np.stack(list(rows.values()), axis=1),
        words=words,
        sizes=words + [len(name.split()) for name in speakers],
        holds=(words >= 6) & (content >= 3),  # noqa: PLR2004
        unit=counts.unit,
        term=counts.term,
        weight=counts.weight,
        asked=query,
        missed=(len(wanted) - len(query)) * math.log(2 * len(units) + 2),
    )


class _Counts:
    """Numbers of the distinct terms of units, with their inverse document frequencies."""

    def __init__(self, lists: Sequence[Sequence[str]]) -> None:
        self.lists = lists
        self.units = len(lists)
        self.ids: dict[str, int] = {}
        number = self.ids
        all_terms = [number.setdefault(stem(t), len(number)) for words in lists for t in words]
        unit = np.repeat(np.arange(self.units), [len(words) for words in lists])
        self.lengths = np.bincount(unit, minlength=self.units)
        self.size = max(len(number), 1)
        self.often = np.bincount(np.array(all_terms, dtype=np.int64), minlength=self.size)
        pairs = np.unique(unit * self.size + np.array(all_terms, dtype=np.int64))
        self.unit, self.term = np.divmod(pairs, self.size)
        spread = np.bincount(self.term, minlength=self.size)
        has_content = np.array([t not in EMPTY_STEMS and len(t) > 1 for t in number] or [False])
        self.idf = np.log((self.units + 1) / (spread + 0.5))
        self.weight = np.where(has_content, self.idf, 0.0)

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the sum of values per unit, for values by term of a unit."""
        sums: NDArray[np.float64] = np.bincount(self.unit, values, self.units).astype(np.float64)
        return sums


def _places(
    units: Sequence[SummaryUnit], words: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    before = np.cumsum(words) - words
    part = before / max(words.sum(), 1)
    paragraph = np.array([u.paragraph for u in units])
    number = np.arange(len(units))
    is_first = np.append(True, paragraph[1:] != paragraph[:-1])
    within = number - np.maximum.accumulate(np.where(is_first, number, 0))
    sizes = np.bincount(paragraph - paragraph[0], words)[paragraph - paragraph[0]]
    return {
        **{f"lead_{decay}": np.exp(-before / decay) for decay in _DECAYS},
        "place": part,
        "place_squared": part**2,
        "first_tenth": np.maximum(0, 1 - part * 10),
        "last_fifth": np.maximum(0, part * 5 - 4),
        "last_twentieth": np.maximum(0, part * 20 - 19),
        "opens_paragraph": is_first.astype(np.float64),
        "early_in_paragraph": 1 / (1 + within),
        "paragraph_length": np.log1p(sizes),
    }


def _centre(counts: _Counts, words: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    weights = counts.weight[counts.term]
    norm = np.sqrt(counts.sums(weights**2)) + 1e-9
    centre = np.bincount(counts.term, weights / norm[counts.unit], counts.size)
    lead = np.zeros(counts.size)
    lead[counts.term[(np.cumsum(words) - words)[counts.unit] < _LEAD]] = 1
    content = (weights > 0).astype(np.float64)
    often = np.log1p(counts.often * (counts.weight > 0))
    often /= max(often.max(), 1)
    number = np.maximum(counts.sums(content), 1)
    return {
        "central": counts.sums(weights * centre[counts.term])
        / norm
        / (np.sqrt((centre**2).sum()) + 1e-9),
        "like_lead": counts.sums(weights * lead[counts.term]) / norm / 5,
        "frequent": counts.sums(content * often[counts.term]) / number,
        "rare": counts.sums(weights) / number,
        "content": counts.sums(content) / np.maximum(words, 1),
    }


def _forms(
    texts: Sequence[str], lists: Sequence[Sequence[str]], words: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    def share(kind: frozenset[str]) -> NDArray[np.float64]:
        return np.array([sum(t in kind for t in unit) / max(len(unit), 1) for unit in lists])

    capitals = [sum(w[0].isupper() for w in text.split()[1:]) for text in texts]
    return {
        "length": np.log1p(words),
        "length_squared": np.log1p(words) ** 2,
        "short": (words < 9).astype(np.float64),  # noqa: PLR2004
        "digits": np.array([sum(c.isdigit() for c in t) / (len(t) + 1) for t in texts]),
        "capitals": np.array(capitals) / np.maximum(words, 1),
        "commas": np.array([text.count(",") for text in texts]) / np.maximum(words, 1),
        "quotes": np.array(['"' in t or "“" in t for t in texts], dtype=np.float64),
        "asks": np.array([text.endswith("?") for text in texts], dtype=np.float64),
        "ends": np.array([text[-1:] in '.!?"”。' for text in texts], dtype=np.float64),
        "cue": np.array([_CUE.search(text) is not None for text in texts], dtype=np.float64),
        "filler": share(_FILLER),
        "pronouns": share(_PRONOUN),
    }


def _speakers(
    speakers: Sequence[str], words: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    totals: Counter[str] = Counter()
    for name, number in zip(speakers, words.tolist(), strict=True):
        totals[name] += number
    return {"speaks_much": np.array([totals[name] for name in speakers]) / max(words.sum(), 1)}


def _question(
    counts: _Counts, query: NDArray[np.int64], speakers: Sequence[str], question: str
) -> dict[str, NDArray[np.float64]]:
    """Returns features of the question's terms and speakers, in a unit and around it."""
    matches = np.zeros((counts.units, len(query)))
    for column, number in enumerate(query.tolist()):
        matches[counts.unit[counts.term == number], column] = 1
    weights = counts.idf[query]
    weights = weights / max(weights.sum(), 1e-9)
    share = matches @ weights
    rows = {"asked": share, "asked_densely": share / np.sqrt(np.maximum(counts.lengths, 5))}
    question_terms = set(terms(question))
    in_question = {n: bool(n) and question_terms.issuperset(terms(n)) for n in set(speakers)}
    rows["asked_speaker"] = np.array([in_question[name] for name in speakers], dtype=np.float64)
    for half in _HALVES:
        near = (1 - np.exp(-_around(matches, half) / 2)) @ weights
        rows[f"near_{half}"] = near
        rows[f"nearest_{half}"] = near / max(near.max(), 1e-9)
    rows["speaker_near"] = rows["asked_speaker"] * rows["nearest_6"]
    return rows


def _around(values: NDArray[np.float64], half: int) -> NDArray[np.float64]:
    """Returns the sums over each unit and `half` units on either side."""
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    number = np.arange(len(values))
    first, end = np.maximum(number - half, 0), np.minimum(number + half + 1, len(values))
    around: NDArray[np.float64] = sums[end] - sums[first]
    return around
