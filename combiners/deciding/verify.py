"""Checks the sentences of an answer against the passages that were read for it."""

from __future__ import annotations

import re
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

_WHO = re.compile(r"(?:who|whom|what)\b", re.I)
_WHICH = re.compile(r"(?:in |on |at |by |from |to |of |for |with )?(?:which|what)\b", re.I)
_PLACE = re.compile(r"(?:when|where)\b", re.I)
_COUNT = re.compile(r"how (?:many|much)\b", re.I)
_DO = frozenset({"do", "does", "did"})
AUXILIARIES = frozenset((
    "is", "are", "was", "were", "has", "have", "had", "can", "could", "will", "would", "shall",
    "should", "may", "might", "must",
))  # fmt: skip
_PARTICIPLE = re.compile(
    r"(?:\w+(?:ed|ing)|born|built|made|held|found|written|known|given|won|sold|kept|left|called|seen"
    r"|taken|shown|led|sent|set|put|lost|brought|taught|bought|drawn|grown|chosen|located|from|to|in)",
    re.I,
)
_PREPOSITION = frozenset((
    "in", "on", "at", "by", "from", "to", "of", "for", "with", "during", "after", "before", "near",
    "since",
))  # fmt: skip
_KIND = frozenset(("kind", "kinds", "type", "types", "sort", "sorts"))
_NOUN_WORDS = 6  # words before the verb within which a question names its object


@dataclass(frozen=True)
class Verify:
    """Runs another combiner, and checks each sentence of its answer against the passages read.

    The reader of a role decides whether the passages entail each claim. It chooses a label, as
    generative readers and `Embedded` do; or each passage and the claim form a pair of premise and
    hypothesis. A short answer is turned into a statement by rules for English questions. Choices
    are not checked; a note reports answers without checks. The raw answer contains all claims, and
    the table of ways counts the results.

    Attributes:
        combiner: Combiner whose answer is checked.
        role: Role of the reader that checks.
        unsupported: Treatment of a sentence that is not supported: `mark` or `drop`.
        threshold: Probability at or above which a claim is supported; without probabilities, the
            label decides.
        labels: Labels to choose from; the first means that the claim is supported.
        pairs: Whether the reader gets one pair per passage, and answers with the first label.
        check: Instruction for the choice.
    """

    combiner: Combiner
    role: Role = ANSWER
    unsupported: Literal["mark", "drop"] = "mark"
    threshold: Share = 0.5
    labels: tuple[str, ...] = ("Entailment", "Contradiction", "Not mentioned")
    pairs: bool = False
    check: str = CHECK

    def __post_init__(self) -> None:
        if len({*self.labels}) < (1 if self.pairs else 2):
            raise ValueError("labels needs at least two; the first means supported")

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields the combiner's rounds, then all checks in one round."""
        answer, reads = yield from watched(run_combiner(self.combiner, example, hits))
        passages = [*{_key(p): p for read, _ in reads for p in read.passages}.values()]
        text = as_text(answer)
        if example.choices or has_no_answer(text) or not passages:
            note("Verify checked nothing: the answer has no claim, or no passage was read for it")
            return answer
        sentences = [text[start:end] for start, end in sentence_spans(text)]
        checks = [self._reads(sentence, example, passages) for sentence in sentences[:_MOST]]
        outputs: list[Output] = yield [check for group in checks for check in group]
        replies = iter(outputs)
        # One passage that supports a claim suffices; the others usually do not mention it.
        support = [max(self._support(next(replies)) for _ in group) for group in checks]
        # Without a check, the mark is the safer default.
        support += [0.0] * (len(sentences) - len(checks))
        confidence = confidence_of(answer, (output for _, output in reads))
        answer = with_more(answer, confidence=confidence)
        return self._answer(answer, list(zip(sentences, support, strict=True)))

    def _reads(
        self, sentence: str, example: Example, passages: Sequence[Chunk | str]
    ) -> list[Read]:
        text = sentence
        # `In Paris` alone can be neither supported nor refuted; it needs the words of the question.
        if len(sentence.split()) <= _FEW:
            text = claim(example.question, sentence) or f"{example.question} {sentence}".strip()
        if not self.pairs:
            return [Read((*passages,), text, self.check, self.labels, role=self.role)]
        premises = [p if isinstance(p, str) else p.text for p in passages]
        return [
            Read((passage, text), pair=(premise, text), role=self.role)
            for passage, premise in zip(passages, premises, strict=True)
        ]

    def _support(self, output: Output) -> float:
        """Returns the probability that a claim is supported; 0 if another label is chosen."""
        if answer_key(output.text) != answer_key(self.labels[0]):
            return 0.0
        return 1.0 if output.probability is None else output.probability

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


def _key(passage: Chunk | str) -> Hashable:
    return passage if isinstance(passage, str) else identity(passage)


def claim(question: str, answer: str) -> str | None:  # noqa: PLR0911 -- one per kind of question
    """Turns a question and its answer into a statement; None if no rule fits."""
    words = question.strip().rstrip("?. ").split()
    text = " ".join(words)
    if len(words) < 3 or "or" in words:  # noqa: PLR2004 -- a question word, a verb, its object
        return None
    if _PLACE.match(text):
        return _statement(words[1:], _with_preposition(answer))
    if _COUNT.match(text):
        noun, clause = _noun_and_clause(words[2:])
        return _statement(clause, f"{answer} {' '.join(noun)}") if clause else None
    if _WHO.match(text) and words[1].lower() not in _DO | AUXILIARIES:
        noun, clause = _noun_and_clause(words[1:])
        is_noun = words[1].lower() in _KIND or len(noun) < 3  # noqa: PLR2004 -- `what year did`
        has_noun = words[0].lower() == "what" and clause and is_noun
        return _statement(clause, answer) if has_noun else _sentence([answer, *words[1:]])
    if _WHO.match(text):
        return _statement(words[1:], answer)
    if _WHICH.match(text):
        _, clause = _noun_and_clause(words[1:])
        return _statement(clause, answer) if clause else None
    return None


def _noun_and_clause(words: list[str]) -> tuple[list[str], list[str]]:
    """Splits a question before its verb; both parts are empty if it has no known verb."""
    place = next(
        (i for i, w in enumerate(words[:_NOUN_WORDS]) if w.lower() in _DO | AUXILIARIES), 0
    )
    return words[:place], words[place:] if place else []


def _statement(words: list[str], answer: str) -> str:
    """Puts the subject of a clause before its verb, and inserts the answer."""
    verb, clause = words[0].lower(), words[1:]
    if verb not in AUXILIARIES | _DO or not clause:
        return _sentence([answer, *words])
    if verb in _DO:
        return _sentence([*clause, answer])
    place = next((i for i, w in enumerate(clause) if _PARTICIPLE.fullmatch(w)), len(clause))
    if not place:
        return _sentence([answer, verb, *clause])
    return _sentence([*clause[:place], verb, *clause[place:], answer])


def _with_preposition(answer: str) -> str:
    return answer if answer.split(maxsplit=1)[0].lower() in _PREPOSITION else f"in {answer}"


def _sentence(parts: list[str]) -> str:
    text = " ".join(parts).strip(" .")
    return f"{text[:1].upper()}{text[1:]}."
