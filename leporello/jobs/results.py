"""What one pipeline on one task came to: its scores, failures, coverage."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from statistics import fmean
from typing import Any

from leporello.config.specs import shortened
from leporello.core.coverage import PARTS, shares
from leporello.core.errors import UserError
from leporello.core.records import JSON
from leporello.core.table import ResultTable
from leporello.engine.failures import CURED
from leporello.engine.results.finished import ExampleStatistics
from leporello.jobs.confidence import selectivity
from leporello.metrics import Metric
from leporello.metrics.own import MetricError
from leporello.metrics.protocol import is_later
from leporello.metrics.statistics import StatisticsTable

_MISSING = "is computed once all is read, and not yet here; the same command goes on"
_NOTES = 5  # that are told; calls.jsonl has them all
_UNITS = ("reads", "characters", "tokens")  # of what came by a way


def marks(*, sees_gold: bool, normalised: bool, tuned: int = 0) -> str:
    """Returns what a table says behind the name of a pipeline that is not like others."""
    told = ["sees the gold"] * sees_gold + ["normalised"] * normalised
    told += [f"tuned on {tuned:,} of these documents"] * bool(tuned)
    return f" ({', '.join(told)})" if told else ""


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table of scores.

    Attributes:
        pipeline: Name of the pipeline, with the sweep point.
        task: Name of the task.
        examples: Number of examples finished, failed ones included.
        failures: Number of examples that are scored as empty predictions.
        empty: Number of predictions that are empty without having failed.
        scores: Scores by name, 0 to 100.
        signatures: Signature of each metric: what exactly was computed.
        sees_gold: Whether a stage had the references or the evidence in view (an oracle).
        shares: Mean shares of the parts of the ledger, 0 to 1; together 1.
        noted: Number of examples that a stage noted something of.
        notes: Notes of most examples, with their number.
        cured: Number of examples at which a stage failed with others, and not alone.
        faults: Faults of metrics, with the number of examples; such a metric has no score.
        normalised: Whether answers were brought into the form that metrics read.
        roles: What readers of several roles came to: reads, tokens, dollars, by role.
        tuned: Number of the documents that its parameters were chosen on by `tune`.
        confidence: What `leporello.jobs.confidence.selectivity` says of answers with confidence,
            by the first metric; empty where there are none.
        ways: What came by each way through combiners that choose: examples, reads, characters of
            what was read, tokens.
    """

    pipeline: str
    task: str
    examples: int
    failures: int
    empty: int
    scores: Mapping[str, float]
    signatures: Mapping[str, str]
    sees_gold: bool
    shares: Mapping[str, float]
    noted: int
    notes: Mapping[str, int]
    cured: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)
    normalised: bool = False
    roles: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    ways: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    tuned: int = 0
    confidence: Mapping[str, float] = field(default_factory=dict)

    @property
    def marks(self) -> str:
        """What a table says behind the pipeline's name."""
        return marks(sees_gold=self.sees_gold, normalised=self.normalised, tuned=self.tuned)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Result:
        """Returns what `row` made."""
        known = {field.name for field in fields(cls)}
        others = {name: value for name, value in row.items() if name in known}
        return cls(**others, shares={name: row.get(name, 0.0) for name in PARTS})

    def row(self) -> dict[str, JSON]:
        """Returns what metrics.json holds; shares stand beside the other numbers."""
        row = asdict(self)
        shares = row.pop("shares")
        return {**row, **shares}


def answers_of(
    examples: Iterable[ExampleStatistics], metrics: Mapping[str, Metric]
) -> Iterator[tuple[float, float]]:
    """Yields confidence and score, by the first metric, of answers that were given with both."""
    for example in examples:
        for name, metric in [*metrics.items()][:1]:
            value = example.statistics.get(name)
            if example.confidence is not None and not example.abstained and value is not None:
                yield example.confidence, metric.score(value)


