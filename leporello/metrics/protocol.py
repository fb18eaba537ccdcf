"""Protocols and base classes of metrics: statistics per example, and their aggregates."""

from collections.abc import Mapping, Sequence
from operator import add
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from leporello.core.records import Asking, Example, Prediction

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Numbers: TypeAlias = "NDArray[np.float64]"
Statistics: TypeAlias = dict[str, Any]  # JSON of one example: the only input of aggregates

_DIGITS = 4  # decimals, as in SCROLLS


class GoldError(ValueError):
    """Raised for a reference that the official metric cannot use; the message names the example."""

    def __init__(self, example: Example, fault: str) -> None:
        super().__init__(f"example {example.id!r}: {fault}")


class Metric(Protocol):
    """Computes scores in two steps, so that totals, scores per example and bootstrap share a pass.

    The constructor raises `UserError` if the metric needs a missing extra or program.
    """

    @property
    def name(self) -> str:
        """Name of the metric in tasks."""

    @property
    def headline(self) -> str:
        """Name of the aggregate score that ranks pipelines."""

    @property
    def signature(self) -> str:
        """Options and versions of the computation, in the style of sacreBLEU."""

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns the numbers of one example; None if there is nothing to score against.

        A failure is scored as an empty prediction.

        Raises:
            GoldError: The reference is invalid for the metric.
        """

    def score(self, statistics: Statistics) -> float:
        """Returns the score of one example, 0 to 100."""

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns named scores over one or more examples, 0 to 100, four decimals."""


@runtime_checkable
class Resampled(Protocol):
    """A metric whose headline depends only on sums over examples: resampling is fast."""

    def summands(self, statistics: Sequence[Statistics]) -> Numbers:
        """Returns the numbers to sum, shape (examples, columns)."""

    def of_sums(self, sums: Numbers, counts: Numbers) -> Numbers:
        """Returns the headline, 0 to 100, of each resample.

        Args:
            sums: Sums of the columns of `summands`, shape (resamples, columns).
            counts: Number of examples in each resample, shape (resamples,).
        """


@runtime_checkable
class Asks(Protocol):
    """A metric that asks a reader of the pipeline in a separate role, as a combiner does.

    Its reads are stored with the example's reads, but do not count for budgets and coverage.
    """

    @property
    def role(self) -> str:
        """Role of the reader."""

    def ask(self, prediction: Prediction, example: Example) -> Asking[Statistics | None]:
        """Yields lists of `Read`, and returns the same as `statistics`.

        The scores of all other metrics are added to the returned mapping under `beside`.
        """


def gold_entry(example: Example, name: str) -> Any:  # noqa: ANN401 -- any JSON
    """Returns an entry of `gold` in an example's metadata, which stages never see; or None."""
    gold = example.metadata.get("gold")
    return gold.get(name) if isinstance(gold, Mapping) else None


def is_later(metric: Metric) -> bool:
    """Returns whether a metric is computed after all reads, which would wait for it otherwise.

    Such a metric declares `later: ClassVar[bool] = True`, and gets examples without documents.
    """
    return bool(getattr(metric, "later", False))


class Summed:
    """Base of metrics whose headline depends only on sums of one row of numbers per example."""

    name: ClassVar[str]

    @property
    def headline(self) -> str:
        """Name of the score that ranks pipelines: the metric's name."""
        return self.name

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns the statistics of an answer; None without references."""
        return self.measured(prediction.prediction, example) if example.references else None

    def measured(self, text: str, example: Example) -> Statistics | None:
        """Returns the statistics of an answer to an example with references."""
        raise NotImplementedError

    def row(self, statistics: Statistics) -> Sequence[float]:
        """Returns the numbers of one example that enter the sums."""
        raise NotImplementedError

    def scores(self, row: Sequence[float]) -> dict[str, float]:
        """Returns named scores, 0 to 100, of a row or of the sums of several rows."""
        raise NotImplementedError

    def score(self, statistics: Statistics) -> float:
        """Returns the score of one example, 0 to 100."""
        return self.scores(self.row(statistics))[self.headline]

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns the scores of the sums over all examples."""
        sums: list[float] = []
        for row in map(self.row, statistics):
            sums = [*map(add, sums, row)] if sums else [*row]
        return {name: round(score, _DIGITS) for name, score in self.scores(sums).items()}

    def summands(self, statistics: Sequence[Statistics]) -> Numbers:
        """Returns the rows, shape (examples, columns)."""
        import numpy as np

        return np.array([*map(self.row, statistics)], dtype=np.float64)

    def of_sums(self, sums: Numbers, counts: Numbers) -> Numbers:  # noqa: ARG002 -- required by the protocol
        """Returns the headline of each resample."""
        import numpy as np

        return np.array([self.scores(row)[self.headline] for row in sums.tolist()])


class Averaged(Summed):
    """Base of metrics whose scores are means of one or several numbers per answer."""

    def measured(self, text: str, example: Example) -> Statistics | None:
        """Returns the answer's value under the metric's name."""
        return {self.name: self.value(text, example)}

    def value(self, text: str, example: Example) -> float:
        """Returns the score of an answer to an example with references, 0 to 100."""
        raise NotImplementedError

    def score(self, statistics: Statistics) -> float:
        """Returns the score of one example, 0 to 100."""
        return float(statistics[self.headline])

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns the mean of each number in the statistics."""
        return {n: round(fmean(s[n] for s in statistics), _DIGITS) for n in statistics[0]}

    def row(self, statistics: Statistics) -> Sequence[float]:
        """Returns the score."""
        return [self.score(statistics)]

    def of_sums(self, sums: Numbers, counts: Numbers) -> Numbers:
        """Returns the means."""
        scores: Numbers = sums[:, 0] / counts
        return scores
