"""F1 over labels, for MuLD's characters, and F1 of stating that a question has no answer."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

from leporello.core.calls.answers import is_answer
from leporello.core.records import Example, Prediction
from leporello.metrics.protocol import GoldError, Numbers, Statistics, Summed

Label = TypeVar("Label", bound=Hashable)
# By label: numbers of hits, misses (expected, not predicted) and extras (predicted, not expected).
Counts = Mapping[Label, tuple[int, int, int]]


def tally(pairs: Iterable[tuple[Label, Label | None]]) -> dict[Label, tuple[int, int, int]]:
    """Counts hits, misses and extras of expected and predicted labels; None predicts no label."""
    hits: Counter[Label] = Counter()
    missed: Counter[Label] = Counter()
    extra: Counter[Label] = Counter()
    for truth, guess in pairs:
        if truth == guess:
            hits[truth] += 1
            continue
        missed[truth] += 1
        if guess is not None:
            extra[guess] += 1
    labels = dict.fromkeys([*hits, *missed, *extra])
    return {label: (hits[label], missed[label], extra[label]) for label in labels}


def f1_of(hits: float, missed: float, extra: float) -> float:
    """Returns the F1 of a label, 0 to 1; 0 if the label does not occur."""
    return 2 * hits / (2 * hits + missed + extra) if hits else 0.0


def columns(rows: Sequence[Counts[Label]], labels: Sequence[Label]) -> Numbers:
    """Returns the counts of these labels in each row, shape (rows, 3 x labels)."""
    import numpy as np

    table = [[n for label in labels for n in row.get(label, (0, 0, 0))] for row in rows]
    return np.array(table, dtype=np.float64).reshape(len(rows), 3 * len(labels))


def macro_of_sums(sums: Numbers, *, fixed: bool) -> Numbers:
    """Returns the mean F1 over labels, 0 to 1, for each row of sums of `columns`.

    The shape is (resamples, 3 x labels). Labels that do not occur in a resample count as 0 if
    `fixed`, and are left out otherwise.
    """
    import numpy as np

    hits, missed, extra = (sums[:, column::3] for column in range(3))
    occurs = (hits + missed + extra > 0) | fixed
    f1 = 2 * hits / np.maximum(2 * hits + missed + extra, 1)
    scores: Numbers = (f1 * occurs).sum(axis=1) / np.maximum(occurs.sum(axis=1), 1)
    return scores


@dataclass(frozen=True)
class F1Macro(Summed):
    """F1 over labels: the mean over classes (macro), of the sums (micro), and of each class.

    An answer is a label if it equals one of the task's choices exactly, or, in a task without
    choices, a reference. Any other answer only costs recall of the right class, as in scikit-learn
    with `labels=`. Classes are the labels that were expected or predicted at least once.
    """

    name = "f1_macro"
    signature = "f1_macro|match:exact|labels:seen|average:macro|version:1"

    def measured(self, text: str, example: Example) -> Statistics:
        """Returns the expected label `wanted`, the predicted label `given`, and the `choices`.

        If there are several references, each of them is right.
        """
        references, choices = example.references, example.choices
        if choices and (unknown := [label for label in references if label not in choices]):
            allowed = ", ".join(choices)
            raise GoldError(example, f"the reference {unknown[0]!r:.80} is not one of: {allowed}")
        return {
            "wanted": text if text in references else references[0],
            "given": text if not choices or text in choices else None,
            "choices": list(choices),
        }

    def score(self, statistics: Statistics) -> float:
        """Returns 100 if the label is right, otherwise 0."""
        return 100.0 * bool(statistics["wanted"] == statistics["given"])

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns `f1_macro`, `f1_micro`, and `f1[LABEL]` of each class."""
        counts = tally((s["wanted"], s["given"]) for s in statistics)
        labels = sorted(counts.keys() & _labels(statistics))
        by_label = {label: f1_of(*counts[label]) for label in labels}
        scores = {
            self.name: fmean(by_label.values()),
            "f1_micro": f1_of(*map(sum, zip(*(counts[label] for label in labels), strict=True))),
            **{f"f1[{label}]": f1 for label, f1 in by_label.items()},
        }
        return {name: round(100 * score, 4) for name, score in scores.items()}

    def summands(self, statistics: Sequence[Statistics]) -> Numbers:
        """Returns the counts of every label in any of the examples."""
        rows = [tally([(s["wanted"], s["given"])]) for s in statistics]
        return columns(rows, sorted(_labels(statistics)))

    def of_sums(self, sums: Numbers, counts: Numbers) -> Numbers:  # noqa: ARG002 -- required by the protocol
        """Returns the macro F1 over the labels that occur."""
        return 100 * macro_of_sums(sums, fixed=False)


def _labels(statistics: Sequence[Statistics]) -> set[str]:
    return {label for s in statistics for label in (s["wanted"], *s["choices"])}


@dataclass(frozen=True)
class NoAnswer(Summed):
    """Precision, recall and F1 of stating that the document has no answer.

    The statement is expected if every reference makes it, and predicted if the prediction makes
    it, is empty, or was withheld. A failure is an empty prediction, and so counts as the statement.
    """

    name = "no_answer"
    headline = "no_answer_f1"
    signature = "no_answer|wanted:all references|average:corpus|version:1"

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns whether the statement is expected and predicted; None without references."""
        if not example.references:
            return None
        predicted = prediction.abstained or not is_answer(prediction.prediction.strip())
        expected = not any(is_answer(text.strip()) for text in example.references)
        return {"wanted": expected, "given": predicted}

    def score(self, statistics: Statistics) -> float:
        """Returns 100 if the prediction is as expected, otherwise 0."""
        return 100.0 * bool(statistics["wanted"] == statistics["given"])

    def row(self, statistics: Statistics) -> Sequence[float]:
        """Returns flags: hit, missed, extra."""
        expected, predicted = statistics["wanted"], statistics["given"]
        return expected and predicted, expected and not predicted, predicted and not expected

    def scores(self, row: Sequence[float]) -> dict[str, float]:
        """Returns F1, precision and recall."""
        hits, missed, extra = row
        return {
            self.headline: 100 * f1_of(hits, missed, extra),
            "no_answer_precision": 100 * (hits / max(hits + extra, 1)),
            "no_answer_recall": 100 * (hits / max(hits + missed, 1)),
        }