@dataclass
class Summary:
    """Takes finished examples, and comes to a `Result`.

    Attributes:
        metrics: Metrics by name.
        tuned_on: Documents that the pipeline was chosen on.
        failures: Number of failures by stage and the error's first line.
    """

    metrics: Mapping[str, Metric]
    tuned_on: frozenset[str] = frozenset()
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._later = {name for name, metric in self.metrics.items() if is_later(metric)}
        self._answers: list[tuple[float, float]] = []
        self._counts = Counter[str]()  # of predictions, by what is told of them
        self._notes = Counter[str]()
        self._tuned = set[str]()
        self._ids = array("q")  # hashes: there may be millions
        self._faults: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._roles: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._ways: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._statistics: defaultdict[str, StatisticsTable] = defaultdict(StatisticsTable)
        self._shares: defaultdict[str, array[float]] = defaultdict(lambda: array("d"))

    def add(self, example: ExampleStatistics) -> None:
        """Counts a finished example."""
        self._ids.append(hash(example.id))
        for name, value in example.statistics.items():
            if value is not None:
                self._statistics[name].append(value)
        for name, fault in example.faults.items():
            self._faults[name][fault] += 1
        for name in self._later - example.statistics.keys():
            self._faults[name][_MISSING] += 1
        if example.failure:
            self.failures[example.failure] += 1
            return
        self._counts.update(
            predictions=1,
            withheld=example.abstained,
            empty=example.empty,
            noted=bool(example.notes),
            cured=any(note.startswith(CURED) for note in example.notes),
        )
        self._tuned |= self.tuned_on & {shortened(example.document)}
        self._answers += answers_of([example], self.metrics)
        self._notes.update(example.notes)
        for role, told in example.roles.items():
            self._roles[role].update({name: n for name, n in told.items() if n is not None})
        if example.way:
            tokens = example.input_tokens + example.output_tokens
            cost = {"reads": example.reads, "characters": example.characters, "tokens": tokens}
            self._ways[example.way].update(examples=1, **cost)
        for name, share in shares(example.coverage).items():
            self._shares[name].append(share)

    @property
    def ways(self) -> dict[str, dict[str, int]]:
        """What came by each way; see `Result`."""
        return {way: {**told} for way, told in sorted(self._ways.items())}

    def result(
        self, pipeline: str, task: str, *, sees_gold: bool = False, normalised: bool = False
    ) -> Result:
        """Returns what it all came to.

        Raises:
            UserError: A metric fails, or the task has an id twice.
        """
        import numpy as np

        hashes = np.sort(np.array(self._ids))
        if (hashes[1:] == hashes[:-1]).any():
            raise UserError(f"task {task!r} yields an id twice: statistics.jsonl has all of them")
        scores: dict[str, float] = {}
        for name, metric in self.metrics.items():
            if self._statistics[name] and name not in self._faults:
                scores |= self._aggregate(name, metric)
        failures = self.failures.total()
        means = {n: round(fmean(self._shares[n]), 6) if self._shares[n] else 0.0 for n in PARTS}
        return Result(
            pipeline=pipeline,
            task=task,
            examples=failures + self._counts["predictions"],
            failures=failures,
            empty=self._counts["empty"],
            scores=scores,
            signatures={name: metric.signature for name, metric in self.metrics.items()},
            sees_gold=sees_gold,
            normalised=normalised,
            tuned=len(self._tuned),
            shares=means,
            noted=self._counts["noted"],
            notes=dict(self._notes.most_common(_NOTES)),
            cured=self._counts["cured"],
            confidence=selectivity(self._answers, self._counts["withheld"]),
            roles={role: {**told} for role, told in self._roles.items()},
            ways=self.ways,
            faults={
                f"metric {name}: {fault}": count
                for name, counts in self._faults.items()
                for fault, count in counts.most_common(_NOTES)
            },
        )

    def _aggregate(self, name: str, metric: Metric) -> Mapping[str, float]:
        """Returns a metric's scores; one of the user's own that fails loses no other's."""
        try:
            return metric.aggregate(self._statistics[name])
        except MetricError as error:
            self._faults[name][str(error)] = len(self._statistics[name])
            return {}


def ways_table(
    title: str, pipelines: Iterable[tuple[str, Mapping[str, Mapping[str, int]]]]
) -> ResultTable:
    """Returns a row a way: how many examples came by it, and what each of them cost.

    Args:
        title: Title.
        pipelines: Labels of pipelines, each with `Result.ways`.
    """
    rows, notes = [], []
    for label, ways in pipelines:
        if not ways:
            continue
        examples = sum(told["examples"] for told in ways.values())
        for way, told in ways.items():
            count = told["examples"]
            each = (f"{told[unit] / count:,.1f}" if told[unit] else "–" for unit in _UNITS)
            rows.append((label, way, f"{count:,}", f"{count / examples:.1%}", *each))
        notes.append(f"{label}: {_saved(ways, examples)}")
    heads = ("pipeline", "way", "examples", "share", *(f"{unit} each" for unit in _UNITS))
    return ResultTable(title, heads, tuple(rows), tuple(notes))


def _saved(ways: Mapping[str, Mapping[str, int]], examples: int) -> str:
    """Returns what is saved against all going the way whose answers cost most."""
    told = []
    for unit in _UNITS:
        most = max(one[unit] / one["examples"] for one in ways.values()) * examples
        spent = sum(one[unit] for one in ways.values())
        if most:
            told.append(f"{1 - spent / most:.0%} of the {unit}")
    return f"saved, had all gone the dearest way: {', '.join(told) or 'nothing'}"
