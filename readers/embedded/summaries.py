"""Extractive summaries: sentences of the texts, chosen by weights in the package."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leporello.core.errors import UserError
from leporello.models.weights import ModelFolder
from leporello.readers.embedded.summary_features import Described, describe
from leporello.readers.embedded.summary_units import (
    WORD_LENGTH,
    SummaryUnit,
    clean,
    units_of,
    unshown,
    word_count,
)
from leporello.text.english.questions import Wanted, wanted
from leporello.text.english.terms import is_script
from leporello.text.tokens import Words

NOTHING = -1e9  # score without any text to summarise; JSON cannot represent infinity

_CANDIDATES = 400  # units that are compared with each other
_MIN_WORDS, _MAX_WORDS = 60, 600  # of a report's summary
_UNUSED = 0.15  # share of the length that may stay unused
_MIN_SHARE = 0.02  # least share of the question's terms, and of those that are missing


@dataclass(frozen=True)
class SummaryKind:
    """Weights for one kind of summary."""

    weights: Mapping[str, float]  # weights of features by name
    redundancy: float  # penalty for repeated content, in standard deviations of the score
    words: float  # length in words; for reports, the length for texts of 1,000 words
    power: float = 0.0  # exponent by which the length grows with that of the texts


class Summariser:
    """Chooses sentences by a linear score of their features."""

    def __init__(self, folder: ModelFolder) -> None:
        try:
            kinds: dict[str, Any] = json.loads(folder.checked("weights.json"))
            self._kinds = {name: SummaryKind(**kind) for name, kind in kinds.items()}
        except (ValueError, TypeError) as error:
            raise UserError(f"{folder.path / 'weights.json'}: {error}") from None

    def select(
        self,
        texts: Sequence[str],
        question: str = "",
        instruction: str = "",
        words: int | None = None,
    ) -> tuple[list[SummaryUnit], float]:
        """Returns the units of a summary in their order, and its score; no units without words.

        Texts are passages in reading order. The instruction replaces an empty question. `words` is
        the maximum length in words; None is the usual length for such a question. The score is the
        log odds of the share of the question's terms in the summary, weighted by rarity.
        """
        script = is_script(texts)
        units = units_of(texts, script=script, join=script or bool(question.strip()))
        if not units:
            return [], NOTHING
        is_general = wanted(question or instruction, instruction, texts) is not Wanted.TOPIC
        kind = self._kinds[kind_of(question, script=script, whole=is_general)]
        described = describe(units, texts, question)
        limit = words or usual_length(kind, float(described.words.sum()))
        numbers = choose(described, kind, limit)
        chosen = [units[i] for i in numbers]
        if described.sizes[numbers].sum() > limit:
            chosen = [_cut(texts, unit, limit) for unit in chosen]
        return chosen, _score(described, numbers)


def kind_of(question: str, *, script: bool, whole: bool) -> str:
    """Returns the name of the kind of summary."""
    if script:
        return "meeting" if whole else "meeting_topic"
    return "story" if question.strip() else "report"


def usual_length(kind: SummaryKind, total: float) -> int:
    """Returns the usual length, in words, of a summary of texts with `total` words."""
    if not kind.power:
        return round(kind.words)
    growth: float = (total / 1000) ** kind.power
    return round(min(max(kind.words * growth, _MIN_WORDS), _MAX_WORDS))


def choose(described: Described, kind: SummaryKind, words: int) -> list[int]:
    """Returns the numbers of the chosen units, ascending, with at most `words` words.

    Content of units that were chosen before lowers the score of a unit. If no unit fits, a single
    longer one is chosen.
    """
    weights = np.array([kind.weights.get(name, 0.0) for name in described.names])
    scores = described.values @ weights
    usable = described.holds if described.holds.any() else np.ones(len(scores), dtype=np.bool_)
    scores = scores / (scores[usable].std() + 1e-9)
    candidates = np.flatnonzero(usable)
    candidates = candidates[np.argsort(-scores[candidates], kind="stable")[:_CANDIDATES]]
    terms = [_terms(described, unit) for unit in candidates.tolist()]
    value, sizes = scores[candidates].copy(), described.sizes[candidates]
    is_covered = np.zeros(len(described.weight), dtype=np.bool_)
    chosen: list[int] = []
    remaining, fits = float(words), sizes <= words
    while fits.any() and remaining > _UNUSED * words:
        best = int(np.argmax(np.where(fits, value, -np.inf)))
        chosen.append(int(candidates[best]))
        remaining -= sizes[best]
        is_covered[terms[best]] = True
        fits[best] = False
        fits &= sizes <= remaining
        for n in np.flatnonzero(fits).tolist():
            weights = described.weight[terms[n]]
            repeated = weights[is_covered[terms[n]]].sum() / (weights.sum() + 1e-9)
            value[n] = scores[candidates[n]] - kind.redundancy * repeated
    return sorted(chosen or [int(candidates[0])])


def _terms(described: Described, unit: int) -> NDArray[np.int64]:
    first, end = np.searchsorted(described.unit, [unit, unit + 1])
    return described.term[first:end]


def _score(described: Described, chosen: Sequence[int]) -> float:
    weights = described.weight[described.asked]
    terms = np.concatenate([_terms(described, i) for i in chosen])
    is_covered = np.isin(described.asked, terms)
    total = float(weights.sum()) + described.missed
    share = float(weights[is_covered].sum()) / total if total > 0 else 1.0
    share = min(max(share, _MIN_SHARE), 1 - _MIN_SHARE)
    return float(np.log(share / (1 - share)))


def _cut(texts: Sequence[str], unit: SummaryUnit, words: int) -> SummaryUnit:
    """Returns the first `words` words of a unit, without the speaker's name."""
    text = texts[unit.text][unit.start : unit.end]
    start = unshown(text)
    ends = [start + end for _, end in Words().offsets(text[start:])[:words].tolist()]
    fitting = [end for end in ends if word_count(clean(text[start:end])) <= words]
    end = fitting[-1] if fitting else start + words * WORD_LENGTH
    return SummaryUnit(unit.text, unit.start + start, unit.start + end, unit.paragraph)


def text_of(texts: Sequence[str], units: Sequence[SummaryUnit]) -> str:
    """Returns a summary without transcribers' marks; names of speakers precede their turns."""
    text, paragraph = "", None
    for unit in units:
        is_first = unit.paragraph != paragraph
        paragraph = unit.paragraph
        text += ("\n" if is_first else " ") if text else ""
        if is_first and unit.name[0] < unit.name[1]:
            text += clean(texts[unit.text][slice(*unit.name)]) + " "
        text += clean(texts[unit.text][unit.start : unit.end])
    return text
