"""Stand-in for the span head that uses rules instead of weights."""

import re
from collections.abc import Sequence
from pathlib import Path

from leporello.readers.embedded.spans import Candidate, PassageScores, SpanHead

_NAME = re.compile(r"[A-Z]\w+")


class PlainHead(SpanHead):
    """Marks names as answers, and scores a passage as `yes` if it has a word of the question."""

    def __init__(self, folder: Path | None = None) -> None:  # without an encoder
        self.folder = folder
        self.count = 0

    def read(self, pairs: Sequence[tuple[str, str]]) -> list[PassageScores]:
        self.count += len(pairs)
        return [_scores(question, passage) for question, passage in pairs]


def _scores(question: str, passage: str) -> PassageScores:
    names = enumerate(_NAME.finditer(passage))
    spans = [Candidate(name[0], 0, *name.span(), 2.0 - i) for i, name in names]
    is_yes = bool({*question.lower().split()} & {*passage.lower().split()})
    labels = (-2.0, -1.0, -0.5, -3.0) if is_yes else (-0.1, -3.0, -4.0, -4.0)
    return PassageScores(tuple(spans), 0.0, labels)
