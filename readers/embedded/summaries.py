"""Summaries of sentences chosen from the texts, by weights that come with the package."""

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
from leporello.text.english.scripts import is_script
from leporello.text.tokens import Words

NOTHING = -1e9  # the score where there was nothing to summarise; JSON has no infinity

_CANDIDATES = 400  # units that are compared with each other
_FEWEST, _MOST = 60, 600  # words of a report's summary
_ENOUGH = 0.15  # part of the length that may stay unused
_LEAST = 0.02  # part of what was asked that counts as found, and as missing, at least


@dataclass(frozen=True)
class ExtractiveSummary:
    """Sentences of the texts, in their order.

    Attributes:
        text: What is shown: the spans' characters without transcribers' marks, white space made
            single; who speaks before what is said.
        spans: Number of the text, first character, one past the last, in reading order; names of
            speakers have spans of their own.
        score: Log odds of the part of the asked terms, weighted by rarity, that the summary holds.
    """

    text: str
    spans: tuple[tuple[int, int, int], ...]
    score: float


@dataclass(frozen=True)
class SummaryKind:
    """Weights for one kind of summary.

    Attributes:
        weights: Weights of features by name.
        redundancy: How many standard deviations of the score what is said twice costs.
        words: Length in words; of a report, the length where it has 1,000 words.
        power: Power by which the length grows with that of the texts.
    """

    weights: Mapping[str, float]
    redundancy: float
    words: float
    power: float = 0.0


class Summariser:
    """Chooses sentences by a linear score of their features.

    Args:
        folder: Folder that the recipe `summaries` wrote.

    Raises:
        UserError: The weights are missing or damaged.
    """

    def __init__(self, folder: ModelFolder) -> None:
        try:
            kinds: dict[str, Any] = json.loads(folder.checked("weights.json"))
            self._kinds = {name: SummaryKind(**kind) for name, kind in kinds.items()}
        except (ValueError, TypeError) as error:
            raise UserError(f"{folder.path / 'weights.json'}: {error}") from None

    def summarise(
        self,
        texts: Sequence[str],
        question: str = "",
        instruction: str = "",
        words: int | None = None,
    ) -> ExtractiveSummary:
        """Returns a summary, empty where the texts have no words.

        Args:
            texts: Passages in reading order; chunks sorted by their place in the document.
            question: What is asked; may be empty.
            instruction: Instruction, read only for what is asked where there is no question.
            words: Greatest length in words; None is the usual one for what is asked.
        """
        script = is_script(texts)
        units = units_of(texts, script=script, join=script or bool(question.strip()))
        if not units:
            return ExtractiveSummary("", (), NOTHING)
        whole = wanted(question or instruction, instruction, texts) is not Wanted.TOPIC
        kind = self._kinds[kind_of(question, script=script, whole=whole)]
        found = describe(units, texts, question)
        most = words or usual_length(kind, float(found.words.sum()))
        chosen = choose(found, kind, most)
        taken = [units[i] for i in chosen]
        if found.sizes[chosen].sum() > most:
            taken = [_cut(texts, unit, most) for unit in taken]
        return _shown(texts, taken, _score(found, chosen))


def kind_of(question: str, *, script: bool, whole: bool) -> str:
    """Returns the name of the kind of summary that is wanted."""
    if script:
        return "meeting" if whole else "meeting_topic"
    return "story" if question.strip() else "report"


def usual_length(kind: SummaryKind, total: float) -> int:
    """Returns the usual length in words of a summary of so many words."""
    if not kind.power:
        return round(kind.words)
    grown: float = (total / 1000) ** kind.power
    return round(min(max(kind.words * grown, _FEWEST), _MOST))


def choose(found: Described, kind: SummaryKind, words: int) -> list[int]:
    """Returns the numbers of the units that are chosen, ascending: at most so many words.

    What a unit says that those chosen before say too costs it. One alone, longer than that, is
    chosen where none fits.
    """
    weights = np.array([kind.weights.get(name, 0.0) for name in found.names])
    scores = found.values @ weights
    held = found.holds if found.holds.any() else np.ones(len(scores), dtype=np.bool_)
    scores = scores / (scores[held].std() + 1e-9)
    candidates = np.flatnonzero(held)
    candidates = candidates[np.argsort(-scores[candidates], kind="stable")[:_CANDIDATES]]
    terms = [_terms(found, unit) for unit in candidates.tolist()]
    value, sizes = scores[candidates].copy(), found.sizes[candidates]
    said = np.zeros(len(found.weight), dtype=np.bool_)
    chosen: list[int] = []
    left, open_ = float(words), sizes <= words
    while open_.any() and left > _ENOUGH * words:
        best = int(np.argmax(np.where(open_, value, -np.inf)))
        chosen.append(int(candidates[best]))
        left -= sizes[best]
        said[terms[best]] = True
        open_[best] = False
        open_ &= sizes <= left
        for other in np.flatnonzero(open_).tolist():
            repeated = _part(found.weight[terms[other]], said[terms[other]])
            value[other] = scores[candidates[other]] - kind.redundancy * repeated
    return sorted(chosen or [int(candidates[0])])


def _terms(found: Described, unit: int) -> NDArray[np.int64]:
    first, end = np.searchsorted(found.unit, [unit, unit + 1])
    return found.term[first:end]


def _part(weights: NDArray[np.float64], which: NDArray[np.bool_]) -> float:
    return float(weights[which].sum() / (weights.sum() + 1e-9))


def _score(found: Described, chosen: Sequence[int]) -> float:
    weights = found.weight[found.asked]
    held = np.isin(found.asked, np.concatenate([_terms(found, i) for i in chosen]))
    total = float(weights.sum()) + found.missed
    part = float(weights[held].sum()) / total if total > 0 else 1.0
    part = min(max(part, _LEAST), 1 - _LEAST)
    return float(np.log(part / (1 - part)))


def _cut(texts: Sequence[str], unit: SummaryUnit, words: int) -> SummaryUnit:
    """Returns the beginning of a unit, at most so many words, without the speaker's name."""
    text = texts[unit.text][unit.start : unit.end]
    start = unshown(text)
    ends = [start + end for _, end in Words().offsets(text[start:])[:words].tolist()]
    fitting = [end for end in ends if word_count(clean(text[start:end])) <= words]
    end = fitting[-1] if fitting else start + words * WORD_LENGTH
    return SummaryUnit(unit.text, unit.start + start, unit.start + end, unit.paragraph)


def _shown(texts: Sequence[str], units: Sequence[SummaryUnit], score: float) -> ExtractiveSummary:
    spans: list[tuple[int, int, int]] = []
    text, paragraph = "", None
    for unit in units:
        opens = unit.paragraph != paragraph
        paragraph = unit.paragraph
        text += ("\n" if opens else " ") if text else ""
        if opens and unit.name[0] < unit.name[1]:
            spans.append((unit.text, *unit.name))
            text += clean(texts[unit.text][slice(*unit.name)]) + " "
        spans.append((unit.text, unit.start, unit.end))
        text += clean(texts[unit.text][unit.start : unit.end])
    return ExtractiveSummary(text, tuple(spans), score)
