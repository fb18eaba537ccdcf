"""What became of every example of the runs, gathered for curves, funnels and the browser."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from leporello.analysis.funnel import ExampleTrace, Funnel, count_losses, trace_examples
from leporello.core.errors import UserError

_GONE = "where answers are lost, and curves that need the documents, are left out"


@dataclass(frozen=True, slots=True)
class FactsByExample:
    """What is known of one example of one pipeline.

    Attributes:
        length: Length of the document, in characters.
        position: Position in it at which the proof begins, 0 to 1, where one is known.
        lost_at: Name of the stage that lost the answer, or empty.
        gains: Recall curve, (rank, share): what the hits up to a rank keep of the proof, where that
            grows; None where no proof is known.
    """

    length: int
    position: float | None
    lost_at: str
    gains: tuple[tuple[int, float], ...] | None


@dataclass
class ExampleFacts:
    """Of all runs.

    Attributes:
        by_job: Facts by run, pipeline and task, then by the example's id.
        funnels: Funnels by run, pipeline and task.
        notes: Notes on the runs of which nothing of this is known, and why.
    """

    by_job: dict[tuple[Path, str, str], dict[str, FactsByExample]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    funnels: dict[tuple[Path, str, str], Funnel] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def facts(runs: Sequence[Path]) -> ExampleFacts:
    """Returns what became of the examples; a run whose data are gone is noted, and left out."""
    gathered = ExampleFacts()
    for run in runs:
        try:
            funnels = count_losses(_noted(run, gathered))
        except UserError as error:
            gathered.notes.append(f"{run.name}: {_GONE}: {error}")
        else:
            gathered.funnels |= {(run, funnel.pipeline, funnel.task): funnel for funnel in funnels}
    return gathered


def _noted(run: Path, gathered: ExampleFacts) -> Iterator[ExampleTrace]:
    for trace in trace_examples(run):
        gathered.by_job[run, trace.pipeline, trace.task][trace.id] = FactsByExample(
            trace.length, trace.position, trace.lost_at, trace.gains if trace.gold else None
        )
        yield trace
