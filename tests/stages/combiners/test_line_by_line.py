"""LineByLine: as many lines out as in, each in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import one_example
import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_example import texts_of

from leporello import Document, Example, Hit, Output, Read
from leporello.chunkers import FixedTokens, Lines
from leporello.combiners import LineByLine
from leporello.core.calls.stage_calls import divide
from leporello.core.notes import collect_notes
from leporello.loaders.files import load

Answer = Callable[[str], str]

PIECES = (
    "a", "bb c", "- d", "  e", " ", "\n", "\r\n", "\r", "\u2028", "\x0b", "—x", "-", "-- f", "猫",
)  # fmt: skip

CHUNKS, LINES = LineByLine(), Lines()


def shout(text: str) -> str:
    """Returns the text in capitals, line breaks and all."""
    return text.upper()


def flat(text: str) -> str:
    """Returns the text in capitals without line breaks, as T5 would."""
    return " ".join(text.upper().split())


def drive(
    combiner: LineByLine, document: Document, hits: Sequence[Hit], answer: Answer = shout
) -> tuple[str, list[list[str]], list[str]]:
    """Returns what is made of the answers, what each round read, and the notes."""
    example = Example("e", document, instruction="Translate.")

    def said(read: Read) -> Output:
        assert read.instruction == "Translate."
        return Output(answer("".join(texts_of(read))))

    with collect_notes() as notes:
        value, rounds = one_example.drive(combiner, example, hits, said)
    return value, [["".join(texts_of(read)) for read in reads] for reads in rounds], notes


def translated(
    text: str, answer: Answer = shout, combiner: LineByLine = CHUNKS, chunker: Any = LINES
) -> str:
    """Returns what becomes of a text whose chunks are all read."""
    document = Document("d", text)
    hits = [Hit(chunk, 0.0) for chunk in divide(chunker, document)]
    return drive(combiner, document, hits, answer)[0]


@pytest.mark.parametrize("answer", [shout, flat])
@pytest.mark.parametrize("unit", ["chunk", "line"])
@pytest.mark.parametrize("chunker", [Lines(), Lines(2), Lines(1), FixedTokens(4, 2)])
def test_every_line_stays_in_its_place(chunker: Any, unit: Any, answer: Answer) -> None:
    """A reader that shouts makes the text in capitals, to the character."""

    @given(text=st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
    def holds(text: str) -> None:
        said = translated(text, answer, LineByLine(unit), chunker)
        lines, given = said.splitlines(keepends=True), text.splitlines(keepends=True)
        for line, before in zip(lines, given, strict=True):
            assert "".join(line.split()) == "".join(before.upper().split())
            assert line[len(line.rstrip()) :] == before[len(before.rstrip()) :]
            assert len(line) - len(line.lstrip()) == len(before) - len(before.lstrip())
        assert [not line.strip() for line in lines] == [not line.strip() for line in given]

    holds()


def test_a_chunk_is_read_as_a_whole_first() -> None:
    """Its lines are context for each other; if the count is right there is no second round."""
    document = Document("d", "a\n\nb c\nd e f\n")
    hits = [Hit(chunk, 0.0) for chunk in divide(Lines(3), document)]
    said, rounds, notes = drive(LineByLine(), document, hits)
    assert (said, rounds, notes) == ("A\n\nB C\nD E F\n", [["a\n\nb c", "d e f"]], [])


def test_chunks_with_another_number_of_lines_are_read_line_by_line() -> None:
    """In a second round, and only those; a line that was alone is not read twice."""
    document = Document("d", "a\nb\nc d\ne\nf f f f\n")
    hits = [Hit(chunk, 0.0) for chunk in divide(Lines(3), document)]
    wrong = {"a\nb": "A B", "c d\ne": "C D\nE"}
    answer: Answer = lambda text: wrong.get(text, text.upper())  # noqa: E731 -- typed
    said, rounds, notes = drive(LineByLine(), document, hits, answer)
    assert said == document.text.upper()
    assert (rounds, len(notes)) == ([["a\nb", "c d\ne", "f f f", "f"], ["a", "b"]], 1)


def test_a_line_in_several_chunks_is_one_line_again() -> None:
    """Its stretches are joined by a blank where there was one."""
    assert translated("a b c d e\nf\n", chunker=Lines(2)) == "A B C D E\nF\n"
    assert translated("你好世界\n", lambda text: f"<{text}>", chunker=Lines(2)) == "<你好><世界>\n"


def test_dashes_and_indentation_are_kept_and_not_read() -> None:
    """Whether the reader says them or not, they stand there once."""
    text = "- Who?\n  – Me.\n-- No\n- 5\n-\n---\n"
    document = Document("d", text)
    hits = [Hit(chunk, 0.0) for chunk in divide(Lines(), document)]
    for answer in (shout, lambda line: f"- {line.upper()}", flat):
        said, rounds, _ = drive(LineByLine("line"), document, hits, answer)
        assert said.splitlines()[:4] == ["- WHO?", "  – ME.", "-- NO", "- 5"]
        assert rounds[0][:4] == ["Who?", "Me.", "No", "5"]
    without: Answer = lambda text: text.upper().replace("- ", "").replace("– ", "")  # noqa: E731 -- typed
    assert drive(LineByLine(), document, hits, without)[0].startswith("- WHO?\n  – ME.\n")


def test_what_was_not_selected_is_left_empty_and_noted() -> None:
    """An untranslated line would pass for a translation."""
    document = Document("d", "a a\nb b\nc c\n")
    chunks = divide(Lines(2), document)
    hits = [Hit(chunks[2], 1.0), Hit(chunks[0], 0.5)]
    said, rounds, notes = drive(LineByLine(), document, hits)
    assert (said, rounds) == ("A A\n\nC C\n", [["a a", "c c"]])
    assert notes == ["lines that were not selected are left empty"]
    assert drive(LineByLine(), document, [])[:2] == ("\n\n\n", [])


def test_cues_are_wanted_of_subtitles_only() -> None:
    """The error says what was asked for."""
    with pytest.raises(ValueError, match="cues: true makes subtitle files, but document 'd'"):
        translated("a\n", combiner=LineByLine(cues=True))


# -- subtitle files ------------------------------------------------------------------------------

SRT = (
    "1\n00:00:01,000 --> 00:00:02,500\n<i>hello\nyou</i>\n\n"
    "7\n00:00:03,000 --> 00:00:04,000  X1:1 X2:9 Y1:2 Y2:3\n{\\an8}<i>one</i>\n<i>two</i>\n\n"
    "00:00:05,000 --> 00:00:06,000\nno number\n\n"
    "9\n00:00:07,000 --> 00:00:08,000\n\n"
    "10\n00:00:01,500 --> 00:00:01,700\n- out of\n- order\n\n"
    "11\n0:00:09,0 --> 0:00:10,0\nthe year\n1984\n"
)
SHOUTED = (
    SRT.replace("hello\nyou", "HELLO\nYOU")
    .replace("one</i>\n<i>two", "ONE\nTWO")
    .replace("no number", "NO NUMBER")
    .replace("out of\n- order", "OUT OF\n- ORDER")
    .replace("the year", "THE YEAR")
)
VTT = (
    "WEBVTT - a film\nKind: captions\n\nSTYLE\n::cue { color: red }\n\nNOTE to\nself\n\n"
    "intro\n00:01.000 --> 00:02.000 align:start position:10%\n<v Ann>hi &amp; you</v>\n\n"
    "NOTE more\n\n00:02.000 --> 00:03.000\n\n"
    "second\n00:03.000 --> 01:00:04.000\na &lt; b\nc\n\nNOTE the end\n"
)


def subtitled(folder: Path, name: str, data: bytes, answer: Answer, unit: Any = "chunk") -> str:
    """Returns the subtitle file that becomes of a file."""
    (folder / name).write_bytes(data)
    document = load(folder / name)
    hits = [Hit(chunk, 0.0) for chunk in divide(Lines(9), document)]
    said, rounds, _ = drive(LineByLine(unit, cues=True), document, hits, answer)
    read = "\n".join(text for texts in rounds for text in texts)
    assert "-->" not in read
    assert "NOTE" not in read
    return said


@pytest.mark.parametrize("answer", [shout, flat])
@pytest.mark.parametrize("unit", ["chunk", "line"])
@pytest.mark.parametrize(("newline", "mark"), [("\n", ""), ("\r\n", "\ufeff"), ("\r", "")])
def test_a_subrip_file_becomes_one_again(
    tmp_path: Path, newline: str, mark: str, unit: Any, answer: Answer
) -> None:
    """Numbers, missing ones, positions, times out of order and empty cues are the file's own."""
    data = (mark + SRT.replace("\n", newline)).encode()
    assert subtitled(tmp_path, "a.srt", data, answer, unit) == SHOUTED.replace("\n", newline)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_webvtt_file_becomes_one_again(tmp_path: Path, newline: str) -> None:
    """With its header, styles, comments, names, settings and entities."""
    data = VTT.replace("\n", newline).encode()
    said = subtitled(tmp_path, "a.vtt", data, lambda text: text.replace("hi", "HI"))
    assert said == VTT.replace("hi &amp;", "HI &amp;").replace("\n", newline)
    said = subtitled(tmp_path, "a.vtt", data, lambda text: text.replace("hi", "a --> b"))
    assert "a --&gt; b &amp; you" in said


