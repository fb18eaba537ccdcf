"""Checks the sentences of an answer against the passages that were read for it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from leporello.combiners.chains.outputs import answer_key, has_no_answer
from leporello.core.calls.answers import as_text, confidence_of, rounded, with_more, with_way
from leporello.core.calls.contracts import run_combiner, watched
from leporello.core.notes import note
from leporello.core.passages import identity
from leporello.core.protocols import ANSWER, Combiner, Role, Share
from leporello.core.records import JSON, Chunk, Combination, Example, Hit, Output, Read
from leporello.text.sentences import sentence_spans

CHECK = "Does the text say so? Answer with one of the choices."
_FEW = 8  # words of an answer that is too short to be a statement
_MOST = 50  # sentences that are checked; later sentences count as not supported
_MARK = " [unsupported]"
_LABELS = ("Entailment", "Contradiction", "Not mentioned")


@dataclass(frozen=True)
class Verify:
    """Runs another combiner, and checks each sentence of its answer against the passages read.

    The reader of a role decides whether the passages entail each claim: it chooses `Entailment`,
    `Contradiction` or `Not mentioned`, or it classifies pairs of a passage and a claim. A short
    answer is checked together with its question. Choices are not checked; a note reports answers
    without checks. The raw answer contains all claims, and the table of ways counts the results.

    Attributes:
        combiner: Combiner whose answer is checked.
        role: Role of the reader that checks, such as `Embedded` or one that generates text.
        unsupported: Treatment of a sentence that is not supported: `mark` or `drop`.
        threshold: Probability at or above which a claim is supported; without probabilities, the
            label decides.
        pairs: Whether the reader gets one pair per passage, as classifiers of premise and
            hypothesis do; one passage that entails a claim suffices.
    """

    combiner: Combiner
    role: Role = ANSWER
    unsupported: Literal["mark", "drop"] = "mark"
    threshold: Share = 0.5
    pairs: bool = False

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields the combiner's rounds, then all checks in one round."""
        answer, reads = yield from watched(run_combiner(self.combiner, example, hits))
        passages = {_key(p): p for read, _ in reads for p in read.passages}.values()
        text = as_text(answer)
        if example.choices or has_no_answer(text) or not passages:
            note("Verify checked nothing: the answer has no claim, or no passage was read for it")
            return answer
        sentences = [text[start:end] for start, end in sentence_spans(text)]
        # `In Paris` alone can be neither supported nor refuted. Statements made of the question and
        # the answer by rules were judged no better (68 claims of the sample task).
        claims = (
            f"{example.question} {claim}".strip() if len(claim.split()) <= _FEW else claim
            for claim in sentences[:_MOST]
        )
        checks = [self._reads(claim, [*passages]) for claim in claims]
        outputs = iter((yield [check for group in checks for check in group]))
        support = [max(_support(next(outputs)) for _ in group) for group in checks]
        # Without a check, the mark is the safer default.
        support += [0.0] * (len(sentences) - len(checks))
        confidence = confidence_of(answer, (output for _, output in reads))
        answer = with_more(answer, confidence=confidence)
        return self._answer(answer, list(zip(sentences, support, strict=True)))

    def _reads(self, claim: str, passages: Sequence[Chunk | str]) -> list[Read]:
        if not self.pairs:
            return [Read((*passages,), claim, CHECK, _LABELS, role=self.role)]
        premises = [passage if isinstance(passage, str) else passage.text for passage in passages]
        return [Read((text, claim), pair=(text, claim), role=self.role) for text in premises]

    def _answer(self, answer: JSON, claims: Sequence[tuple[str, float]]) -> JSON:
        decisions = [probability >= self.threshold for _, probability in claims]
        sentences = [
            sentence if is_supported else f"{sentence}{_MARK}"
            for (sentence, _), is_supported in zip(claims, decisions, strict=True)
            if is_supported or self.unsupported == "mark"
        ]
        rows: list[JSON] = [
            {"claim": sentence, "supported": is_supported, "probability": rounded(probability)}
            for (sentence, probability), is_supported in zip(claims, decisions, strict=True)
        ]
        partly = "supported in part" if any(decisions) else "unsupported"
        way = "supported" if all(decisions) else partly
        return with_way(with_more(answer, answer=" ".join(sentences), claims=rows), way)


def _support(output: Output) -> float:
    """Returns the probability that a claim is supported; 0 unless the label is `Entailment`."""
    if answer_key(output.text) != answer_key(_LABELS[0]):
        return 0.0
    return 1.0 if output.probability is None else output.probability


def _key(passage: Chunk | str) -> Hashable:
    return passage if isinstance(passage, str) else identity(passage)
