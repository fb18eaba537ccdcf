"""The reader that comes with the package, with its real weights."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leporello.core.errors import UserError
from leporello.core.records import Chunk, Document, Output, Read, Span
from leporello.models.locate import locate
from leporello.readers import Embedded
from leporello.readers.embedded.answers import joined_passages
from leporello.readers.embedded.encoder import Encoder
from leporello.readers.embedded.spans import Candidate

FERRY = Document(
    "ferry",
    "The ferry at Quern has run since 1871. Grigor Sande wrote down every soul, hoof and hatbox."
    "\n\nAnn Dunning found the unread fax behind the boiler. She gave it to the Widow Frack.",
)
HALVES = (FERRY.chunk(0, 91), FERRY.chunk(93, len(FERRY.text)))


@pytest.fixture(scope="module", name="reader")
def _reader() -> Embedded:
    """The reader as pipelines have it."""
    return Embedded(unanswerable="unanswerable")


def answer(reader: Embedded, question: str, *passages: Chunk | str) -> Output:
    """Returns what it says to one question."""
    [output] = reader.read([Read(passages or HALVES, question)])
    return output


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Who found the unread fax?", "Ann Dunning"),
        ("Since when has the ferry run?", "1871"),
        ("Who wrote down every soul?", "Grigor Sande"),
    ],
)
def test_an_answer_is_a_span_of_the_document(reader: Embedded, question: str, text: str) -> None:
    """The text is the document's own characters, at the place that is told."""
    output = answer(reader, question)
    assert output.text == text
    assert output.span is not None
    assert FERRY.text[output.span.start : output.span.end] == text
    assert output.read == (Span(0, 91), Span(93, len(FERRY.text)))


def test_a_question_for_yes_or_no_gets_one_of_them(reader: Embedded) -> None:
    """It stands nowhere in the document."""
    output = answer(reader, "Did Ann Dunning find the fax?")
    assert output.text in ("yes", "no")
    assert output.span is None


@pytest.mark.parametrize(
    ("claim", "label"),
    [
        ("Ann Dunning found the fax.", "Entailment"),
        ("Ann Dunning did not find the fax.", "Contradiction"),
        ("The ferry has run since 1902.", "Contradiction"),
        ("The king died.", "Not mentioned"),
    ],
)
def test_a_claim_is_supported_or_contradicted_or_neither(
    reader: Embedded, claim: str, label: str
) -> None:
    """The clause that counts is told; without passages nothing is mentioned."""
    output = answer(reader, claim)
    assert output.text == label
    assert output.span is not None
    [silent] = reader.read([Read((), claim)])
    assert silent.text == "Not mentioned"


def test_a_difference_from_other_weights_is_told(tmp_path: Path) -> None:
    """It would read nonsense."""
    shipped = Path(locate("leporello-en"))
    shutil.copytree(shipped / "verdicts", tmp_path / "verdicts")
    config = json.loads((shipped / "verdicts/config.json").read_text("utf-8")) | {"base": "other"}
    (tmp_path / "verdicts/config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(UserError, match="train it again"):
        Encoder(shipped / "answers", tmp_path / "verdicts")


def test_one_of_the_choices_is_chosen(reader: Embedded) -> None:
    """Each has a score, and the best one is the answer."""
    choices = ("Grigor Sande", "Ann Dunning", "the Widow Frack", "the Widow Frack")
    [output] = reader.read([Read(HALVES, "Who found the unread fax?", choices=choices)])
    assert output.text == "Ann Dunning"
    assert len(output.scores) == 4
    assert output.score == max(output.scores)


def test_a_summary_has_sentences_in_the_order_of_the_document() -> None:
    """Whatever order the passages come in; `summary_words` shortens it."""
    reader = Embedded()
    [output] = reader.read([Read(HALVES[::-1], "Summarise this")])
    places = [output.text.find(words) for words in ("ferry at Quern", "unread fax")]
    assert 0 <= places[0] < places[1]
    [short] = Embedded(summary_words=8).read([Read(HALVES, "")])
    assert 0 < len(short.text.split()) <= 8


def test_without_passages_nothing_is_answered(reader: Embedded) -> None:
    """The score is lower than that of any answer."""
    [output] = reader.read([Read((), "Who?")])
    assert output.text == "unanswerable"
    assert output.score is not None
    assert output.score <= -1e9


def test_a_long_passage_is_read_to_its_end(reader: Embedded) -> None:
    """What lies in a later window is found."""
    long = Document("long", "The sea was calm that day. " * 200 + FERRY.text[93:])
    output = answer(reader, "Who found the unread fax?", long.chunk(0, len(long.text)))
    assert output.text == "Ann Dunning"
    assert output.span is not None
    assert long.text[output.span.start : output.span.end] == "Ann Dunning"


def test_damaged_weights_are_told(tmp_path: Path) -> None:
    """A changed byte, a file that is missing, and no folder at all each give one clear line."""
    shutil.copytree(Path(locate("leporello-en")) / "answers", tmp_path / "answers")
    weights = tmp_path / "answers" / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(UserError, match=r"weights\.safetensors is damaged"):
        Embedded(model=str(tmp_path)).load()
    weights.unlink()
    with pytest.raises(UserError, match=r"weights\.safetensors cannot be read"):
        Embedded(model=str(tmp_path)).load()
    with pytest.raises(UserError, match="no such file or folder"):
        Embedded(model="./absent").load()


def test_every_shipped_folder_lists_its_files() -> None:
    """Each has its card, and the checksums of the files beside it."""
    folders = [path for path in Path(locate("leporello-en")).iterdir() if path.is_dir()]
    assert folders
    for folder in folders:
        listed = json.loads((folder / "config.json").read_text(encoding="utf-8"))["sha256"]
        files = {path.name for path in folder.iterdir()}
        assert {*listed, "card.md"} == files - {"config.json"}
    shipped = sum(f.stat().st_size for folder in folders for f in folder.iterdir())
    assert shipped <= 50e6


@settings(max_examples=50)
@given(st.lists(st.text(alphabet="ab .\nÄ", max_size=40), max_size=5), st.data())
def test_joined_paragraphs_know_where_they_stand(texts: list[str], data: st.DataObject) -> None:
    """What is found in a pair of paragraphs is placed where the passage has those characters."""
    for pair in joined_passages("a b", texts, [0.0] * len(texts), 4):
        shift = len(pair.first.text) + 2
        for begin, part in ((0, pair.first), (shift, pair.second)):
            start = begin + data.draw(st.integers(0, len(part.text) - 1))
            found = pair.placed(Candidate("", 0, start, begin + len(part.text), 0.0))
            assert (
                texts[found.passage][found.start : found.end]
                == pair.text[start : begin + len(part.text)]
            )
