"""One combiner several times, over the hits in other orders and with some left out; a vote."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.combiners.chains.said import answer_key, confidence
from leporello.combiners.stuff import arranged
from leporello.core.calls.contracts import run_combiner, watched
from leporello.core.protocols import Combiner, Positive
from leporello.core.records import JSON, Combination, Example, Hit


@dataclass(frozen=True)
class SelfConsistency:
    """Runs another combiner over several arrangements of the hits and keeps the commonest answer.

    Wang et al. ("Self-Consistency", 2022) sample reasoning paths; here what is read differs, so
    that it is the same in every run: the hits as they were ranked, in document order, in reverse,
    then each time with other hits left out, evenly over the ranks. Answers that are equal in
    SQuAD's form vote together; a vote weighs as much as the reader was sure of its last output
    (`Output.score`), and all weigh alike where it gives no scores. Between equals the first wins;
    so of summaries, which are never equal, the surest does.

    Attributes:
        combiner: Combiner that is run. One that puts its hits in order itself only sees that some
            are left out. Searches find nothing new in later runs: wrap this into `MultiHop`, not
            the other way round.
        runs: Number of runs at most; arrangements that are the same are run once.
    """

    combiner: Combiner
    runs: Positive = 5

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields the rounds of each run, one run after the other."""
        votes: dict[str, float] = defaultdict(float)
        answers: dict[str, JSON] = {}
        for arrangement in arrangements(hits, self.runs):
            answer, seen = yield from watched(run_combiner(self.combiner, example, arrangement))
            score = seen[-1][1].score if seen else None
            key = answer_key(answer) if isinstance(answer, str) else json.dumps(answer)
            votes[key] += confidence(score)
            answers.setdefault(key, answer)
        return answers[max(votes, key=votes.__getitem__)]


def arrangements(hits: Sequence[Hit], count: int) -> list[tuple[Hit, ...]]:
    """Returns at most so many arrangements of hits, each once: as they came, and others."""
    whole = [tuple(hits), tuple(arranged(hits, "document")), tuple(hits[::-1])]
    folds = max(count - len(whole), 0)
    # With fewer hits than folds, each is left out once; of a single one nothing is.
    folds = min(folds, len(hits)) if len(hits) > 1 else 0
    apart = max(folds, 2)
    part = [tuple(h for n, h in enumerate(hits) if n % apart != fold) for fold in range(folds)]
    return [*dict.fromkeys([*whole, *part])][:count]