@pytest.mark.parametrize("cues", [False, True])
@pytest.mark.parametrize("unit", ["chunk", "line"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_subtitles_that_stand_in_a_row_keep_what_is_no_text(
    newline: str, mark: str, unit: Any, cues: bool
) -> None:
    """The text of the row is the file's: only the lines of the cues are sent, and replaced."""
    for text, wanted in ((SRT, SHOUTED.replace("ONE\nTWO", "ONE</i>\n<i>TWO")), (VTT, None)):
        given = mark + text.replace("\n", newline)
        document = Document("d", given)
        hits = [Hit(chunk, 0.0) for chunk in divide(Lines(), document)]
        said, [lines], _ = drive(LineByLine(unit, cues), document, hits)
        read = "\n".join(lines)
        assert not any(mark in read for mark in ("-->", "NOTE", "<i>", "an8", "7\n"))
        assert len(said.splitlines()) == len(given.splitlines())
        if wanted:
            assert said == mark + wanted.replace("\n", newline)


def test_lines_are_taught_in_their_places() -> None:
    """Each read learns the reference's lines that stand where its own do, without their frames."""
    document = Document("d", "Hello.\n- Who is it?\n\nIt is me.")
    said = "Hallo.\n- Wer da?\n\nIch."
    reads = [Read((document.chunk(0, 19),)), Read((document.chunk(21, 30),))]
    taught = CHUNKS.supervise(Example("e", document, references=(said,)), reads)
    assert taught == [("Hallo.\nWer da?",), ("Ich.",)]
    part = [Read((document.chunk(21, 26),))]
    assert CHUNKS.supervise(Example("e", document, references=(said,)), part) == [None]
    assert CHUNKS.supervise(Example("e", document, references=("Hallo.",)), reads) == [None, None]


def test_an_answer_of_several_lines_to_one_line_is_one_line() -> None:
    """Whatever the reader breaks."""
    said = translated("a\nb\n", lambda text: f"{text}\n\n {text}!", LineByLine("line"))
    assert said == "a a!\nb b!\n"
