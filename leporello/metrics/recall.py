"""Retrieval recall: share of the evidence that hits cover, and rank of the first such hit."""

from dataclasses import dataclass
from itertools import chain

from leporello.core.coverage import letters, merge, outside, overlap
from leporello.core.records import Example, Prediction
from leporello.metrics.protocol import Averaged, Statistics


@dataclass(frozen=True)
class Recall(Averaged):
    """Share of the gold evidence that was retrieved; low recall means the retriever lost answers.

    `recall` is the share of the evidence's characters that all hits cover, or the texts that they
    summarise; `recall_whole` is the share of evidence spans that are covered entirely; `mrr` is the
    reciprocal rank of the first hit that touches evidence. Scores are means over examples. White
    space does not count, since chunkers may leave it out.
    """

    name = "recall"
    needs_hits = True
    signature = "recall|unit:characters|hits:all|blanks:ignored|average:mean|version:1"

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns `recall`, `recall_whole` and `mrr`; None without evidence."""
        text = example.document.text
        # Evidence of only white space is in no chunk, so no retriever could ever find it.
        evidence = [span for span in example.evidence if letters(text, [span])]
        if not evidence:
            return None
        hits = prediction.hit_spans
        retrieved, gold = merge(chain.from_iterable(hits)), merge(evidence)
        missed = [letters(text, outside(span, retrieved)) for span in evidence]
        lost = sum(letters(text, outside(span, retrieved)) for span in gold)
        ranks = (1 / rank for rank, hit in enumerate(hits, 1) if overlap(hit, gold))
        return {
            "recall": 100 * (1 - lost / letters(text, gold)),
            "recall_whole": 100 * missed.count(0) / len(missed),
            "mrr": 100 * next(ranks, 0.0),
        }


@dataclass(frozen=True)
class RecallRead(Averaged):
    """Share of the gold evidence that the reader saw verbatim.

    Unlike in `recall`, evidence behind a summary does not count. White space does not count.
    """

    name = "recall_read"
    needs_hits = True
    signature = "recall_read|unit:characters|spans:read|blanks:ignored|average:mean|version:1"

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns `recall_read`; None without evidence."""
        text, gold = example.document.text, merge(example.evidence)
        if not (total := letters(text, gold)):
            return None
        unread = sum(letters(text, outside(span, prediction.read)) for span in gold)
        return {"recall_read": 100 * (1 - unread / total)}
