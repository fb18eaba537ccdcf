"""Makes training pairs: claims or yes/no questions with a text and the text's verdict."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leporello.text.english.terms import nearest
from leporello.text.sentences import sentence_spans
from leporello.text.tokens import terms
from recipes.answers.questions import Question
from recipes.verdicts.claims import AUXILIARIES, claim

_NAME = re.compile(r"[A-Z][\w'’-]+(?: (?:(?:of|the|and) )?[A-Z][\w'’-]+)*|\d[\d,.]*\w*")
_LONGEST = 8  # maximum number of words of an answer that becomes a claim
_TRIED = 12  # passages of the document among which one without the answer is searched
_WIDTHS = (0, 0, 40, 100)  # minimum numbers of words of a premise, drawn at random
_WORDS = 100  # of the piece of a passage for a yes/no question
_NEGATED = 0.2  # share of negated claims
_SILENT = 0.1  # share of yes/no questions with a text that does not answer them
_FROM_TEXT = 0.7  # probability of using wrong answers from a source, so that no source is a clue


@dataclass(frozen=True)
class Pair:
    """A claim or yes/no question with a text."""

    source: str  # name of the data set
    document: str  # document of the text
    claim: str  # claim or yes/no question
    text: str  # text to read
    label: str  # `yes` if the text confirms it, `no` if the text contradicts it, otherwise `null`


def asked_pairs(questions: Sequence[Question], seed: int) -> Iterator[Pair]:
    """Yields yes/no questions; about one in ten has a text that does not answer it."""
    random_ = random.Random(seed)
    yes_no_questions = [question for question in questions if question.yes_no]
    for question in yes_no_questions:
        unrelated = random_.choice(yes_no_questions)
        label: str = question.yes_no or ""
        passage = question.passage
        if random_.random() < _SILENT and unrelated.document != question.document:
            passage, label = unrelated.passage, "null"
        piece = _nearest_piece(question.text, passage)
        yield Pair(question.source, question.document, question.text, piece, label)


def claimed_pairs(questions: Sequence[Question], seed: int) -> Iterator[Pair]:
    """Yields claims from questions with right and wrong answers."""
    random_ = random.Random(seed)
    passages: dict[str, dict[str, None]] = defaultdict(dict)
    answers: dict[str, list[str]] = defaultdict(list)
    for question in questions:
        passages[question.document][question.passage] = None
        answers[question.document] += [question.passage[s:e] for s, e in question.answers[:1]]
    for question in questions:
        if question.answers:
            in_document = [*passages[question.document]]
            yield from _claim_of(question, in_document, answers[question.document], random_)


def _claim_of(
    question: Question, passages: Sequence[str], answers: Sequence[str], random_: random.Random
) -> Iterator[Pair]:
    start, end = question.answers[0]
    gold = question.passage[start:end]
    if len(gold.split()) > _LONGEST:
        return
    label = random_.choices(("yes", "no", "null"), (4, 4, 2))[0]
    text = _piece_around(question.passage, start, end, random_.choice(_WIDTHS))
    answer = gold
    is_negated = random_.random() < _NEGATED
    if label == "null":
        text = _silent(question.text, gold, passages, question.passage, random_)
    elif (label == "no") != is_negated:
        answer = _wrong(gold, question.text, text, answers, random_)
    statement = claim(question.text, answer) if answer and text else None
    if statement and is_negated and label != "null":
        statement = _negated(statement)
    if statement:
        yield Pair(question.source, question.document, statement, text, label)


def _negated(statement: str) -> str | None:
    """Negates the first verb of a statement; returns None if it has no verb that can be negated."""
    words = statement.split()
    place = next((i for i, w in enumerate(words) if i and w in AUXILIARIES), None)
    return None if place is None else " ".join([*words[: place + 1], "not", *words[place + 1 :]])


def _wrong(
    gold: str, question: str, text: str, answers: Sequence[str], random_: random.Random
) -> str:
    """Returns a wrong answer of the same kind, preferably from the text; empty without one."""
    excluded = {*terms(gold), *terms(question)}
    for source in ([m.group() for m in _NAME.finditer(text)], answers):
        candidates = [
            candidate
            for candidate in source
            if _kind(candidate) == _kind(gold)
            and excluded.isdisjoint(terms(candidate))
            and abs(len(candidate.split()) - len(gold.split())) < 3  # noqa: PLR2004 -- about as long
        ]
        if candidates and random_.random() < _FROM_TEXT:
            return random_.choice(candidates)
    return ""


def _kind(answer: str) -> str:
    return "number" if answer[:1].isdigit() else "name" if answer[:1].isupper() else "words"


def _silent(
    question: str, gold: str, passages: Sequence[str], positive: str, random_: random.Random
) -> str:
    """Returns a piece of another passage that is similar to the question and lacks the answer."""
    others = [p for p in passages if p != positive and gold.lower() not in p.lower()]
    sample = random_.sample(others, min(_TRIED, len(others)))
    return _nearest_piece(question, sample[nearest(question, sample, 1)[0]]) if sample else ""


def _piece_around(text: str, start: int, end: int, words: int) -> str:
    """Returns the sentences of a span, and neighbours up to a minimum number of words."""
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
    """Returns the piece of a text, in complete sentences, that is most similar to a question."""
    pieces = [""]
    for start, end in sentence_spans(text):
        if len(f"{pieces[-1]} {text[start:end]}".split()) > _WORDS and pieces[-1]:
            pieces.append("")
        pieces[-1] = f"{pieces[-1]} {text[start:end].strip()}".strip()
    return pieces[nearest(question, pieces, 1)[0]]
