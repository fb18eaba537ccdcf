"""What a metric is: statistics of one example, and what they come to over many."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Sequence
from operator import add
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from leporello.core.records import Example, Prediction, Request

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers: TypeAlias = NDArray[np.float64]

# What is known of one example, as JSON; by it alone it enters any aggregate.
Statistics: TypeAlias = dict[str, Any]

_DIGITS = 4  # SCROLLS rounds its scores so


class GoldError(ValueError):
    """A reference that the official metric cannot score against; the text names the example."""

    def __init__(self, example: Example, fault: str) -> None:
        super().__init__(f"example {example.id!r}: {fault}")


class Metric(Protocol):
    """Scores in two steps, so that totals, per-example scores and the bootstrap share one pass.

    A metric that needs an extra or a program says so when it is made, with a `UserError`.
    """

    @property
    def name(self) -> str:
        """Of the metric, as tasks list it."""
        ...

    @property
    def headline(self) -> str:
        """Of its scores over many examples the one that pipelines are ranked by."""
        ...

    @property
    def signature(self) -> str:
        """What exactly is computed: options and versions, in the manner of sacreBLEU."""
        ...

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns the numbers of one example; None where it has nothing to be scored against.

        A failure is scored as an empty prediction.

        Raises:
            GoldError: No prediction could be scored against such a reference.
        """
        ...

    def score(self, statistics: Statistics) -> float:
        """Returns the score of one example, 0 to 100."""
        ...

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns named scores over all examples, 0 to 100, four decimals; none of none."""
        ...


@runtime_checkable
class Parses(Protocol):
    """A metric that looks for an answer in the prediction, and may find none."""

    def parses(self, text: str, example: Example) -> bool:
        """Says whether it finds an answer, right or wrong, to this example in a text."""
        ...


@runtime_checkable
class Resampled(Protocol):
    """A metric whose headline follows from sums over examples: thousands of resamples are quick."""

    def score(self, statistics: Statistics) -> float:
        """Returns the score of one example, 0 to 100."""
        ...

    def summands(self, statistics: Sequence[Statistics]) -> Numbers:
        """Returns what is added up, shape (examples, columns)."""
        ...

    def of_sums(self, sums: Numbers, counts: Numbers) -> Numbers:
        """Returns the headline, 0 to 100, of each of many resamples.

        Args:
            sums: Sums of the columns of `summands`, shape (resamples, columns).
            counts: Number of examples in each resample, shape (resamples,).
        """
        ...


@runtime_checkable
class Asks(Protocol):
    """A metric that asks a reader of the pipeline, in a role of its own, as a combiner does.

    What it reads stands with the example's reads, and counts for no budget and no ledger.
    """

    @property
    def role(self) -> str:
        """Role of the reader."""
        ...

    def ask(
        self, prediction: Prediction, example: Example
    ) -> Generator[Sequence[Request], list[Any], Statistics | None]:
        """A generator that yields lists of `Read`, and returns what `statistics` would.

        In place of scores beside its own, under `beside`, it gets those of the other metrics.
        """
        ...


def is_later(metric: Metric) -> bool:
    """Says whether a metric is computed once all is read, in a process of its own.

    It says so by `later: ClassVar[bool] = True`, and then sees no document.
    """
    return getattr(metric, "later", False) and sys.platform != "win32"  # which has no such process


class Summed:
    """Base of metrics whose headline follows from sums of a row of numbers of each example."""

    name: ClassVar[str]

    @property
    def headline(self) -> str:
        """The score of the metric's own name."""
        return self.name

    def row(self, statistics: Statistics) -> Sequence[float]:
        """Returns the numbers of one example that are added up."""
        raise NotImplementedError

    def of_row(self, row: Sequence[float]) -> float:
        """Returns the headline, 0 to 100, of a row, or of the sums of several."""
        raise NotImplementedError

    def score(self, statistics: Statistics) -> float:
        """Returns the example's own."""
        return self.of_row(self.row(statistics))

    def summands(self, statistics: Sequence[Statistics]) -> Numbers:
        """Returns the rows, shape (examples, columns)."""
        import numpy as np

        return np.array([*map(self.row, statistics)], dtype=np.float64)

    def of_sums(self, sums: Numbers, counts: Numbers) -> Numbers:  # noqa: ARG002 -- of the protocol
        """Returns the headline of each of many resamples."""
        import numpy as np

        return np.array([*map(self.of_row, sums.tolist())])


class Averaged(Summed):
    """Base of metrics whose score is the mean of a value of each answer, or of several numbers."""

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns the answer's value under the metric's name; None without references.

        Raises:
            GoldError: No answer could be scored against a reference.
        """
        if not example.references:
            return None
        return {self.name: self.value(prediction.prediction, example)}

    def value(self, text: str, example: Example) -> float:
        """Returns the score of an answer to an example that has references, 0 to 100."""
        raise NotImplementedError

    def score(self, statistics: Statistics) -> float:
        """Returns the example's own."""
        return float(statistics[self.name])

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns the mean of each number in the statistics."""
        return means(statistics)

    def row(self, statistics: Statistics) -> Sequence[float]:
        """Returns the score."""
        return [self.score(statistics)]

    def of_sums(self, sums: Numbers, counts: Numbers) -> Numbers:
        """Returns the means."""
        scores: Numbers = sums[:, 0] / counts
        return scores


def column_sums(rows: Iterable[Sequence[float]]) -> list[float]:
    """Returns the sum of each column of rows of one length, which are seen once; none of none."""
    sums: list[float] = []
    for row in rows:
        sums = [*map(add, sums, row)] if sums else [*row]
    return sums


def means(statistics: Sequence[Statistics]) -> dict[str, float]:
    """Returns the mean of each number, rounded as scores are."""
    names = statistics[0] if statistics else ()
    return {name: round(fmean(s[name] for s in statistics), _DIGITS) for name in names}
