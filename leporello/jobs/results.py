"""Results of one pipeline on one task: scores, failures, coverage, quality of the confidence.

Calibration error follows Guo et al. 2017, with bins of equal mass (Nixon et al. 2019); coverage and
risk follow selective prediction (Geifman and El-Yaniv 2017). The score of an answer, 0 to 100, is
its degree of correctness. The order of answers with equal confidence does not matter.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import accumulate, groupby
from operator import itemgetter
from statistics import fmean
from typing import Any, TypeAlias

from leporello.config.specs import shortened
from leporello.core.coverage import PARTS, shares, shown
from leporello.core.errors import UserError, counted
from leporello.core.records import JSON
from leporello.core.table import ResultTable, swept_columns
from leporello.engine.failures import CURED
from leporello.engine.results.finished import ExampleStatistics
from leporello.metrics import Metric, judging_metric
from leporello.metrics.own import MetricError
from leporello.metrics.protocol import is_later
from leporello.metrics.statistics import StatisticsTable

# Pairs of confidence, 0 to 1, and score, 0 to 100.
Answers: TypeAlias = Sequence[tuple[float, float]]

_COVERAGES = (50, 80, 90)  # per cent
# Keys of the numbers that `selectivity` returns.
SELECTIVITY_KEYS = ("answers", "withheld", "ece", "aurc", *(f"at_{share}" for share in _COVERAGES))
# With fewer than ten answers, a bin's mean score is mostly chance.
_MOST_BINS, _LEAST_ANSWERS = 10, 10  # number of bins, and of answers per bin
_FULL = 100.0
_MISSING = "is computed after all reads, and is missing; run the same command to resume"
_NOTES = 5  # most frequent notes in a table; statistics.jsonl contains all
_UNITS = ("reads", "characters", "tokens")  # in which a way's costs are counted


def selectivity(answers: Answers, withheld: int = 0) -> dict[str, float]:
    """Returns the quality of the confidence of answers; empty without answers.

    These are `ece`, the expected calibration error, and `aurc`, the area under the risk-coverage
    curve, 0 to 1, lower is better; `at_50`, `at_80`, `at_90`: mean score of the 50, 80 and 90 % of
    answers with the highest confidence; the numbers of `answers` and `withheld` answers.
    """
    counts: dict[str, float] = {"answers": len(answers), "withheld": withheld}
    counts = {name: count for name, count in counts.items() if count}
    if not answers:
        return counts
    means = scores_by_coverage(answers)
    gaps = (len(group) * abs(_FULL * mean - score) for group, mean, score in reliability(answers))
    return {
        **counts,
        "ece": round(sum(gaps) / _FULL / len(answers), 4),
        "aurc": round(1 - fmean(means) / _FULL, 4),
        **{f"at_{n}": round(means[-(-n * len(means) // 100) - 1], 4) for n in _COVERAGES},
    }


def reliability(answers: Answers) -> Iterator[tuple[Answers, float, float]]:
    """Yields bins of about equal size, with their mean confidence and mean score."""
    ranked = sorted(answers, key=itemgetter(0))
    # Bins of few answers would show differences that are chance.
    count = max(1, min(_MOST_BINS, len(ranked) // _LEAST_ANSWERS))
    start = 0
    for index in range(count):
        end = len(ranked) * (index + 1) // count
        while 0 < end < len(ranked) and ranked[end][0] == ranked[end - 1][0]:
            end += 1  # equal confidence belongs to one bin
        if in_bin := ranked[start:end]:
            yield in_bin, fmean(c for c, _ in in_bin), fmean(s for _, s in in_bin)
            start = end


def scores_by_coverage(answers: Answers) -> list[float]:
    """Returns the mean scores of the 1, 2, … answers with the highest confidence."""
    ranked = sorted(answers, key=itemgetter(0), reverse=True)
    groups = (list(group) for _, group in groupby(ranked, key=itemgetter(0)))
    scores = (mean for group in groups for mean in [fmean(s for _, s in group)] * len(group))
    return [total / count for count, total in enumerate(accumulate(scores), 1)]


def marks(*, sees_gold: bool, normalised: bool, tuned: int = 0) -> str:
    """Returns the remarks after a pipeline's name in tables; empty without remarks."""
    remarks = ["sees the gold"] * sees_gold + ["normalised"] * normalised
    remarks += [f"tuned on {tuned:,} of these documents"] * bool(tuned)
    return f" ({', '.join(remarks)})" if remarks else ""


