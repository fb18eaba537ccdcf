"""What proves an example's answer: its gold evidence, or else where a reference stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from leporello.core.records import Example, Span
from leporello.core.spans import letters, merge, outside
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
