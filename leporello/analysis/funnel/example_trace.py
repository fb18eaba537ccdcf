"""Trace of one example: its proof (gold evidence, or places of a reference), stage by stage."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice

from leporello.core.coverage import letters, merge, outside
from leporello.core.records import Example, Span
from leporello.engine.results.serialization import prediction_from_row
from leporello.jobs.files import ExampleFiles
from leporello.text.answer_spans import occurrences
from leporello.text.squad import normalise

_SHORTEST = 4  # characters of a reference: `no` or `2` stands anywhere
_MOST = 20  # places: what stands in more of them is a common word, not a proof


@dataclass(frozen=True, slots=True)
class Gold:
    """What proves an answer.

    Attributes:
        kind: Kind of the proof: `evidence`, or `reference` where only places of a reference are
            known.
        alternatives: Spans by alternative, each of which proves the answer by itself, all of its
            spans together; spans are merged, not empty, and have no white space around them.
    """

    kind: str
    alternatives: tuple[tuple[Span, ...], ...]

    @property
    def start(self) -> int:
        """Where the first of it begins."""
        return min(alternative[0].start for alternative in self.alternatives)

    def kept(self, text: str, spans: Iterable[Span]) -> float:
        """Returns the share of the characters of a way that spans cover, for the way kept best.

        White space does not count: chunkers may leave it out.
        """
        cover = merge(spans)
        return max(_kept(text, alternative, cover) for alternative in self.alternatives)

    def recall_curve(
        self, text: str, hits: Iterable[Sequence[Span]]
    ) -> tuple[tuple[int, float], ...]:
        """Returns what the first hits together keep: (rank, share), where the share grows.

        Ranks count from 1. The share holds up to the next rank that is named, and is 0 before the
        first.
        """
        ranked = list(enumerate(hits, 1))
        steps = sorted(
            step
            for alternative in self.alternatives
            for step in _recall_steps(text, alternative, ranked)
        )
        curve: list[tuple[int, float]] = []
        for rank, share in steps:
            if share > (curve[-1][1] if curve else 0.0):
                if curve and curve[-1][0] == rank:
                    curve.pop()
                curve.append((rank, share))
        return tuple(curve)


def gold_of(example: Example) -> Gold | None:
    """Returns what proves an example's answer, or None if nothing is known to.

    Without evidence it is the places of references in the document, each a proof of its own. A
    reference counts if after SQuAD's normalisation it has at least four characters, is none of
    the example's choices, and stands in at most twenty places.
    """
    text = example.document.text
    if evidence := merge(_trimmed(text, span) for span in example.evidence):
        return Gold("evidence", (evidence,))
    spans = sorted(
        {span for reference in example.references for span in _spans_of(example, reference)}
    )
    return Gold("reference", tuple((span,) for span in spans)) if spans else None


def _spans_of(example: Example, reference: str) -> Sequence[Span]:
    if len(normalise(reference)) < _SHORTEST or reference in example.choices:
        return ()
    spans = [*islice(occurrences(example.document, reference), _MOST + 1)]
    return spans if len(spans) <= _MOST else ()


def _trimmed(text: str, span: Span) -> Span:
    """Returns a span without the white space at its ends."""
    inner = text[span.start : span.end]
    start = span.start + len(inner) - len(inner.lstrip())
    return Span(start, start + len(inner.strip()))


def _kept(text: str, alternative: Sequence[Span], cover: Sequence[Span]) -> float:
    lost = sum(letters(text, outside(span, cover)) for span in alternative)
    return 1 - lost / letters(text, alternative)


def _recall_steps(
    text: str, alternative: Sequence[Span], ranked: Iterable[tuple[int, Sequence[Span]]]
) -> Iterator[tuple[int, float]]:
    left, total = list(alternative), letters(text, alternative)
    first, last = alternative[0].start, alternative[-1].end
    for rank, hit in ranked:
        if hit[-1].end <= first or last <= hit[0].start or not left:
            continue
        fewer = [piece for span in left for piece in outside(span, hit)]
        if fewer != left:
            left = fewer
            yield rank, 1 - letters(text, left) / total


# Where an answer can be lost, in this order.
STAGES = ("failed", "chunker", "retriever", "combiner", "reader", "answer")
ANSWERED = 50.0  # a score from which on an answer counts as right


@dataclass(frozen=True, slots=True)
class ExampleTrace:
    """What became of one example; shares are of the characters of its proof, 0 to 1.

    Attributes:
        pipeline: Name of the pipeline.
        task: Name of the task.
        id: Id of the example.
        length: Length of the document, in characters.
        gold: Kind of the proof: `evidence`; `reference`, where only places of a reference are
            known; else empty, and then nothing of what follows is known.
        position: Position in the document at which the proof begins, 0 to 1.
        whole: Whether each span of the proof lies within one chunk.
        gains: Recall curve, (rank, share): what the hits up to a rank keep, where that grows.
        retrieved: Share that all hits keep.
        given: Share that the combiner gave to the reader.
        read: Share that the reader saw.
        score: Score by the task's first metric of answers, 0 to 100; None where it has none.
        answered: Whether that score is high enough.
        failed: Name of the stage that failed, or empty; such an example kept nothing.
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
        """The first of `STAGES` that kept less than all of the proof.

        `answer` where all of it was read and the answer is wrong; empty where nothing was lost, or
        nothing is known that proves the answer.
        """
        if not self.gold:
            return ""
        return next((stage for stage in STAGES if self.kept(stage) < 1), "")

    def kept(self, stage: str) -> float:
        """Returns the share that a stage kept: 0 or 1 but for retriever, combiner and reader."""
        shares = {
            "failed": not self.failed,
            # Whole in one chunk: who reads hits one by one never sees both halves (decision 25).
            "chunker": self.whole,
            "retriever": self.retrieved,
            "combiner": self.given,
            "reader": self.read,
            "answer": self.answered is not False,
        }
        return float(shares[stage])


