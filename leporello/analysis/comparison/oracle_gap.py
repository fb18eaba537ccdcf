"""Oracle gaps of compared pipelines: what a better retriever, or another stage, would be worth."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.analysis.comparison.outcomes import Outcomes
from leporello.analysis.oracle_baselines import ORACLES

_STAGES = ("chunker", "reader", "combiner")


@dataclass(frozen=True, slots=True)
class OracleGap:
    """Pipelines that differ in nothing but the retriever, and some of whose retrievers are oracles.

    Attributes:
        pipelines: Labels of those with a retriever of their own.
        rungs: Classes and labels of those with an oracle's, chance's or no retriever, best first.
    """

    pipelines: tuple[str, ...]
    rungs: tuple[tuple[str, str], ...]


def oracle_gaps(outcomes: Sequence[Outcomes], labels: Sequence[str]) -> tuple[OracleGap, ...]:
    """Returns the oracle gaps among pipelines on one task, each with a pipeline to measure."""
    alike: dict[str, list[tuple[str, str]]] = {}
    for outcome, label in zip(outcomes, labels, strict=True):
        others = json.dumps([outcome.stage(key) for key in _STAGES], sort_keys=True)
        alike.setdefault(others, []).append((str(outcome.stage("retriever")["class"]), label))
    gaps = [_oracle_gap(group) for group in alike.values()]
    return tuple(gap for gap in gaps if gap.pipelines and gap.rungs)


def _oracle_gap(group: Sequence[tuple[str, str]]) -> OracleGap:
    oracles = sorted(
        (pair for pair in group if pair[0] in ORACLES), key=lambda p: ORACLES.index(p[0])
    )
    return OracleGap(tuple(label for name, label in group if name not in ORACLES), tuple(oracles))
