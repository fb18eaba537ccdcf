"""Sums the traces of examples, to show which stages of a pipeline lose answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from leporello.analysis.funnel.collect import trace_examples
from leporello.analysis.funnel.example_trace import STAGES, ExampleTrace

_IDS = 10  # ids of lost examples per stage
_RANKS = 100  # ranks of the recall curve


@dataclass(frozen=True, slots=True)
class FunnelStage:
    """Share of the proofs that one stage kept, over all examples with a proof.

    Attributes:
        stage: Name of the stage, one of `STAGES`.
        of: Number of examples for which the share is known.
        kept: Number of these whose complete proof the stage kept; for `answer`, of correct ones.
        mean: Mean share that the stage kept, in per cent; for `answer`, the mean score.
        lost: Number of examples for which this stage was the first to lose text of the proof.
        answered: Number of the lost examples whose answer is correct nevertheless.
        ids: Ids of the first ten lost examples.
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
        """Share of the examples whose complete proof the stage kept, in per cent."""
        return 100 * self.kept / self.of if self.of else 0.0


@dataclass(frozen=True, slots=True)
class Funnel:
    """Losses of one pipeline on one task, stage by stage.

    Attributes:
        pipeline: Name of the pipeline.
        task: Name of the task.
        examples: Number of finished examples, including failures.
        evidence: Number of these with gold evidence.
        located: Number without evidence whose reference occurs in the document.
        steps: Stages in the order of `STAGES`; empty without examples of either kind.
        recall: Recall of the proof's characters by the first hit, the first two, …, up to a
            hundred hits, in per cent; failed examples count as 0.
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
        """Number of examples with a proof of the answer."""
        return self.evidence + self.located


def funnels(run: Path) -> list[Funnel]:
    """Returns a funnel for each pipeline and task of a run.

    Raises:
        UserError: See `trace_examples`.
    """
    return count_losses(trace_examples(run))


def count_losses(traces: Iterable[ExampleTrace]) -> list[Funnel]:
    """Returns a funnel for each pipeline and task of the examples."""
    counts: defaultdict[tuple[str, str], _JobCounts] = defaultdict(_JobCounts)
    for trace in traces:
        counts[trace.pipeline, trace.task].add(trace)
    return [count.funnel(*job) for job, count in counts.items()]


@dataclass
class _JobCounts:
    """Counts the examples of one pipeline on one task."""

    examples: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)  # by stage and field
    shares: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))  # sums
    ids: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    recall_steps: list[float] = field(default_factory=lambda: [0.0] * _RANKS)  # recall, by rank
    ranks: int = 0

    def add(self, trace: ExampleTrace) -> None:
        # Failed examples count too, as in every score (decision 25).
        self.examples += 1
        if not trace.gold:
            return
        self.kinds[trace.gold] += 1
        for stage in STAGES:
            share = trace.kept_share(stage)
            value = trace.score if stage == "answer" else 100 * share
            if value is not None:
                self.counts.update({(stage, "of"): 1, (stage, "kept"): share >= 1})
                self.shares[stage] += value
        if lost_stage := trace.lost_at:
            self.counts.update(
                {(lost_stage, "lost"): 1, (lost_stage, "answered"): trace.answered is True}
            )
            # A few ids are enough to look at; a run may lose a hundred thousand examples.
            self.ids[lost_stage] += [trace.id][: _IDS - len(self.ids[lost_stage])]
        self._recall(trace)

    def _recall(self, trace: ExampleTrace) -> None:
        previous = 0.0
        for rank, share in trace.gains:
            if rank <= _RANKS:
                # Only increases are stored; their running sum is the mean curve of all examples.
                self.recall_steps[rank - 1] += share - previous
                self.ranks, previous = max(self.ranks, rank), share

    def _stage(self, stage: str) -> FunnelStage:
        counts = {name: self.counts[stage, name] for name in ("of", "kept", "lost", "answered")}
        mean = round(self.shares[stage] / counts["of"], 4) if counts["of"] else 0.0
        return FunnelStage(stage=stage, mean=mean, ids=tuple(self.ids[stage]), **counts)

    def funnel(self, pipeline: str, task: str) -> Funnel:
        proved = self.kinds.total()
        sums = accumulate(self.recall_steps[: self.ranks])
        return Funnel(
            pipeline=pipeline,
            task=task,
            examples=self.examples,
            evidence=self.kinds["evidence"],
            located=self.kinds["reference"],
            steps=tuple(map(self._stage, STAGES)) if proved else (),
            recall=tuple(round(100 * total / proved, 4) for total in sums),
        )
