"""Tests of normalising answers into the form that metrics require."""

import string
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scored import score_of

from leporello.core.records import Document, Example, Span
from leporello.metrics import METRICS
from leporello.tasks import Muld, Scrolls, ZeroScrolls, muld, scrolls
from leporello.text import answers

CHOICES = ("a fox", "The gate", "C", "a dog, or two")
PARTS = tuple(Span(n, n + 1) for n in range(4))
DOCUMENT = Document("d", "abcd", parts=PARTS)


def example(*references: str, choices: tuple[str, ...] = ()) -> Example:
    return Example("x", DOCUMENT, choices=choices, references=references)


# Tasks that normalise answers, with gold answers of an example.
TASKS: list[tuple[Any, Example]] = [
    (Scrolls("qasper"), example("Unanswerable", "No", "a fox, or unanswerable ones")),
    *((Scrolls("quality"), example(choice, choices=CHOICES)) for choice in CHOICES),
    *(
        (Scrolls("contract_nli"), example(label, choices=scrolls.LABELS))
        for label in scrolls.LABELS
    ),
    (ZeroScrolls("qasper"), example("Unanswerable", "yes")),
    (ZeroScrolls("musique"), example("Unanswerable")),
    *((ZeroScrolls("quality"), example(letter, choices=CHOICES)) for letter in "ABCD"),
    *((ZeroScrolls("space_digest"), example(gold)) for gold in ("60%", "0%", "33.5%")),
    *((ZeroScrolls("book_sum_sort"), example(gold)) for gold in ("3, 1, 2, 4", "4 3 2 1")),
    *((Muld("character_id"), example(label, choices=muld.LABELS)) for label in muld.LABELS),
    (Muld("style_change"), example("[1, 1, 2, 1]")),
]
WORDS = [
    *"ABCDabcd", *CHOICES, *scrolls.LABELS, *muld.LABELS, "60%", "60 %", "percent", "12.5", "1.",
    "3, 1, 2, 4", "2)", "[1, 1, 2, 1]", "1 2", "(B)", "Answer:", "unanswerable", "not",
    "the question is", "cannot be answered", "\n", ", ", ".", "Summary", "-", "9" * 100,
]  # fmt: skip
TEXT = st.lists(st.sampled_from(WORDS) | st.text(string.printable, max_size=5), max_size=6).map(
    " ".join
)


@pytest.mark.parametrize(("task", "scored"), TASKS)
def test_gold_answers_stay_right(task: Any, scored: Example) -> None:
    metric = METRICS[task.metrics[0]]()
    for gold in scored.references:
        once = task.normalise(gold, scored.without_gold())
        assert score_of(metric, once, scored) == score_of(metric, gold, scored)
        assert task.normalise(once, scored.without_gold()) == once


@pytest.mark.integration
@pytest.mark.parametrize(("task", "scored"), TASKS)
@settings(max_examples=40)
@given(text=TEXT)
def test_normalising_never_loses_a_correct_answer(task: Any, scored: Example, text: str) -> None:
    """Normalising is also idempotent.

    The only exception is the text of an option that begins with an article, which the metric of
    letters reads as A.
    """
    metric = METRICS[task.metrics[0]]()
    normalised = task.normalise(text, scored.without_gold())
    assert task.normalise(normalised, scored.without_gold()) == normalised
    if answers._option(text, scored.choices) is None and score_of(metric, text, scored) == 100:
        assert score_of(metric, normalised, scored) == 100


@pytest.mark.parametrize("task", [Scrolls("gov_report"), ZeroScrolls("squality"), Muld("vlsp")])
def test_free_text_is_unchanged(task: Any) -> None:
    text = " B) 60 % Unanswerable\n"
    assert task.normalise(text, example()) == text


def check(
    normalise: Callable[[str], str], texts: dict[str, tuple[str, ...]], unchanged: tuple[str, ...]
) -> None:
    """Checks the texts that become each normalised form, and texts that stay as they are."""
    wanted = {text: form for form, of_form in texts.items() for text in of_form}
    wanted |= {text: text for text in unchanged}
    assert {text: normalise(text) for text in wanted} == wanted


def test_option_letters() -> None:
    texts = {
        "A": ("A good guess is B", "A fox"),
        "B": ("B", "the answer is b.", "b) The gate, I think", "the gate"),
        "C": ("(c)", "c"),
        "D": ("d.", "A dog, or two."),
    }
    unchanged = ("a fox sat there", "it was bad", "")
    check(lambda text: answers.option_letter(text, CHOICES), texts, unchanged)


def test_option_texts() -> None:
    gate = ("B", "Answer: B", "B. The gate is it")
    texts = {"The gate": gate, "a dog, or two": ("(d)",)}
    unchanged = ("C", "the GATE.", "A fox", "A cat", "a cat")
    check(lambda text: answers.option_text(text, CHOICES), texts, unchanged)
    assert answers.option_text("B", ()) == "B"


def test_labels() -> None:
    texts: dict[str, tuple[str, ...]] = {
        "Entailment": ("entailment.",),
        "Contradiction": ("This is a Contradiction, as",),
        "Not mentioned": ("It is not mentioned in the contract",),
    }
    unchanged = ("not a contradiction", "Entailment or contradiction", "neutral")
    check(lambda text: answers.label(text, scrolls.LABELS), texts, unchanged)
    villain = ("The villain", "Antagonist", "villain / antagonist")
    texts = {"Hero": ("hero",), "Villain/Antagonist": villain}
    check(lambda text: answers.label(text, muld.LABELS), texts, ("protagonist",))


def test_percentages() -> None:
    """The first number with a sign, or in words, or else the only number is the percentage."""
    texts = {
        "50%": ("Between 50% and 60%",),
        "60%": ("about 60 %", "60 percent of 50 reviews", "60", "roughly 60."),
        "33.5%": ("33.5 per cent",),
        "６０%": ("６０％",),
        "0%": ("0",),
    }
    check(answers.percentage, texts, ("0.6", "30 of 50", "450", "none"))


def test_permutations() -> None:
    texts = (
        "3,1 ,2,4", "Summary 3, Summary 1, Summary 2, Summary 4", "3-1-2-4", "3 > 1 > 2 > 4",
        "1. 3\n2. Summary 1\n3. 2\n4. 4", "The order of the 4 summaries is 3, 1, 2, 4.",
        "1, 2, 3, 4 reordered: 3, 1, 2, 4", "03 01 02 04",
    )  # fmt: skip
    unchanged = ("3, 1, 2", "0, 1, 2, 3", "")
    check(lambda text: answers.permutation(text, 4), {"3, 1, 2, 4": texts}, unchanged)
    assert answers.permutation("none", 0) == "none"


def test_authors() -> None:
    texts = {"[1, 1, 2]": ("1 1 2", "1,1,02", '["1", "1", "2"]'), "[1]": ("1", '["1"]')}
    unchanged = ("true", '{"paragraph-authors": [1, 2]}', "1, Ann", "[]", "[1.5]")
    check(answers.authors, texts, unchanged)


def test_unanswerable() -> None:
    texts = (
        "unanswerable.", "The question is unanswerable", '"Unanswerable"',
        "This question cannot be answered from the text.",
    )  # fmt: skip
    unchanged = ("unanswerable questions of SQuAD", "They cannot be answered by a machine", "No")
    check(
        lambda text: answers.unanswerable(text, "Unanswerable"), {"Unanswerable": texts}, unchanged
    )
