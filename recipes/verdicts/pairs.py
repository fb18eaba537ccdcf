"""Claims and questions for yes or no, each with a piece of text and what it says to them."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leporello.combiners.deciding.verify import claim, negated
from leporello.text.english.clauses import nearest
from leporello.text.sentences import sentence_spans
from leporello.text.tokens import terms
from recipes.answers.questions import Question

_NAME = re.compile(r"[A-Z][\w'’-]+(?: (?:(?:of|the|and) )?[A-Z][\w'’-]+)*|\d[\d,.]*\w*")
_LONGEST = 8  # words of an answer that a claim is made of
_TRIED = 12  # passages of the same document that are looked at for one that does not say it
_WIDTHS = (0, 0, 40, 100)  # words of a premise at least, one drawn for each
_WORDS = 100  # of the piece of a passage that a question for yes or no is read with
_DENIED = 0.2  # share of claims that are denied
_SILENT = 0.1  # share of questions for yes or no whose text says nothing to them
_TAKEN = 0.7  # chance that names of the text itself are taken for wrong answers: alone they tell


@dataclass(frozen=True)
class Pair:
    """A claim, or a question for yes or no, with a text.

    Attributes:
        source: Name of the data set.
        document: Document that the text is of.
        asked: The claim or the question.
        text: The text.
        label: `null` where the text says nothing to it, `yes` where it says so, `no` where it says
            the contrary.
    """

    source: str
    document: str
    asked: str
    text: str
    label: str


def asked_pairs(questions: Sequence[Question], seed: int) -> Iterator[Pair]:
    """Yields questions for yes or no; one in ten with a text that says nothing to it.

    Args:
        questions: Questions of all kinds.
        seed: Seed of what is drawn.
    """
    random_ = random.Random(seed)
    known = [question for question in questions if question.yes_no]
    for question in known:
        other = random_.choice(known)
        label: str = question.yes_no or ""
        passage = question.passage
        if random_.random() < _SILENT and other.document != question.document:
            passage, label = other.passage, "null"
        piece = _nearest_piece(question.text, passage)
        yield Pair(question.source, question.document, question.text, piece, label)


def claimed_pairs(questions: Sequence[Question], seed: int) -> Iterator[Pair]:
    """Yields claims made of questions with right and wrong answers.

    Args:
        questions: Questions of all kinds, in the order in which claims are made of them.
        seed: Seed of what is drawn.
    """
    random_ = random.Random(seed)
    passages: dict[str, dict[str, None]] = defaultdict(dict)
    answers: dict[str, list[str]] = defaultdict(list)
    for question in questions:
        passages[question.document][question.passage] = None
        answers[question.document] += [question.passage[s:e] for s, e in question.answers[:1]]
    for question in questions:
        if question.answers:
            others = [*passages[question.document]]
            yield from _claimed(question, others, answers[question.document], random_)


def _claimed(
    question: Question, passages: Sequence[str], answers: Sequence[str], random_: random.Random
) -> Iterator[Pair]:
    start, end = question.answers[0]
    gold = question.passage[start:end]
    if len(gold.split()) > _LONGEST:
        return
    label = random_.choices(("yes", "no", "null"), (4, 4, 2))[0]
    text = _piece_around(question.passage, start, end, random_.choice(_WIDTHS))
    said = gold
    turned = random_.random() < _DENIED
    if label == "null":
        text = _silent(question.text, gold, passages, question.passage, random_)
    elif (label == "no") != turned:
        said = _wrong(gold, question.text, text, answers, random_)
    made = claim(question.text, said) if said and text else None
    if made and turned and label != "null":
        made = negated(made)
    if made:
        yield Pair(question.source, question.document, made, text, label)


def _wrong(
    gold: str, question: str, text: str, answers: Sequence[str], random_: random.Random
) -> str:
    """Returns another answer of the same kind, of the text itself where it has one; or nothing."""
    taken = {*terms(gold), *terms(question)}
    for source in ([m.group() for m in _NAME.finditer(text)], answers):
        fitting = [
            other
            for other in source
            if _kind(other) == _kind(gold)
            and taken.isdisjoint(terms(other))
            and abs(len(other.split()) - len(gold.split())) < 3  # noqa: PLR2004 -- about as long
        ]
        if fitting and random_.random() < _TAKEN:
            return random_.choice(fitting)
    return ""


def _kind(answer: str) -> str:
    return "number" if answer[:1].isdigit() else "name" if answer[:1].isupper() else "words"


def _silent(
    question: str, gold: str, passages: Sequence[str], own: str, random_: random.Random
) -> str:
    """Returns a piece of another passage that is near to the question and lacks the answer."""
    others = [p for p in passages if p != own and gold.lower() not in p.lower()]
    tried = random_.sample(others, min(_TRIED, len(others)))
    return _nearest_piece(question, tried[nearest(question, tried, 1)[0]]) if tried else ""


def _piece_around(text: str, start: int, end: int, words: int) -> str:
    """Returns the sentences of a place, and as many neighbours as the number of words wants."""
    spans = sentence_spans(text)
    inside = [i for i, (first, last) in enumerate(spans) if first < end and start < last]
    low, high = (inside[0], inside[-1]) if inside else (0, len(spans) - 1)
    while len(text[spans[low][0] : spans[high][1]].split()) < words:
        if high + 1 < len(spans):
            high += 1
        elif low:
            low -= 1
        else:
            break
    return text[spans[low][0] : spans[high][1]].strip()


def _nearest_piece(question: str, text: str) -> str:
    """Returns the stretch of sentences that is nearest to a question."""
    pieces = [""]
    for start, end in sentence_spans(text):
        if len(f"{pieces[-1]} {text[start:end]}".split()) > _WORDS and pieces[-1]:
            pieces.append("")
        pieces[-1] = f"{pieces[-1]} {text[start:end].strip()}".strip()
    return pieces[nearest(question, pieces, 1)[0]]
