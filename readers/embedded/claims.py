"""Claims judged against passages on anything: these say so, say the contrary, or say neither."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leporello.readers.embedded.spans import SpanHead
from leporello.readers.embedded.statements import Judgement
from leporello.text.english.clauses import clause_spans, nearest

_READ = 5  # passages that are read with a claim


class ClaimJudge:
    """Judges claims by reading them with the passages that share most words with them.

    Args:
        head: Head with the labels that the recipe `verdicts` trained.
    """

    def __init__(self, head: SpanHead) -> None:
        self._head = head

    def judge(self, asked: Sequence[tuple[str, Sequence[str]]]) -> list[Judgement]:
        """Returns what passages say to claims: what the one says that says most.

        Args:
            asked: Claims, each with its passages.
        """
        near = [nearest(claim, passages, _READ) for claim, passages in asked]
        pairs = [(c, p[i]) for (c, p), each in zip(asked, near, strict=True) for i in each]
        scores = iter(self._head.read(pairs))
        found = []
        for (claim, passages), each in zip(asked, near, strict=True):
            read = [(next(scores).labels, place) for place in each]
            if not read:
                found.append(Judgement((1.0, 0.0, 0.0), False, 0, 0, 0))
                continue
            (null, _, yes, no), place = max(
                read, key=lambda one: np.logaddexp(*one[0][2:]) - one[0][0]
            )
            odds = np.array([null, yes, no])
            neither, so, contrary = np.exp(odds - np.logaddexp.reduce(odds)).tolist()
            spans = clause_spans(passages[place])
            clauses = [passages[place][start:end] for start, end in spans]
            start, end = spans[nearest(claim, clauses, 1)[0]] if spans else (0, 0)
            found.append(Judgement((neither, so, contrary), False, place, start, end))
        return found
