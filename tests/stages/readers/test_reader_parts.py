"""Tests of readers without a network: templates, parameters, baselines, and weights of words."""

import math
from collections.abc import Sequence
from typing import Any

import pytest

from leporello.core.calls.stage_calls import read as checked_read
from leporello.core.records import Document, Output, Read
from leporello.readers import BestSentence, CausalLM, Lead, Polarity, Precedence, Presence, Seq2Seq
from leporello.readers.prompting.template import Template
from leporello.readers.word_evidence import opinion_words

STORY = (
    "The miller had three sons, and when he died he left them a mill, a donkey and a cat. "
    "The eldest took the mill, the second the donkey, and the youngest had nothing but the cat. "
    "“Why,” said the cat, “give me a pair of boots and you shall see!” 猫は長靴を履いた。"
)
DOCUMENT = Document("story", STORY)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"prompt": "{context} {passage}"}, "unknown field {passage}; allowed: {question}, {con"),
        ({"prompt": "{context} {}"}, "unknown field {}"),
        ({"prompt": "{context} {question.x}"}, "unknown field {question.x}"),
        ({"prompt": "{context:>9}"}, "takes no format"),
        ({"prompt": "{context!r}"}, "takes no format"),
        ({"prompt": "{context} {question"}, "expected '}'"),
        ({"prompt": "{context} }"}, "literal brace"),
        ({"prompt": "{question}"}, "has no {context}"),
        ({"min_new_tokens": 9, "max_new_tokens": 8}, "min_new_tokens"),
        ({"stop": ("",)}, "stop contains an empty string"),
        ({"repetition_penalty": 0.0}, "repetition_penalty"),
        ({"chat": False, "system": "Be brief."}, "system needs a chat template"),
    ],
)
def test_invalid_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    is_common = not parameters.keys() & {"stop", "repetition_penalty", "chat"}
    for kind in (CausalLM, Seq2Seq) if is_common else (CausalLM,):
        with pytest.raises(ValueError, match=message):
            kind(model="none", **parameters)


def test_lines_of_a_template_with_only_empty_fields_are_removed() -> None:
    template = Template("{instruction}\n\n{title}\n\n\nQ: {question}\n{choices}\n\n{context}\n\nA:")
    passages = ("one {x}", "", "two\n\n\nlines")
    assert template.render(Read(passages)) == "one {x}\n\ntwo\n\n\nlines\n\nA:"
    prompt = template.render(Read(passages[:1], "why?", "Do.", ("yes", "no"), title="T"))
    assert prompt == "Do.\n\nT\n\n\nQ: why?\n(A) yes\n(B) no\n\none {x}\n\nA:"
    assert template.render(Read((" ",), "why?")) == "Q: why?\n\nA:"
    assert Template("{{}}\n\n\n{context}\n").render(Read(("c",))) == "{}\n\n\nc\n"
    many = Template("{choices}{context}").render(Read((), choices=("x",) * 28))
    assert many.endswith("(Z) x\n(AA) x\n(AB) x")


def test_lead_answers_with_the_first_words_or_the_first_choice() -> None:
    chunk = DOCUMENT.chunk(0, 9)
    read = Read((chunk, "  had  three\nsons 猫は。"))
    assert Lead(words=4).read([read]) == [
        Output("The mille\n\n  had  three", read=(chunk.span,), cut=9)
    ]
    assert Lead().read([Read(("a b",), choices=("x", "y")), Read(())])[0].text == "x"
    assert Lead().read([Read(())])[0].text == ""
    assert Lead().count(["a b  c", "", "猫は"]) == [3, 0, 2]


def test_best_sentence_answers_with_the_sentence_nearest_to_the_question() -> None:
    chunk = DOCUMENT.chunk(0, len(STORY))
    read = Read((chunk, "Dogs bark."), "Who had nothing but the cat?")
    output = BestSentence().read([read])[0]
    assert output.text.startswith("The eldest took the mill")
    assert output.read == (chunk.span,)
    assert BestSentence().read([Read((chunk,))])[0].text.startswith("The miller had three sons")
    assert BestSentence().read([Read(())])[0].text == ""
    choice = Read((chunk,), "What did the cat ask for?", choices=("a hat", "a pair of boots"))
    assert BestSentence().read([choice])[0].text == "a pair of boots"
    assert BestSentence().read([Read((), "Why?", choices=("a", "b"))])[0].text == "a"


GOOD = "The staff were friendly and the room was lovely, clean and quiet. I highly recommend it."
BAD = "A boring, predictable mess: the plot makes no sense and the jokes are not funny at all."
BOOK = Document("book", "Tom ran. " * 100)
FIRST = "The story begins in a small town, where a young man named Tom lives with his mother."
LAST = "In the end he kills the guard, reveals the truth and the story ends with his escape."


def test_good_and_bad_opinions_are_recognised() -> None:
    reads = [Read((text,), choices=("good", "bad")) for text in (GOOD, BAD)]
    outputs = checked_read(Polarity(), reads)
    assert [output.text for output in outputs] == ["good", "bad"]
    assert all(sum(map(math.exp, output.scores)) == pytest.approx(1) for output in outputs)


def test_a_negation_changes_the_words_after_it() -> None:
    assert opinion_words("It is n't very good, really.") == {
        "it", "isn't", "not very", "not good", "really",
    }  # fmt: skip
    reader = Polarity()
    assert reader.log_odds("This is not good.") < 0 < reader.log_odds("This is good.")


@pytest.mark.parametrize(
    ("places", "label"),
    [(range(0, 900, 45), "Hero"), (range(0, 45, 9), "Villain/Antagonist"), ([], "Hero")],
)
def test_a_person_in_all_parts_of_a_book_is_the_hero(places: Sequence[int], label: str) -> None:
    chunks = tuple(BOOK.chunk(place, place + 8) for place in places)
    read = Read(chunks, "Tom", choices=("Hero", "Villain/Antagonist"))
    [output] = checked_read(Presence(), [read])
    assert output.text == label


def test_a_beginning_precedes_an_end() -> None:
    pairs = [(FIRST, LAST), (LAST, FIRST)]
    reads = [Read(pair, pair=pair) for pair in pairs]
    right, wrong = (output.score or 0.0 for output in checked_read(Precedence(), reads))
    assert right > 0.5 > wrong
    assert right + wrong == pytest.approx(1)


@pytest.mark.parametrize(
    ("reader", "message"),
    [(Polarity(), "two choices"), (Presence(), "two choices"), (Precedence(), "pairs of texts")],
)
def test_missing_choices_and_pairs_are_reported(reader: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        reader.read([Read((GOOD,))])
