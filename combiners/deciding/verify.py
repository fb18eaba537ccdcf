"""An answer whose sentences are checked against what was read for it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from leporello.combiners.chains.said import answer_key, says_nothing
from leporello.core.calls.answers import as_text, confidence_of, rounded, with_more, with_way
from leporello.core.calls.contracts import run_combiner, watched
from leporello.core.notes import note
from leporello.core.passages import identity
from leporello.core.protocols import ANSWER, Combiner, Positive, Role, Share
from leporello.core.records import JSON, Chunk, Combination, Example, Hit, Output, Read
from leporello.text.english.claims import claim
from leporello.text.sentences import sentence_spans

CHECK = "Does the text say so? Answer with one of the choices."
_FEW = 8  # words of an answer that is no statement of its own


@dataclass(frozen=True)
class Verify:
    """Runs another combiner, and checks each sentence of its answer against what was read for it.

    The reader of a role says of each claim whether the passages entail it: it chooses a label, as
    readers that write do and `Embedded`; or each passage and the claim are a pair of premise and
    hypothesis. An answer of a few words is checked as the statement that it makes of the question,
    by rule, in English. Choices are not checked, and a note says where nothing was. All claims
    stand in the raw answer; what became of answers is in the table of ways.

    Attributes:
        combiner: Combiner whose answer is checked.
        role: Role of the reader that checks.
        unsupported: What becomes of a sentence that is not supported: it is marked, or dropped.
        threshold: Probability from which on a claim is supported; of a reader that gives none, the
            label counts.
        labels: Labels to choose from; the first says that the claim is supported.
        pairs: Whether the reader is given pairs, one a passage, and answers with the first label.
        check: Instruction under which it chooses.
        mark: Text behind a sentence that is marked.
        nothing: Answer where all of it was dropped.
        most: Number of sentences that are checked; those behind them are not supported.
    """

    combiner: Combiner
    role: Role = ANSWER
    unsupported: Literal["mark", "drop"] = "mark"
    threshold: Share = 0.5
    labels: tuple[str, ...] = ("Entailment", "Contradiction", "Not mentioned")
    pairs: bool = False
    check: str = CHECK
    mark: str = " [unsupported]"
    nothing: str = ""
    most: Positive = 50

    def __post_init__(self) -> None:
        if len({*self.labels}) < (1 if self.pairs else 2):
            raise ValueError("labels needs two at least, the first for what is supported")

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields the combiner's rounds, then all checks in one."""
        answer, seen = yield from watched(run_combiner(self.combiner, example, hits))
        passages = [*{_key(p): p for read, _ in seen for p in read.passages}.values()]
        text = as_text(answer)
        if example.choices or says_nothing(text) or not passages:
            note("Verify checked nothing: there is no claim, or nothing was read for it")
            return answer
        sentences = [text[start:end] for start, end in sentence_spans(text)]
        checks = [self._reads(one, example, passages) for one in sentences[: self.most]]
        outputs: list[Output] = yield [read for reads in checks for read in reads]
        replies = iter(outputs)
        likely = [max(self._support(next(replies)) for _ in reads) for reads in checks]
        likely += [0.0] * (len(sentences) - len(checks))
        confidence = confidence_of(answer, (output for _, output in seen))
        told = with_more(answer, confidence=confidence)
        return self._answer(told, list(zip(sentences, likely, strict=True)))

    def _reads(
        self, sentence: str, example: Example, passages: Sequence[Chunk | str]
    ) -> list[Read]:
        said = sentence
        if len(sentence.split()) <= _FEW:
            said = claim(example.question, sentence) or f"{example.question} {sentence}".strip()
        if not self.pairs:
            return [Read((*passages,), said, self.check, self.labels, role=self.role)]
        texts = [p if isinstance(p, str) else p.text for p in passages]
        return [
            Read((passage, said), pair=(premise, said), role=self.role)
            for passage, premise in zip(passages, texts, strict=True)
        ]

    def _support(self, output: Output) -> float:
        """Returns how likely a claim is supported; 0 if another label is chosen."""
        if answer_key(output.text) != answer_key(self.labels[0]):
            return 0.0
        return 1.0 if output.probability is None else output.probability

    def _answer(self, answer: JSON, claims: Sequence[tuple[str, float]]) -> JSON:
        good = [likely >= self.threshold for _, likely in claims]
        kept = [
            sentence if ok else f"{sentence}{self.mark}"
            for (sentence, _), ok in zip(claims, good, strict=True)
            if ok or self.unsupported == "mark"
        ]
        rows: list[JSON] = [
            {"claim": sentence, "supported": ok, "probability": rounded(likely)}
            for (sentence, likely), ok in zip(claims, good, strict=True)
        ]
        way = "supported" if all(good) else "supported in part" if any(good) else "unsupported"
        return with_way(with_more(answer, answer=" ".join(kept) or self.nothing, claims=rows), way)


def _key(passage: Chunk | str) -> Hashable:
    return passage if isinstance(passage, str) else identity(passage)
