"""Traces the proof of one example (gold evidence, or places of a reference) stage by stage."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, islice

from leporello.analysis.finished import FinishedJob
from leporello.core.coverage import letters, merge, outside
from leporello.core.records import Example, Span
from leporello.engine.results.finished import FinishedRow, prediction_from_row
from leporello.metrics import judging_metric
from leporello.text.squad import normalise, occurrences

# Both limits are choices: short or frequent references prove nothing (decision 25).
_SHORTEST = 4  # characters of a reference: `no` or `2` occurs everywhere
_MOST = 20  # places of a reference: a text that occurs more often is common, not a proof


@dataclass(frozen=True, slots=True)
class Gold:
    """Proof of an answer."""

    kind: str  # `evidence`, or `reference` if only places of a reference are known
    # Alternative proofs. The spans of one alternative prove the answer together; they are merged,
    # not empty, and without white space at their ends.
    alternatives: tuple[tuple[Span, ...], ...]

    @property
    def start(self) -> int:
        """Start of its first span."""
        return min(alternative[0].start for alternative in self.alternatives)

    def covered_share(self, text: str, spans: Iterable[Span]) -> float:
        """Returns the share of letters that spans cover, for the best alternative."""
        cover = merge(spans)
        # The best one, since any single place of a reference proves the answer (decision 25).
        return max(
            1 - sum(letters(text, outside(span, cover)) for span in proof) / letters(text, proof)
            for proof in self.alternatives
        )

    def recall_curve(
        self, text: str, hits: Iterable[Sequence[Span]]
    ) -> tuple[tuple[int, float], ...]:
        """Returns the share that the first hits cover, as (rank, share) where it increases.

        Ranks start at 1. The share is 0 before the first listed rank.
        """
        proofs = [span for proof in self.alternatives for span in proof]
        touching: list[Span] = []  # parts of hits that touch a proof
        steps: list[tuple[int, float]] = []
        for rank, hit in enumerate(hits, 1):
            parts = [part for part in hit if any(part.overlaps(p.start, p.end) for p in proofs)]
            if parts:  # most hits are elsewhere
                touching += parts
                share = self.covered_share(text, touching)
                if share > (steps[-1][1] if steps else 0.0):
                    steps.append((rank, share))
        return tuple(steps)


def gold_of(example: Example) -> Gold | None:
    """Returns the proof of an example's answer, or None if it has none.

    Without evidence, every place of a reference in the document is an alternative proof.
    """
    text = example.document.text
    if evidence := merge(_trimmed(text, span) for span in example.evidence):
        # All spans of the evidence together: half of it proves nothing (decision 25).
        return Gold("evidence", (evidence,))
    spans = sorted(
        {span for reference in example.references for span in _spans_of(example, reference)}
    )
    return Gold("reference", tuple((span,) for span in spans)) if spans else None


def _spans_of(example: Example, reference: str) -> Sequence[Span]:
    # A choice such as `Hero` occurs in the document without being the answer.
    if len(normalise(reference)) < _SHORTEST or reference in example.choices:
        return ()
    # One more than the limit shows that there are too many, without a search of the whole book.
    spans = [*islice(occurrences(example.document, reference), _MOST + 1)]
    return spans if len(spans) <= _MOST else ()


def _trimmed(text: str, span: Span) -> Span:
    inner = text[span.start : span.end]
    start = span.start + len(inner) - len(inner.lstrip())
    return Span(start, start + len(inner.strip()))


# Stages that can lose the answer, in order.
STAGES = ("failed", "chunker", "retriever", "combiner", "reader", "answer")
ANSWERED = 50.0  # minimum score of a correct answer, by `judging_metric`


@dataclass(frozen=True, slots=True)
class ExampleTrace:
    """Trace of one example; shares are shares of the proof's characters, 0 to 1.

    Attributes:
        length: Length of the document, in characters.
        gold: Kind of the proof: `evidence`, or `reference` if only places of a reference are
            known; without a proof it is empty, and the fields below are unset.
        position: Position in the document at which the proof begins, 0 to 1.
        whole: Whether each span of the proof is inside one chunk, or inside the passages of one
            read.
        gains: Recall curve, (rank, share), at the ranks that increase the share.
        retrieved: Share that all hits cover.
        given: Share that the combiner passed to the reader.
        read: Share that the reader saw.
        score: Score by the metric that judges answers, 0 to 100; None without such a metric.
        answered: Whether that score is at least `ANSWERED`.
        failed: Name of the stage that failed, or empty; a failed example keeps nothing.
    """

    pipeline: str
    task: str
    id: str
    length: int
    gold: str = ""
    position: float | None = None
    whole: bool = False
    gains: tuple[tuple[int, float], ...] = ()
    retrieved: float = 0.0
    given: float = 0.0
    read: float = 0.0
    score: float | None = None
    answered: bool | None = None
    failed: str = ""

    @property
    def lost_at(self) -> str:
        """The first of `STAGES` that did not keep the complete proof; empty if none lost it."""
        if not self.gold:
            return ""
        return next((stage for stage in STAGES if self.kept_share(stage) < 1), "")

    def kept_share(self, stage: str) -> float:
        """Returns the share that a stage kept, which some stages only keep or lose completely."""
        shares = {
            "failed": not self.failed,
            # Inside one chunk or read: separate reads of hits cannot join halves.
            "chunker": self.whole,
            "retriever": self.retrieved,
            "combiner": self.given,
            "reader": self.read,
            # Unknown scores lose nothing: summaries of an unscored task are not wrong.
            "answer": self.answered is not False,
        }
        return float(shares[stage])


def containment(chunks: Iterable[Span]) -> Callable[[Span], bool]:
    """Returns a quick function that returns whether one of the chunks contains a span."""
    bounds = sorted((chunk.start, chunk.end) for chunk in chunks)
    starts = [start for start, _ in bounds]
    ends = [*accumulate((end for _, end in bounds), max)]  # largest end up to each chunk

    def contains(span: Span) -> bool:
        index = bisect_right(starts, span.start) - 1
        return index >= 0 and span.end <= ends[index]

    return contains


def trace_example(
    job: FinishedJob,
    example: Example,
    gold: Gold | None,
    finished: FinishedRow,
    in_chunk: Callable[[Span], bool],
) -> ExampleTrace:
    """Returns the trace of an example of a job; `in_chunk` is of its chunks, see `containment`."""
    text, failure = example.document.text, finished.statistics.failure
    failed = failure[0] if failure else ""
    trace = ExampleTrace(job.pipeline, job.task, example.id, len(text), failed=failed)
    if gold is None:
        return trace
    position, score = gold.start / len(text), _answer_score(job, finished)
    answered = None if score is None else score >= ANSWERED
    trace = replace(trace, gold=gold.kind, position=position, score=score, answered=answered)
    if finished.prediction is None:
        return trace
    prediction = prediction_from_row(finished.prediction)
    recall = gold.recall_curve(text, prediction.hit_spans)
    # Passages are [start, end], or text that is not in the document.
    reads = [
        merge(Span(*passage) for passage in call["passages"] if not isinstance(passage, str))
        for call in finished.calls
    ]

    def is_whole(span: Span) -> bool:
        return in_chunk(span) or any(not letters(text, outside(span, r)) for r in reads)

    return replace(
        trace,
        # Each span in some chunk, but not all in one: evidence of two hops is in two places.
        whole=any(all(map(is_whole, alternative)) for alternative in gold.alternatives),
        gains=recall,
        retrieved=recall[-1][1] if recall else 0.0,
        given=gold.covered_share(text, chain.from_iterable(reads)),
        read=gold.covered_share(text, prediction.read),
    )


def _answer_score(job: FinishedJob, finished: FinishedRow) -> float | None:
    """Returns the score by the judging metric; None without metrics of answers."""
    name = judging_metric(name for name in job.metrics if not name.startswith("recall"))
    statistics = finished.statistics.statistics.get(name)
    return None if statistics is None else job.metrics[name].score(statistics)