@dataclass(frozen=True, slots=True)
class ChunkCover:
    """Chunks of a document, so that it is quickly told whether one of them holds a span."""

    starts: Sequence[int]
    ends: Sequence[int]  # the farthest among the chunks up to each

    @staticmethod
    def of(chunks: Iterable[Span]) -> ChunkCover:
        """Returns the cover of chunks, which may overlap."""
        bounds = sorted((chunk.start, chunk.end) for chunk in chunks)
        ends = accumulate((end for _, end in bounds), max)
        return ChunkCover([start for start, _ in bounds], [*ends])

    def holds(self, span: Span) -> bool:
        """Says whether a span lies within one chunk."""
        index = bisect_right(self.starts, span.start) - 1
        return index >= 0 and span.end <= self.ends[index]


def trace_example(
    job: tuple[str, str],
    example: Example,
    gold: Gold | None,
    cover: ChunkCover,
    finished: ExampleFiles,
    *,
    score: float | None,
) -> ExampleTrace:
    """Returns what became of an example.

    Args:
        job: Names of pipeline and task.
        example: Example with its gold.
        gold: Proof of its answer; None where nothing is known to prove it.
        cover: Chunks of its document.
        finished: What the run left of it.
        score: Score of its answer; None where it has none.
    """
    text, failure = example.document.text, finished.statistics.failure
    trace = ExampleTrace(*job, example.id, len(text), failed=failure[0] if failure else "")
    if gold is None:
        return trace
    position = gold.start / len(text)
    answered = None if score is None else score >= ANSWERED
    trace = replace(trace, gold=gold.kind, position=position, score=score, answered=answered)
    if finished.prediction is None:
        return trace
    prediction = prediction_from_row(finished.prediction)
    recall = gold.recall_curve(text, prediction.hit_spans)
    return replace(
        trace,
        whole=any(all(map(cover.holds, alternative)) for alternative in gold.alternatives),
        gains=recall,
        retrieved=recall[-1][1] if recall else 0.0,
        given=gold.kept(text, _given(finished)),
        read=gold.kept(text, prediction.read),
    )


def _given(finished: ExampleFiles) -> Iterator[Span]:
    """Yields the passages that the combiner gave to the reader."""
    passages = (passage for call in finished.calls for passage in call["passages"])
    yield from (Span(*passage) for passage in passages if not isinstance(passage, str))
