"""What tells that a sentence belongs into a summary, as numbers; linear in the length of the text.

English words that say little, and those of requests, are left out; of other languages those that
most sentences have weigh next to nothing.
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
from leporello.text.english.content_terms import EMPTY_STEMS, content_terms, stem
from leporello.text.tokens import terms


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_FILLER = _words("ah hm hmm mhm mm no oh ok okay right sure uh um well yeah yep yes")
_PRONOUN = _words("he her his i it me my she that they this those we you your")
_CUE = re.compile(
    r"\b(?:this|our|the present) (?:act|article|bill|chapter|dissertation|paper|report|study|thesis"
    r"|work)\b|\bin (?:conclusion|summary)\b|\bwe (?:conclude|decided|propose|present|show)\b",
    re.IGNORECASE,
)
_LEAD = 150  # words that a document begins with
_DECAYS = (50, 150, 500)  # words in which the weight of the beginning falls to a third
_HALVES = (2, 6, 15, 40)  # units on either side that are looked at for what is asked


@dataclass(frozen=True)
class Described:
    """Units with what was counted in them.

    Attributes:
        names: Names of the features.
        values: Features, shape (units, features).
        words: Words of each unit, shape (units,).
        sizes: The same with the words of the speaker's name.
        holds: Whether a unit says enough to stand in a summary, shape (units,).
        unit: Unit of each of its distinct terms, ascending, shape (terms,).
        term: Numbers of these terms, shape (terms,).
        weight: Weights of terms by number; 0 for those that say little.
        asked: Numbers of the terms that are asked for.
        missed: Weight of those terms that no unit has.
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    words: NDArray[np.float64]
    sizes: NDArray[np.float64]
    holds: NDArray[np.bool_]
    unit: NDArray[np.int64]
    term: NDArray[np.int64]
    weight: NDArray[np.float64]
    asked: NDArray[np.int64]
    missed: float


def describe(units: Sequence[SummaryUnit], texts: Sequence[str], question: str) -> Described:
    """Returns the features of units.

    Args:
        units: Units, at least one, in reading order.
        texts: Texts that they stand in.
        question: What is asked; may be empty.
    """
    shown = [clean(texts[u.text][u.start : u.end]) for u in units]
    counts = _Counts([terms(text) for text in shown])
    words = np.array([word_count(text) for text in shown], dtype=np.float64)
    wanted = content_terms(question)
    asked = np.array([counts.ids[t] for t in wanted if t in counts.ids], dtype=np.int64)
    speaks = [clean(texts[u.text][slice(*u.name)]).rstrip(": ") for u in units]
    rows = {
        **_places(units, words),
        **_centre(counts, words),
        **_forms(shown, counts.lists, words),
        **_speakers(speaks, words),
        **_asked(counts, asked, speaks, question),
    }
    meant = counts.sums(np.where(counts.weight[counts.term] > 0, 1.0, 0.0))
    return Described(
        names=tuple(rows),
        values=np.stack(list(rows.values()), axis=1),
        words=words,
        sizes=words + [len(name.split()) for name in speaks],
        holds=(words >= 6) & (meant >= 3),  # noqa: PLR2004
        unit=counts.unit,
        term=counts.term,
        weight=counts.weight,
        asked=asked,
        missed=(len(wanted) - len(asked)) * math.log(2 * len(units) + 2),
    )


class _Counts:
    """Distinct terms of units, numbered, with their inverse document frequencies."""

    def __init__(self, lists: Sequence[Sequence[str]]) -> None:
        self.lists = lists
        self.units = len(lists)
        self.ids: dict[str, int] = {}
        number = self.ids
        all_terms = [number.setdefault(stem(t), len(number)) for found in lists for t in found]
        unit = np.repeat(np.arange(self.units), [len(found) for found in lists])
        self.lengths = np.bincount(unit, minlength=self.units)
        self.size = max(len(number), 1)
        self.often = np.bincount(np.array(all_terms, dtype=np.int64), minlength=self.size)
        pairs = np.unique(unit * self.size + np.array(all_terms, dtype=np.int64))
        self.unit, self.term = np.divmod(pairs, self.size)
        spread = np.bincount(self.term, minlength=self.size)
        says = np.array([t not in EMPTY_STEMS and len(t) > 1 for t in number] or [False])
        self.idf = np.log((self.units + 1) / (spread + 0.5))
        self.weight = np.where(says, self.idf, 0.0)

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the sum of what each unit's terms have, given by entries."""
        sums: NDArray[np.float64] = np.bincount(self.unit, values, self.units).astype(np.float64)
        return sums


