"""Lists and counts over all passages: what is an item, which are the same, what supports each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from one_example import drive
from rich.console import Console

from leporello.api import ask
from leporello.cli.display.answer import show_answer
from leporello.combiners import Count, Union
from leporello.combiners.lists.parse import items, key, similarity
from leporello.core.calls.answers import Item, items_of
from leporello.core.records import Document, Example, Hit, Output, Read, Span

TEXT = "The Marigold came in May. Rain fell. The Persephone lent pumps to the Marigold."
DOCUMENT = Document("d", TEXT)
EXAMPLE = Example("e", DOCUMENT, question="Which ships?", instruction="Answer.")
WHERE = ((0, 25), (26, 36), (37, len(TEXT)))


def _run(
    combiner: Any, said: Sequence[str], where: Sequence[tuple[int, int]] = WHERE
) -> tuple[Any, list[Read]]:
    """Returns what a combiner answers where a reader says this of the chunks, and the reads."""
    hits = [Hit(DOCUMENT.chunk(*span), 1.0) for span in where]
    texts = iter(said)
    value, rounds = drive(combiner, EXAMPLE, hits[::-1], lambda _: Output(next(texts)))
    assert len(rounds) <= 1
    return value, [read for reads in rounds for read in reads]


@pytest.mark.parametrize(
    "text",
    [
        "- Ada\n- Bo\n- Cy", "* Ada\n* Bo\n* Cy", "1. Ada\n2. Bo\n3. Cy.", "1) Ada 2) Bo 3) Cy",
        "Ada, Bo and Cy", "Ada, Bo, and Cy.", "Ada; Bo; Cy", '["Ada", "Bo", "Cy"]', "Ada\nBo\nCy\n",
        '```json\n["Ada", "Bo", "Cy"]\n```', "```\n- Ada\n- Bo\n- Cy\n```",
        "The names are: Ada, Bo, Cy", "Here are the names:\n\n• **Ada**\n• \"Bo\"\n• Cy",
    ],
)  # fmt: skip
def test_a_list_is_read_in_the_forms_that_models_write(text: str) -> None:
    """Bullets, numbers, commas, semicolons, JSON, with words in front."""
    assert items(text) == ["Ada", "Bo", "Cy"]


def test_one_item_is_not_taken_apart() -> None:
    """`and` parts a list only behind a comma; bullets keep their commas; so do numbers."""
    assert items("Romeo and Juliet") == ["Romeo and Juliet"]
    assert items("- Paris, France\n- Oslo") == ["Paris, France", "Oslo"]
    assert items("1,000 and 2,000") == ["1,000 and 2,000"]
    assert items("猫、犬、鳥") == ["猫", "犬", "鳥"]


def test_items_are_the_same_without_case_punctuation_and_articles() -> None:
    """What tells things apart stays: signs, decimals, minus."""
    same = [
        ("The Marigold", "marigold."),
        ("Jean-Luc", "Jean Luc"),
        ("U.S.A.", "USA"),
        ("ﬁn", "Fin"),
    ]
    assert all(key(one) == key(other) for one, other in same)
    others = ["C", "C#", "C++", "5", "-5", "5%", "1.5", "15"]
    assert len(set(map(key, others))) == len(others)
    assert similarity("persephone", "persephony") == similarity("persephony", "persephone") > 0.85


def test_a_union_has_each_item_once_with_its_passages() -> None:
    """In the order of the document, read under an instruction of its own."""
    value, reads = _run(Union(), ["- the Marigold", "none", "Persephone, Marigold"])
    assert value["answer"] == "the Marigold, Persephone"
    assert items_of(value) == (
        Item("the Marigold", (Span(0, 25), Span(37, len(TEXT)))),
        Item("Persephone", (Span(37, len(TEXT)),)),
    )
    assert [read.passages for read in reads] == [(DOCUMENT.chunk(*span),) for span in WHERE]
    assert {read.instruction for read in reads} == {Union().instruction}


def test_a_union_can_be_narrowed() -> None:
    """By support, by what stands in the text, by what does not count."""
    said = ["Marigold, Argo", "rain", "Persephone, Marigold, pumps"]

    def answer(**given: Any) -> str:
        return str(_run(Union(**given), said)[0]["answer"])

    assert answer(verbatim=True) == "Marigold, rain, Persephone, pumps"
    assert answer(support=2) == "Marigold"
    assert answer(verbatim=True, skip=("Rain!", "the pumps")) == "Marigold, Persephone"
    assert answer(order="support", separator="|") == "Marigold|Argo|rain|Persephone|pumps"


def test_items_that_are_spelt_alike_are_one_if_that_is_wanted() -> None:
    """The first spelling is kept."""
    said = ["Persephony", "", "Persephone"]
    assert _run(Union(), said)[0]["answer"] == "Persephony, Persephone"
    assert _run(Union(similar=0.85), said)[0]["answer"] == "Persephony"


def test_what_stands_where_passages_overlap_is_in_one_of_them() -> None:
    """The same place twice is no support; another place is."""
    where = ((0, 36), (0, 30), (26, len(TEXT)))
    value, _ = _run(Union(), ["Marigold"] * 3, where)
    [item] = items_of(value) or ()
    assert item.passages == (Span(0, 30), Span(26, len(TEXT)))


def test_a_count_is_of_different_items() -> None:
    """As the union has them."""
    value, _ = _run(Count(), ["- the Marigold", "none", "Persephone, Marigold"])
    assert value["answer"] == "2"
    assert [item.text for item in items_of(value) or ()] == ["the Marigold", "Persephone"]


def test_a_count_of_passages_asks_each_for_a_choice() -> None:
    """Those for which the first is chosen count, with words behind it too."""
    value, reads = _run(Count(unit="passages"), ["yes", "no", "Yes, one does."])
    assert value["answer"] == "2"
    assert {read.choices for read in reads} == {("yes", "no")}
    assert [item.passages for item in items_of(value) or ()] == [(Span(0, 25),), (Span(37, 79),)]


@pytest.mark.parametrize("combiner", [Union(), Count(), Count(unit="passages")])
def test_without_passages_there_is_nothing_and_nothing_is_read(combiner: Any) -> None:
    """An empty list, or 0."""
    value, reads = _run(combiner, [], [])
    assert (value["answer"] in ("", "0"), value["items"], reads) == (True, [], [])


def test_choices_that_begin_alike_are_refused() -> None:
    """A reader's words could be either."""
    with pytest.raises(ValueError, match="use choices with different first words"):
        Count(choices=("no", "no idea"))