@dataclass(frozen=True, slots=True)
class Result:
    """One row of the table of scores.

    Attributes:
        pipeline: Name of the pipeline, with the sweep point.
        examples: Number of finished examples, including failed ones.
        failures: Number of failed examples, which are scored as empty predictions.
        empty: Number of empty predictions of examples that did not fail.
        scores: Scores by name, 0 to 100.
        signatures: Signature of each metric, which identifies the exact computation.
        sees_gold: Whether a stage saw the references or the evidence (an oracle).
        shares: Mean shares of the coverage, 0 to 1, with sum 1.
        noted: Number of examples with notes.
        notes: Most frequent notes, with their number of examples.
        cured: Number of examples that failed in a batch, but succeeded alone.
        faults: Errors of metrics, with the number of examples; such a metric has no score.
        normalised: Whether the task normalised the answers before scoring.
        roles: Reads, tokens and dollars by role, if readers of several roles were used.
        tuned: Number of documents that `tune` used to choose the pipeline's parameters.
        confidence: Numbers of `leporello.jobs.results.selectivity` by the judging
            metric; empty without answers with confidence.
        reader: Class and model of the pipeline's readers.
        ways: Examples, reads, characters and tokens by way: the branches that combiners with
            alternatives, such as cascades, took.
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
    reader: str = ""

    @property
    def marks(self) -> str:
        """Remarks after the name of the pipeline in tables."""
        return marks(sees_gold=self.sees_gold, normalised=self.normalised, tuned=self.tuned)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Result:
        """Returns the result of a row that `row` returned."""
        names = {field.name for field in fields(cls)}
        values = {name: value for name, value in row.items() if name in names}
        return cls(**values, shares={name: row.get(name, 0.0) for name in PARTS})

    def row(self) -> dict[str, JSON]:
        """Returns the row for metrics.json, with the shares as separate fields."""
        row = asdict(self)
        shares = row.pop("shares")
        return {**row, **shares}


def answers_of(
    examples: Iterable[ExampleStatistics], metrics: Mapping[str, Metric]
) -> Iterator[tuple[float, float]]:
    """Yields confidence and score by the judging metric for answers that have both."""
    name = judging_metric(metrics)
    for example in examples:
        value = example.statistics.get(name)
        if example.confidence is not None and not example.abstained and value is not None:
            yield example.confidence, metrics[name].score(value)


@dataclass
class Summary:
    """Aggregates finished examples to a `Result`."""

    metrics: Mapping[str, Metric]
    tuned_on: frozenset[str] = frozenset()  # documents that `tune` used for the pipeline
    # Number of failures by stage and the error's first line.
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._metrics_after_reads = {
            name for name, metric in self.metrics.items() if is_later(metric)
        }
        self._answers: list[tuple[float, float]] = []
        self._counts = Counter[str]()  # of predictions, by property
        self._notes = Counter[str]()
        self._tuned = set[str]()
        self._ids = array("q")  # hashes, since there may be millions of ids
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
        for name in self._metrics_after_reads - example.statistics.keys():
            self._faults[name][_MISSING] += 1
        if example.failure:
            self.failures[example.failure] += 1
            return
        self._counts["predictions"] += 1
        self._counts["withheld"] += example.abstained
        self._counts["empty"] += example.empty
        self._counts["noted"] += bool(example.notes)
        self._counts["cured"] += any(note.startswith(CURED) for note in example.notes)
        self._tuned |= self.tuned_on & {shortened(example.document)}
        if example.confidence is not None:
            self._answers += answers_of([example], self.metrics)
        self._notes.update(example.notes)
        for role, cost in example.roles.items():
            self._roles[role].update({name: n for name, n in cost.items() if n is not None})
        if example.way:
            tokens = example.input_tokens + example.output_tokens
            cost = {"reads": example.reads, "characters": example.characters, "tokens": tokens}
            self._ways[example.way].update(examples=1, **cost)
        for name, share in shares(example.coverage).items():
            self._shares[name].append(share)

    def result(
        self, pipeline: str, task: str, *, sees_gold: bool = False, normalised: bool = False,
        reader: str = "",
    ) -> Result:  # fmt: skip
        """Returns the result of all examples so far; raises UserError if an id occurs twice."""
        import numpy as np

        hashes = np.sort(np.array(self._ids))
        if (hashes[1:] == hashes[:-1]).any():
            raise UserError(f"task {task!r} yields an id twice; statistics.jsonl contains all ids")
        scores: dict[str, float] = {}
        for name, metric in self.metrics.items():
            statistics = self._statistics[name]
            # A mean over only the examples on which a metric did not fail would mislead.
            if statistics and name not in self._faults:
                try:
                    scores |= metric.aggregate(statistics)
                except MetricError as error:  # of a plug-in
                    self._faults[name][str(error)] = len(statistics)
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
            reader=reader,
            tuned=len(self._tuned),
            shares=means,
            noted=self._counts["noted"],
            notes=dict(self._notes.most_common(_NOTES)),
            cured=self._counts["cured"],
            confidence=selectivity(self._answers, self._counts["withheld"]),
            roles={role: {**cost} for role, cost in self._roles.items()},
            ways={way: {**cost} for way, cost in sorted(self._ways.items())},
            faults={
                f"metric {name}: {fault}": count
                for name, counts in self._faults.items()
                for fault, count in counts.most_common(_NOTES)
            },
        )


def result_tables(results: Sequence[Result]) -> Iterator[ResultTable]:
    """Yields the scores, the coverage, the readers and the ways of each task as tables."""
    for task in dict.fromkeys(result.task for result in results):
        yield from _tables_of(task, [result for result in results if result.task == task])


def _tables_of(task: str, results: Sequence[Result]) -> Iterator[ResultTable]:
    columns, points = swept_columns([result.pipeline for result in results])
    labels = [(n + r.marks, *values) for r, (n, *values) in zip(results, points, strict=True)]
    names = [*dict.fromkeys(name for result in results for name in result.scores)]
    if names:
        rows = (
            (*label, *(f"{r.scores[name]:.2f}" if name in r.scores else "" for name in names))
            for r, label in zip(results, labels, strict=True)
        )
        heads = (*columns, *names)
        yield ResultTable(f"Scores on {task}", heads, tuple(rows), labels=len(columns))
    yield _coverage(task, results, columns, labels)
    if any(result.roles for result in results):
        yield _readers(task, results)
    if any(result.ways for result in results):
        yield ways_table(f"Ways of {task}", ((result.pipeline, result.ways) for result in results))


def _coverage(
    task: str, results: Sequence[Result], columns: Sequence[str], labels: Sequence[Sequence[str]]
) -> ResultTable:
    """Returns the shares of the documents; equal counts of examples are in the title."""
    parts = shown(result.shares for result in results)
    counts = {
        "examples": [result.examples for result in results],
        "failed": [result.failures for result in results],
        "empty": [result.empty for result in results],
    }
    are_equal = len({*counts["examples"]}) == 1
    of = f" ({counted(counts['examples'][0], 'example')})" if are_equal else ""
    with_counts = [
        n for n, values in counts.items() if any(values) and not (of and n == "examples")
    ]
    rows = []
    for at, (r, label) in enumerate(zip(results, labels, strict=True)):
        numbers = (f"{counts[name][at]:,}" for name in with_counts)
        rows.append((*label, r.reader, *numbers, *(f"{100 * r.shares[p]:.1f} %" for p in parts)))
    heads = (*columns, "reader", *with_counts, *parts)
    return ResultTable(f"Coverage of {task}{of}", heads, tuple(rows), labels=len(columns))


def _readers(task: str, results: Sequence[Result]) -> ResultTable:
    columns = ("reads", "over_budget", "input_tokens", "output_tokens", "dollars")
    rows = (
        (r.pipeline + r.marks, role, *(f"{usage[n]:,.6g}" if n in usage else "–" for n in columns))
        for r in results
        for role, usage in r.roles.items()
    )
    heads = ("pipeline", "role", "reads", "over budget", "tokens read", "written", "dollars")
    return ResultTable(f"Readers of {task}", heads, tuple(rows), labels=2)


def ways_table(
    title: str, pipelines: Iterable[tuple[str, Mapping[str, Mapping[str, int]]]]
) -> ResultTable:
    """Returns a table of `Result.ways` by label: shares of the examples, and their mean costs."""
    rows, notes = [], []
    for label, ways in pipelines:
        if not ways:
            continue
        examples = sum(cost["examples"] for cost in ways.values())
        for way, cost in ways.items():
            count = cost["examples"]
            means = (f"{cost[unit] / count:,.1f}" if cost[unit] else "–" for unit in _UNITS)
            rows.append((label, way, f"{count:,}", f"{count / examples:.1%}", *means))
        notes.append(f"{label}: {_saved(ways, examples)}")
    heads = ("pipeline", "way", "examples", "share", *(f"{unit} each" for unit in _UNITS))
    return ResultTable(title, heads, tuple(rows), tuple(notes))


def _saved(ways: Mapping[str, Mapping[str, int]], examples: int) -> str:
    """Returns the savings, compared with taking the most expensive way for all examples."""
    savings = []
    for unit in _UNITS:
        most = max(cost[unit] / cost["examples"] for cost in ways.values()) * examples
        spent = sum(cost[unit] for cost in ways.values())
        if most:
            savings.append(f"{1 - spent / most:.0%} of the {unit}")
    return f"saved compared with the most expensive way: {', '.join(savings) or 'nothing'}"