def _places(
    units: Sequence[SummaryUnit], words: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    before = np.cumsum(words) - words
    part = before / max(words.sum(), 1)
    paragraph = np.array([u.paragraph for u in units])
    number = np.arange(len(units))
    opens = np.append(True, paragraph[1:] != paragraph[:-1])
    within = number - np.maximum.accumulate(np.where(opens, number, 0))
    sizes = np.bincount(paragraph - paragraph[0], words)[paragraph - paragraph[0]]
    return {
        **{f"lead_{decay}": np.exp(-before / decay) for decay in _DECAYS},
        "place": part,
        "place_squared": part**2,
        "first_tenth": np.maximum(0, 1 - part * 10),
        "last_fifth": np.maximum(0, part * 5 - 4),
        "last_twentieth": np.maximum(0, part * 20 - 19),
        "opens_paragraph": opens.astype(np.float64),
        "early_in_paragraph": 1 / (1 + within),
        "paragraph_length": np.log1p(sizes),
    }


def _centre(counts: _Counts, words: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    weights = counts.weight[counts.term]
    norm = np.sqrt(counts.sums(weights**2)) + 1e-9
    centre = np.bincount(counts.term, weights / norm[counts.unit], counts.size)
    begins = np.zeros(counts.size)
    begins[counts.term[(np.cumsum(words) - words)[counts.unit] < _LEAD]] = 1
    says = (weights > 0).astype(np.float64)
    often = np.log1p(counts.often * (counts.weight > 0))
    often /= max(often.max(), 1)
    number = np.maximum(counts.sums(says), 1)
    return {
        "central": counts.sums(weights * centre[counts.term])
        / norm
        / (np.sqrt((centre**2).sum()) + 1e-9),
        "like_lead": counts.sums(weights * begins[counts.term]) / norm / 5,
        "frequent": counts.sums(says * often[counts.term]) / number,
        "rare": counts.sums(weights) / number,
        "content": counts.sums(says) / np.maximum(words, 1),
    }


def _forms(
    shown: Sequence[str], lists: Sequence[Sequence[str]], words: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    def share(held: frozenset[str]) -> NDArray[np.float64]:
        return np.array([sum(t in held for t in found) / max(len(found), 1) for found in lists])

    capitals = [sum(w[0].isupper() for w in text.split()[1:]) for text in shown]
    return {
        "length": np.log1p(words),
        "length_squared": np.log1p(words) ** 2,
        "short": (words < 9).astype(np.float64),  # noqa: PLR2004
        "digits": np.array([sum(c.isdigit() for c in t) / (len(t) + 1) for t in shown]),
        "capitals": np.array(capitals) / np.maximum(words, 1),
        "commas": np.array([text.count(",") for text in shown]) / np.maximum(words, 1),
        "quotes": np.array(['"' in t or "“" in t for t in shown], dtype=np.float64),
        "asks": np.array([text.endswith("?") for text in shown], dtype=np.float64),
        "ends": np.array([text[-1:] in '.!?"”。' for text in shown], dtype=np.float64),
        "cue": np.array([_CUE.search(text) is not None for text in shown], dtype=np.float64),
        "filler": share(_FILLER),
        "pronouns": share(_PRONOUN),
    }


def _speakers(speaks: Sequence[str], words: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    said: Counter[str] = Counter()
    for name, number in zip(speaks, words.tolist(), strict=True):
        said[name] += number
    return {"speaks_much": np.array([said[name] for name in speaks]) / max(words.sum(), 1)}


def _asked(
    counts: _Counts, asked: NDArray[np.int64], speaks: Sequence[str], question: str
) -> dict[str, NDArray[np.float64]]:
    """Returns how much of what is asked a unit and its neighbours hold, and who was asked about."""
    holds = np.zeros((counts.units, len(asked)))
    for column, number in enumerate(asked.tolist()):
        holds[counts.unit[counts.term == number], column] = 1
    weights = counts.idf[asked]
    weights = weights / max(weights.sum(), 1e-9)
    own = holds @ weights
    rows = {"asked": own, "asked_densely": own / np.sqrt(np.maximum(counts.lengths, 5))}
    said = set(terms(question))
    named = {name: bool(name) and said.issuperset(terms(name)) for name in set(speaks)}
    rows["asked_speaker"] = np.array([named[name] for name in speaks], dtype=np.float64)
    for half in _HALVES:
        near = (1 - np.exp(-_around(holds, half) / 2)) @ weights
        rows[f"near_{half}"] = near
        rows[f"nearest_{half}"] = near / max(near.max(), 1e-9)
    rows["speaker_near"] = rows["asked_speaker"] * rows["nearest_6"]
    return rows


def _around(values: NDArray[np.float64], half: int) -> NDArray[np.float64]:
    """Returns the sums over so many units on either side."""
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    number = np.arange(len(values))
    first, end = np.maximum(number - half, 0), np.minimum(number + half + 1, len(values))
    around: NDArray[np.float64] = sums[end] - sums[first]
    return around
