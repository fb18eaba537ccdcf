"""An answer whose sentences are checked against what was read for it."""

from __future__ import annotations

import re
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
from leporello.text.sentences import sentence_spans

CHECK = "Does the text say so? Answer with one of the choices."
_FEW = 8  # words of an answer that is no statement of its own

_WHO = re.compile(r"(?:who|whom|what)\b", re.I)
_WHICH = re.compile(r"(?:in |on |at |by |from |to |of |for |with )?(?:which|what)\b", re.I)
_PLACE = re.compile(r"(?:when|where)\b", re.I)
_COUNT = re.compile(r"how (?:many|much)\b", re.I)
_DO = frozenset({"do", "does", "did"})
_BE = frozenset((
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
_NAMED = 6  # words before the verb that a thing asked for has at most


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


def claim(question: str, answer: str) -> str | None:  # noqa: PLR0911 -- a return a kind of question
    """Returns the statement that an answer makes of a question; None where no rule fits.

    Args:
        question: Question in English.
        answer: A few words that answer it, rightly or wrongly.
    """
    words = question.strip().rstrip("?. ").split()
    text = " ".join(words)
    if len(words) < 3 or "or" in words:  # noqa: PLR2004 -- a question word, a verb, its object
        return None
    if _PLACE.match(text):
        return _told(words[1:], _placed(answer))
    if _COUNT.match(text):
        thing, rest = _named(words[2:])
        return _told(rest, f"{answer} {' '.join(thing)}") if rest else None
    if _WHO.match(text) and words[1].lower() not in _DO | _BE:
        thing, rest = _named(words[1:])
        kind = words[1].lower() in _KIND or len(thing) < 3  # noqa: PLR2004 -- `what year did`
        asks_thing = words[0].lower() == "what" and rest and kind
        return _told(rest, answer) if asks_thing else _sentence([answer, *words[1:]])
    if _WHO.match(text):
        return _told(words[1:], answer)
    if _WHICH.match(text):
        _, rest = _named(words[1:])
        return _told(rest, answer) if rest else None
    return None


def denied(statement: str) -> str | None:
    """Returns the contrary of a statement, its first verb denied; None if none can be.

    Args:
        statement: Statement that `claim` made.
    """
    words = statement.split()
    place = next((i for i, w in enumerate(words) if i and w in _BE), None)
    return None if place is None else " ".join([*words[: place + 1], "not", *words[place + 1 :]])


def _named(words: list[str]) -> tuple[list[str], list[str]]:
    """Returns what is asked for, and the rest from its verb on; empty if that is not seen."""
    place = next((i for i, w in enumerate(words[:_NAMED]) if w.lower() in _DO | _BE), 0)
    return words[:place], words[place:] if place else []


def _told(words: list[str], answer: str) -> str:
    """Returns a verb with its subject turned round, and the answer where it belongs."""
    verb, rest = words[0].lower(), words[1:]
    if verb not in _BE | _DO or not rest:
        return _sentence([answer, *words])
    if verb in _DO:
        return _sentence([*rest, answer])
    place = next((i for i, w in enumerate(rest) if _PARTICIPLE.fullmatch(w)), len(rest))
    if not place:
        return _sentence([answer, verb, *rest])
    return _sentence([*rest[:place], verb, *rest[place:], answer])


def _placed(answer: str) -> str:
    return answer if answer.split(maxsplit=1)[0].lower() in _PREPOSITION else f"in {answer}"


def _sentence(parts: list[str]) -> str:
    text = " ".join(parts).strip(" .")
    return f"{text[:1].upper()}{text[1:]}."