@pytest.mark.parametrize(
    "raw",
    ["text", None, {"items": 3}, {"items": [1]}, {"items": [{"text": "a"}]},
     {"items": [{"text": "a", "passages": [[1]]}]},
     {"items": [{"text": "a", "passages": [[5, 2]]}]}],
)  # fmt: skip
def test_what_only_looks_like_items_is_none(raw: Any) -> None:
    """A combiner of one's own may return anything."""
    assert items_of(raw) is None


READER = """
import re
from dataclasses import dataclass
from leporello import Output

@dataclass(frozen=True)
class Capitals:
    def read(self, inputs):
        texts = [one.passages[0].text for one in inputs]
        return [Output("\\n".join(re.findall(r"(?<=the )[A-Z]\\w+", t)) or "none") for t in texts]

    def count(self, texts):
        return [len(text.split()) for text in texts]
"""


def test_ask_shows_each_item_with_its_passages(tmp_path: Path) -> None:
    """The prediction is the list; the passages of each item are shown in place of all of them."""
    (tmp_path / "capitals.py").write_text(READER, encoding="utf-8")
    pipeline: Mapping[str, Any] = {
        "chunker": {"class": "Sentences", "size": 12},
        "reader": {"class": "./capitals.py:Capitals"},
        "combiner": {"class": "Union"},
    }
    config = tmp_path / "mine.yaml"
    config.write_text(json.dumps({"pipelines": {"list": pipeline}}), encoding="utf-8")
    file = tmp_path / "log.txt"
    file.write_text(f"In May the Argo sank. {TEXT}", encoding="utf-8")
    found = ask(file, "Which ships?", pipeline="list", config=[config], cached=False)
    assert found.text == "Argo, Marigold"
    assert [item.text for item in found.items or ()] == ["Argo", "Marigold"]
    with Console(width=200, file=(tmp_path / "shown").open("w+", encoding="utf-8")) as console:
        show_answer(console, found)
    shown = (tmp_path / "shown").read_text(encoding="utf-8")
    assert "1. Argo\n" in shown
    assert "lent pumps to the Marigold" in shown
    assert "(score" not in shown
