"""Self-consistency: runs a combiner on several orders and subsets of the hits, and votes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.combiners.chains.outputs import answer_key, confidence
from leporello.combiners.stuff import arranged
from leporello.core.calls.contracts import run_combiner, watched
from leporello.core.protocols import Combiner, Positive
from leporello.core.records import JSON, Combination, Example, Hit


@dataclass(frozen=True)
class SelfConsistency:
    """Runs another combiner on several arrangements of the hits and returns the commonest answer.

    Wang et al. ("Self-Consistency", 2022) sample reasoning paths. Here the hits differ, so that
    results are reproducible: ranked, in document order, in reverse, and then without some of the
    hits, evenly over the ranks. Answers that are equal in SQuAD's form vote together. The weight of
    a vote is the confidence of the last output (`Output.score`), or the same for all without
    scores. Ties go to the first answer. Summaries are never equal, so the most confident wins.

    Attributes:
        combiner: Combiner to run. A combiner that orders its hits sees only the different subsets.
            Searches find nothing new in later runs: put this into `MultiHop`, not the other way
            round.
        runs: Maximum number of runs; equal arrangements are run once.
    """

    combiner: Combiner
    runs: Positive = 5

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields the rounds of one run after the other."""
        votes: dict[str, float] = defaultdict(float)
        answers: dict[str, JSON] = {}
        for arrangement in arrangements(hits, self.runs):
            answer, reads = yield from watched(run_combiner(self.combiner, example, arrangement))
            score = reads[-1][1].score if reads else None
            key = answer_key(answer) if isinstance(answer, str) else json.dumps(answer)
            votes[key] += confidence(score)
            answers.setdefault(key, answer)
        return answers[max(votes, key=votes.__getitem__)]


def arrangements(hits: Sequence[Hit], count: int) -> list[tuple[Hit, ...]]:
    """Returns at most `count` different arrangements of hits: orders, then subsets."""
    # Different inputs instead of sampled texts, so that a run has the same answers again.
    orders = [tuple(hits), tuple(arranged(hits, "document")), tuple(hits[::-1])]
    folds = max(count - len(orders), 0)
    # With fewer hits than folds, each hit is left out once; a single hit is always kept.
    folds = min(folds, len(hits)) if len(hits) > 1 else 0
    step = max(folds, 2)
    subsets = [tuple(h for n, h in enumerate(hits) if n % step != fold) for fold in range(folds)]
    return [*dict.fromkeys([*orders, *subsets])][:count]
