"""F1 over labels, for MuLD's characters, and F1 of stating that a question has no answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from leporello.core.records import Example, Prediction
from leporello.metrics.confusion import columns, f1_of, macro, macro_of_sums, micro, tally
from leporello.metrics.protocol import GoldError, Statistics, Summed
from leporello.text.answers import unanswerable

if TYPE_CHECKING:
    from leporello.metrics.protocol import Numbers


@dataclass(frozen=True)
class F1Macro:
    """F1 over labels: the mean over classes (macro), of the sums (micro), and of each class.

    An answer is a label if it equals one of the task's choices exactly, or, in a task without
    choices, a reference. Any other answer only costs recall of the right class, as in scikit-learn
    with `labels=`. Classes are the labels that were expected or predicted at least once.
    """

    name: ClassVar[str] = "f1_macro"
    headline: ClassVar[str] = "f1_macro"
    signature: ClassVar[str] = "f1_macro|match:exact|labels:seen|average:macro|version:1"

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns the expected label `wanted`, the predicted label `given`, and the `choices`.

        None without references; if there are several, each of them is right.

        Raises:
            GoldError: A reference is not among the choices.
        """
        if not example.references:
            return None
        text, references, choices = prediction.prediction, example.references, example.choices
        if choices and (unknown := [label for label in references if label not in choices]):
            allowed = ", ".join(choices)
            raise GoldError(example, f"the reference {unknown[0]!r:.80} is not one of: {allowed}")
        return {
            "wanted": text if text in references else references[0],
            "given": text if not choices or text in choices else None,
            "choices": list(choices),
        }

    def parses(self, text: str, example: Example) -> bool:
        """Returns whether a text is one of the choices; true without choices."""
        return not example.choices or text in example.choices

    def score(self, statistics: Statistics) -> float:
        """Returns 100 if the label is right, otherwise 0."""
        return 100.0 * bool(statistics["wanted"] == statistics["given"])

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns `f1_macro`, `f1_micro`, and `f1[LABEL]` of each class."""
        if not statistics:
            return {}
        counts = tally((s["wanted"], s["given"]) for s in statistics)
        labels = sorted(counts.keys() & _labels(statistics))
        scores = {
            self.name: macro(counts, labels),
            "f1_micro": micro(counts, labels),
            **{f"f1[{label}]": f1_of(counts[label]) for label in labels},
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

    name: ClassVar[str] = "no_answer"
    headline = "no_answer_f1"
    signature: ClassVar[str] = "no_answer|wanted:all references|average:corpus|version:1"

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns whether the statement is expected and predicted; None without references."""
        if not example.references:
            return None
        predicted = prediction.abstained or not unanswerable(prediction.prediction.strip(), "")
        expected = not any(unanswerable(text.strip(), "") for text in example.references)
        return {"wanted": expected, "given": predicted}

    def score(self, statistics: Statistics) -> float:
        """Returns 100 if the prediction is as expected, otherwise 0."""
        return 100.0 * bool(statistics["wanted"] == statistics["given"])

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns `no_answer_f1`, `no_answer_precision` and `no_answer_recall`."""
        if not statistics:
            return {}
        hits, missed, extra = (sum(row) for row in zip(*map(_counts, statistics), strict=True))
        scores = {
            self.headline: f1_of((hits, missed, extra)),
            "no_answer_precision": hits / max(hits + extra, 1),
            "no_answer_recall": hits / max(hits + missed, 1),
        }
        return {name: round(100 * score, 4) for name, score in scores.items()}

    def row(self, statistics: Statistics) -> Sequence[float]:
        """Returns flags: hit, missed, extra."""
        return _counts(statistics)

    def of_row(self, row: Sequence[float]) -> float:
        """Returns the F1."""
        hits, missed, extra = row
        return 100 * f1_of((hits, missed, extra))


def _counts(statistics: Statistics) -> tuple[bool, bool, bool]:
    expected, predicted = statistics["wanted"], statistics["given"]
    return expected and predicted, expected and not predicted, predicted and not expected
