"""Tests of lists and counts over all passages: parsing and equality of items."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from one_example import drive
from rich.console import Console

from leporello.api import ask
from leporello.cli.display.answer import show_answer
from leporello.combiners import Count, Union
from leporello.combiners.lists.parse import items, key
from leporello.core.calls.answers import Item, items_of
from leporello.core.records import Document, Example, Hit, Output, Read, Span

TEXT = "The Marigold came in May. Rain fell. The Persephone lent pumps to the Marigold."
DOCUMENT = Document("d", TEXT)
EXAMPLE = Example("e", DOCUMENT, question="Which ships?", instruction="Answer.")
WHERE = ((0, 25), (26, 36), (37, len(TEXT)))


def _run(
    combiner: Any, outputs: Sequence[str], where: Sequence[tuple[int, int]] = WHERE
) -> tuple[Any, list[Read]]:
    hits = [Hit(DOCUMENT.chunk(*span), 1.0) for span in where]
    texts = iter(outputs)
    value, rounds = drive(combiner, lambda _: Output(next(texts)), EXAMPLE, hits[::-1])
    assert len(rounds) <= 1
    return value, [read for reads in rounds for read in reads]


@pytest.mark.parametrize(
    "text",
    [
        "- Ada\n- Bo\n- Cy", "* Ada\n* Bo\n* Cy", "1. Ada\n2. Bo\n3. Cy.", "1) Ada 2) Bo 3) Cy",
        "Ada, Bo and Cy", "Ada, Bo, and Cy.", "Ada; Bo; Cy", "Ada\nBo\nCy\n",
        "```\n- Ada\n- Bo\n- Cy\n```",
        "The names are: Ada, Bo, Cy", "Here are the names:\n\n• **Ada**\n• \"Bo\"\n• Cy",
    ],
)  # fmt: skip
def test_a_list_is_parsed_in_the_formats_that_models_write(text: str) -> None:
    assert items(text) == ["Ada", "Bo", "Cy"]


def test_a_single_item_is_not_divided() -> None:
    """`and` divides a list only after a comma; items with bullets and numbers keep commas."""
    assert items("Romeo and Juliet") == ["Romeo and Juliet"]
    assert items("- Paris, France\n- Oslo") == ["Paris, France", "Oslo"]
    assert items("1,000 and 2,000") == ["1,000 and 2,000"]
    assert items("猫、犬、鳥") == ["猫", "犬", "鳥"]


def test_items_are_compared_without_case_punctuation_and_articles() -> None:
    """Signs, decimals and minus remain, since they distinguish items."""
    first, second = (
        ("The Marigold", "Jean-Luc", "U.S.A.", "ﬁn"),
        ("marigold.", "Jean Luc", "USA", "Fin"),
    )
    assert [*map(key, first)] == [*map(key, second)]
    different = ["C", "C#", "C++", "5", "-5", "5%", "1.5", "15"]
    assert len(set(map(key, different))) == len(different)


def test_a_union_contains_each_item_once_with_its_passages() -> None:
    value, reads = _run(Union(), ["- the Marigold", "none", "Persephone, Marigold"])
    assert value["answer"] == "the Marigold, Persephone"
    assert items_of(value) == (
        Item("the Marigold", (Span(0, 25), Span(37, len(TEXT)))),
        Item("Persephone", (Span(37, len(TEXT)),)),
    )
    assert [read.passages for read in reads] == [(DOCUMENT.chunk(*span),) for span in WHERE]
    assert {read.instruction for read in reads} == {Union().instruction}


def test_a_union_can_be_limited_to_items_in_their_passages() -> None:
    outputs = ["Marigold, Argo", "rain", "Persephone, Marigold, pumps"]

    def answer(**parameters: Any) -> str:
        return str(_run(Union(**parameters), outputs)[0]["answer"])

    assert answer(verbatim=True) == "Marigold, rain, Persephone, pumps"
    assert answer() == "Marigold, Argo, rain, Persephone, pumps"


def test_a_count_is_the_number_of_different_items() -> None:
    value, _ = _run(Count(), ["- the Marigold", "none", "Persephone, Marigold"])
    assert value["answer"] == "2"
    assert [item.text for item in items_of(value) or ()] == ["the Marigold", "Persephone"]


def test_a_count_of_passages_counts_outputs_of_the_first_choice() -> None:
    value, reads = _run(Count(unit="passages"), ["yes", "no", "Yes, one does."])
    assert value["answer"] == "2"
    assert {read.choices for read in reads} == {("yes", "no")}
    assert [item.passages for item in items_of(value) or ()] == [(Span(0, 25),), (Span(37, 79),)]


@pytest.mark.parametrize("combiner", [Union(), Count(), Count(unit="passages")])
def test_without_passages_the_answer_is_empty_without_a_read(combiner: Any) -> None:
    value, reads = _run(combiner, [], [])
    assert (value["answer"] in ("", "0"), value["items"], reads) == (True, [], [])


@pytest.mark.parametrize(
    "raw",
    ["text", None, {"items": 3}, {"items": [1]}, {"items": [{"text": "a"}]},
     {"items": [{"text": "a", "passages": [[1]]}]},
     {"items": [{"text": "a", "passages": [[5, 2]]}]}],
)  # fmt: skip
def test_values_with_invalid_items_have_no_items(raw: Any) -> None:
    """A combiner of a plug-in may return any value."""
    assert items_of(raw) is None


def test_ask_shows_each_item_with_its_passages(tmp_path: Path) -> None:
    reader = '{class: FixedAnswer, answer: "- Argo\\n- Marigold"}'
    stages = f"chunker: {{class: Sentences, size: 12}}, reader: {reader}, combiner: Union"
    config, file = tmp_path / "mine.yaml", tmp_path / "log.txt"
    config.write_text(f"pipelines: {{list: {{{stages}}}}}", encoding="utf-8")
    file.write_text(f"In May the Argo sank. {TEXT}", encoding="utf-8")
    answer = ask(file, "Which ships?", pipeline="list", config=[config], cached=False)
    assert answer.text == "Argo, Marigold"
    assert [item.text for item in answer.items or ()] == ["Argo", "Marigold"]
    with Console(width=200, file=(tmp_path / "shown").open("w+", encoding="utf-8")) as console:
        show_answer(console, answer)
    output = (tmp_path / "shown").read_text(encoding="utf-8")
    assert "1. Argo\n" in output
    assert "lent pumps to the Marigold" in output
    assert "(score" not in output
