"""Tests that LineByLine returns as many lines as the document has, in the same places."""

from collections.abc import Callable, Sequence
from typing import Any

import one_example
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_example import texts_of

from leporello import Document, Example, Hit, Output, Read
from leporello.chunkers import FixedTokens, Lines
from leporello.combiners import LineByLine
from leporello.core.calls.stage_calls import divide
from leporello.core.notes import collect_notes

Answer = Callable[[str], str]

PIECES = (
    "a", "bb c", "- d", "  e", " ", "\n", "\r\n", "\r", "\u2028", "\x0b", "—x", "-", "-- f", "猫",
)  # fmt: skip

LINES = Lines()


def shout(text: str) -> str:
    return text.upper()


def flat(text: str) -> str:
    """Returns the text in capitals without line breaks, like T5."""
    return " ".join(text.upper().split())


def drive(
    combiner: LineByLine, document: Document, hits: Sequence[Hit], answer: Answer = shout
) -> tuple[str, list[list[str]], list[str]]:
    example = Example("e", document, instruction="Translate.")

    def output(read: Read) -> Output:
        assert read.instruction == "Translate."
        return Output(answer("".join(texts_of(read))))

    with collect_notes() as notes:
        value, rounds = one_example.drive(combiner, output, example, hits)
    return value, [["".join(texts_of(read)) for read in reads] for reads in rounds], notes


def chunked(text: str, chunker: Any = LINES) -> tuple[Document, list[Hit]]:
    document = Document("d", text)
    return document, [Hit(chunk, 0.0) for chunk in divide(chunker, document)]


def translated(text: str, answer: Answer = shout, chunker: Any = LINES) -> str:
    return drive(LineByLine(), *chunked(text, chunker), answer)[0]


@pytest.mark.parametrize("answer", [shout, flat])
@pytest.mark.parametrize("chunker", [Lines(), Lines(2), Lines(1), FixedTokens(4, 2)])
@settings(max_examples=40)
@given(text=st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_every_line_stays_in_its_place(chunker: Any, answer: Answer, text: str) -> None:
    value = translated(text, answer, chunker=chunker)
    lines, originals = value.splitlines(keepends=True), text.splitlines(keepends=True)
    for line, before in zip(lines, originals, strict=True):
        assert "".join(line.split()) == "".join(before.upper().split())
        assert line[len(line.rstrip()) :] == before[len(before.rstrip()) :]
        assert len(line) - len(line.lstrip()) == len(before) - len(before.lstrip())
    assert [not line.strip() for line in lines] == [not line.strip() for line in originals]


def test_the_parts_of_a_divided_line_are_joined() -> None:
    assert translated("a b c d e\nf\n", chunker=Lines(2)) == "A B C D E\nF\n"
    assert translated("你好世界\n", lambda text: f"<{text}>", chunker=Lines(2)) == "<你好><世界>\n"
    value = translated("a\nb\n", lambda text: f"{text}\n\n {text}!")
    assert value == "a a!\nb b!\n"  # also the parts of an output


def test_dashes_and_indentation_are_restored_and_not_read() -> None:
    document, hits = chunked("- Who?\n  – Me.\n-- No\n- 5\n-\n---\n")
    for answer in (shout, lambda line: f"- {line.upper()}", flat):
        value, rounds, _ = drive(LineByLine(), document, hits, answer)
        assert value.splitlines()[:4] == ["- WHO?", "  – ME.", "-- NO", "- 5"]
        assert rounds[0][:4] == ["Who?", "Me.", "No", "5"]


def test_lines_that_were_not_selected_are_empty_with_a_note() -> None:
    """An untranslated line could be mistaken for a translation."""
    document = Document("d", "a a\nb b\nc c\n")
    chunks = divide(Lines(2), document)
    hits = [Hit(chunks[2], 1.0), Hit(chunks[0], 0.5)]
    value, rounds, notes = drive(LineByLine(), document, hits)
    assert (value, rounds) == ("A A\n\nC C\n", [["a a", "c c"]])
    assert notes == ["lines that were not selected are not translated"]
    assert drive(LineByLine(), document, [])[:2] == ("\n\n\n", [])


def test_joined_answers_may_have_any_number_of_lines() -> None:
    document, hits = chunked("- a b\n- c\n\nd\n", Lines(5))
    value, rounds, notes = drive(LineByLine("joined"), document, hits, flat)
    assert (value, rounds, notes) == ("- A B - C\nD", [["- a b\n- c", "d"]], [])
    assert drive(LineByLine("joined"), document, [])[:2] == ("", [])


def test_the_targets_of_a_read_are_the_lines_of_the_reference_in_the_same_places() -> None:
    document = Document("d", "Hello.\n- Who is it?\n\nIt is me.")
    reference = "Hallo.\n- Wer da?\n\nIch."
    reads = [Read((document.chunk(0, 19),)), Read((document.chunk(21, 30),))]
    targets = LineByLine().supervise(Example("e", document, references=(reference,)), reads)
    assert targets == [("Hallo.\nWer da?",), ("Ich.",)]
    part = [Read((document.chunk(21, 26),))]
    assert LineByLine().supervise(Example("e", document, references=(reference,)), part) == [None]
    assert LineByLine().supervise(Example("e", document, references=("Hallo.",)), reads) == [
        None,
        None,
    ]
