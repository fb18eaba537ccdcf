"""The traces of many examples, counted: where a pipeline loses answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from leporello.analysis.funnel.collect import trace_examples
from leporello.analysis.funnel.example_trace import STAGES, ExampleTrace

_IDS = 10  # told of the examples lost at a stage
_RANKS = 100  # at which recall is told


@dataclass(frozen=True, slots=True)
class FunnelStage:
    """What one stage kept, over all examples with a proof.

    Attributes:
        stage: Name of the stage, one of `STAGES`.
        of: Number of examples of which it is known.
        kept: Number of these whose whole proof it kept; for `answer`, of those that are right.
        mean: Mean of the shares that it kept, in per cent; for `answer` the mean score.
        lost: Number of examples of which it was the first stage to lose anything.
        answered: Number of the lost ones that are right all the same.
        ids: Ids of lost ones, the first ten.
    """

    stage: str
    of: int
    kept: int
    mean: float
    lost: int
    answered: int
    ids: tuple[str, ...]

    @property
    def share(self) -> float:
        """Of the examples, those whose whole proof it kept, in per cent."""
        return 100 * self.kept / self.of if self.of else 0.0


@dataclass(frozen=True, slots=True)
class Funnel:
    """Where one pipeline on one task loses answers.

    Attributes:
        pipeline: Name of the pipeline.
        task: Name of the task.
        examples: Number of finished examples, failed ones included.
        evidence: Number of these with gold evidence.
        located: Number of those without, of which a reference was found in the document.
        steps: Stages in the order of `STAGES`; none without examples of either kind.
        recall: Recall of the proof's characters, in per cent: by the first hit, the first two, …,
            up to a hundred; a failed example's is 0.
    """

    pipeline: str
    task: str
    examples: int
    evidence: int
    located: int
    steps: tuple[FunnelStage, ...]
    recall: tuple[float, ...]

    @property
    def proved(self) -> int:
        """Examples of which something is known that proves the answer."""
        return self.evidence + self.located


def funnels(run: Path) -> list[Funnel]:
    """Returns where each pipeline of a run loses answers, on each task.

    Raises:
        UserError: As `trace_examples`.
    """
    return count_losses(trace_examples(run))


def count_losses(traces: Iterable[ExampleTrace]) -> list[Funnel]:
    """Returns a funnel for each pipeline and task of the examples."""
    counts: defaultdict[tuple[str, str], _JobCounts] = defaultdict(_JobCounts)
    for trace in traces:
        counts[trace.pipeline, trace.task].add(trace)
    return [count.funnel(*job) for job, count in counts.items()]


@dataclass
class _StageTotals:
    of: int = 0
    kept: int = 0
    total: float = 0.0
    lost: int = 0
    answered: int = 0
    ids: list[str] = field(default_factory=list)

    def add(self, share: float, shown: float) -> None:
        self.of += 1
        self.kept += share >= 1
        self.total += shown

    def lose(self, trace: ExampleTrace) -> None:
        self.lost += 1
        self.answered += trace.answered is True
        if len(self.ids) < _IDS:
            self.ids.append(trace.id)

    def step(self, stage: str) -> FunnelStage:
        mean = round(self.total / self.of, 4) if self.of else 0.0
        return FunnelStage(
            stage, self.of, self.kept, mean, self.lost, self.answered, tuple(self.ids)
        )


@dataclass
class _JobCounts:
    """Counts the examples of one pipeline on one task."""

    examples: int = 0
    kinds: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    stages: dict[str, _StageTotals] = field(
        default_factory=lambda: {s: _StageTotals() for s in STAGES}
    )
    recall_steps: list[float] = field(default_factory=lambda: [0.0] * _RANKS)  # recall, by rank
    ranks: int = 0

    def add(self, trace: ExampleTrace) -> None:
        self.examples += 1
        if not trace.gold:
            return
        self.kinds[trace.gold] += 1
        for stage, counted in self.stages.items():
            share = trace.kept(stage)
            if stage != "answer":
                counted.add(share, 100 * share)
            elif trace.score is not None:
                counted.add(share, trace.score)
        if lost := trace.lost_at:
            self.stages[lost].lose(trace)
        self._recall(trace)

    def _recall(self, trace: ExampleTrace) -> None:
        before = 0.0
        for rank, share in trace.gains:
            if rank <= _RANKS:
                self.recall_steps[rank - 1] += share - before
                self.ranks, before = max(self.ranks, rank), share

    def funnel(self, pipeline: str, task: str) -> Funnel:
        proved = sum(self.kinds.values())
        sums = accumulate(self.recall_steps[: self.ranks])
        return Funnel(
            pipeline=pipeline,
            task=task,
            examples=self.examples,
            evidence=self.kinds["evidence"],
            located=self.kinds["reference"],
            steps=tuple(counted.step(stage) for stage, counted in self.stages.items())
            if proved
            else (),
            recall=tuple(round(100 * total / proved, 4) for total in sums),
        )
