"""Tests of readers without a model: templates, parameters and baselines."""

from typing import Any

import pytest

from leporello.core.records import Document, Output, Read
from leporello.readers import BestSentence, CausalLM, Lead, Seq2Seq
from leporello.readers.prompting.template import Template

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
