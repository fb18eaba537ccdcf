"""One of several options, by what passages say and by what right options look like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leporello.models.weights import ModelFolder, unpack
from leporello.readers.embedded.spans import Candidate, SpanHead, summed
from leporello.text.english.clauses import nearest
from leporello.text.english.options import lettered_options, option_terms, traits

_READ = 3  # passages that are read for an answer to compare options with
_SPANS = 10  # spans that options are compared with
_AGREED = 0.3  # F1 with what was read below which the likeness is by chance

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Choice:
    """The option that was chosen.

    Attributes:
        index: Index of the option; of equal ones the first.
        probabilities: Probabilities, one an option.
        span: Answer read from the passages that is most like the option, if one is like it.
    """

    index: int
    probabilities: tuple[float, ...]
    span: Candidate | None


class ChoiceRanker:
    """Chooses among options.

    Args:
        path: Folder that the recipe `choices` wrote.
        head: Head that reads answers in passages.

    Raises:
        UserError: If a file is missing or is not what was shipped.
    """

    def __init__(self, path: Path, head: SpanHead) -> None:
        self._weights = unpack(ModelFolder(path).checked("weights.safetensors"))["weights"]
        self._head = head

    def choose(self, asked: Sequence[tuple[str, Sequence[str], Sequence[str]]]) -> list[Choice]:
        """Returns a choice for each question.

        Args:
            asked: Questions, each with one option or more and its passages. Options may be letters
                whose texts stand in the question.
        """
        parts = [(*lettered_options(q, choices), passages) for q, choices, passages in asked]
        return [_choice(rows @ self._weights, spans) for rows, spans in features(self._head, parts)]


def _choice(odds: Floats, spans: Sequence[Candidate | None]) -> Choice:
    probabilities = np.exp(odds - np.logaddexp.reduce(odds))
    index = int(probabilities.argmax())
    return Choice(index, tuple(probabilities.tolist()), spans[index])


def features(
    head: SpanHead, asked: Sequence[tuple[str, Sequence[str], Sequence[str]]]
) -> list[tuple[Floats, list[Candidate | None]]]:
    """Returns what is seen of options, and the answer in the passages that each is like.

    The columns are traits of the options, then how far each agrees with what was read.

    Args:
        head: Head that reads answers in passages.
        asked: Questions with options and passages.
    """
    near = [[texts[i] for i in nearest(q, texts, _READ)] for q, _, texts in asked]
    read = iter(
        head.read([(q, t) for (q, _, _), each in zip(asked, near, strict=True) for t in each])
    )
    found = []
    for (question, options, passages), texts in zip(asked, near, strict=True):
        spans = summed(texts, [next(read) for _ in texts])[:_SPANS]
        agreed = [_agreement(option, spans) for option in options]
        rows = np.array(traits(question, options)).reshape(len(options), -1)
        column = np.maximum(np.array([share for share, _ in agreed]) - _AGREED, 0.0)
        places = [_placed(span, texts, passages) for _, span in agreed]
        found.append((np.column_stack([rows, column]), places))
    return found


def _agreement(option: str, spans: Sequence[Candidate]) -> tuple[float, Candidate | None]:
    """Returns the F1 of an option with spans, likelier ones weighing more, and the nearest span."""
    if not spans:
        return 0.0, None
    own = option_terms(option)
    sets = [option_terms(span.text) for span in spans]
    likeness = np.array([2 * len(own & s) / max(len(own) + len(s), 1) for s in sets])
    odds = np.array([span.score for span in spans])
    best = int(likeness.argmax())
    share = float(likeness @ np.exp(odds - np.logaddexp.reduce(odds)))
    return share, spans[best] if likeness[best] >= _AGREED else None


def _placed(
    span: Candidate | None, texts: Sequence[str], passages: Sequence[str]
) -> Candidate | None:
    """Returns a span with the index of its passage among all of them."""
    return span and replace(span, passage=list(passages).index(texts[span.passage]))
