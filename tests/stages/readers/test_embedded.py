"""Tests of the reader of the package and of its heads, with their weights."""

import json
import shutil
import unicodedata
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_head import PlainHead

from leporello.core.errors import UserError
from leporello.core.records import Chunk, Document, Output, Read, Span
from leporello.models.locate import locate
from leporello.readers import Embedded
from leporello.readers.embedded.encoder import Encoder, TextPair, has_int8_units
from leporello.readers.embedded.spans import edges_of
from leporello.readers.embedded.statements import StatementJudge, label_order

FERRY = Document(
    "ferry",
    "The ferry at Quern has run since 1871. Grigor Sande wrote down every soul, hoof and hatbox."
    "\n\nAnn Dunning found the unread fax behind the boiler. She gave it to the Widow Frack.",
)
SHIPPED = Path(locate("leporello-en"))
COPY = "Receiving Party may create a copy of some Confidential Information in some circumstances."
HALVES = (FERRY.chunk(0, 91), FERRY.chunk(93, len(FERRY.text)))


@pytest.fixture(scope="module", name="reader")
def _reader() -> Embedded:
    return Embedded(unanswerable="unanswerable")


def answer(reader: Embedded, question: str, *passages: Chunk | str) -> Output:
    [output] = reader.read([Read(passages or HALVES, question)])
    return output


def test_an_answer_is_a_span_of_the_document(reader: Embedded) -> None:
    for question, text in (
        ("Who found the unread fax?", "Ann Dunning"),
        ("Since when has the ferry run?", "1871"),
        ("Who wrote down every soul?", "Grigor Sande"),
    ):
        output, start = answer(reader, question), FERRY.text.index(text)
        assert (output.text, output.span) == (text, Span(start, start + len(text)))
        assert output.read == (Span(0, 91), Span(93, len(FERRY.text)))


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_an_answer_has_its_accents_in_either_form(reader: Embedded, form: Any) -> None:
    text = unicodedata.normalize(form, "The unread fax was found in 1871 by Zoë Håkanå. She left.")
    document = Document("d", text)
    output = answer(reader, "Who found the unread fax?", document.chunk(0, len(text)))
    name = unicodedata.normalize(form, "Zoë Håkanå")
    assert output.text == name
    assert output.span == Span(text.index(name), text.index(name) + len(name))


def test_an_answer_is_one_line_of_one_cell(reader: Embedded) -> None:
    """It has no span if its passage has no document."""
    passage = "Captain: Rolf\tAge: 40\nShip: Sven\tTons: 50"
    output = answer(reader, "What is the age of Rolf?", passage)
    assert (output.text, output.span) == ("40", None)
    passage = "The ferry was kept by Ann\n   Dunning for years."
    output = answer(reader, "Who kept the ferry?", passage)
    assert (output.text, output.span) == ("Ann Dunning", None)


def test_questions_with_values_find_their_row(reader: Embedded) -> None:
    """The cell is the one whose column the question names, or the first of the row."""
    cells = [("Rope", 40, 7), ("Tar", 15, 9), ("Pitch", 22, 3), ("Oakum", 31, 12)]
    rows = [f"Item: {name}\tPrice: {price}\tStock: {stock}" for name, price, stock in cells]
    table = "\n".join(["Item\tPrice\tStock", *rows])
    assert answer(reader, "How many pitch are in stock?", table).text == "3"
    assert answer(reader, "What is the price of tar?", table).text == "15"
    assert answer(reader, "What costs 31?", table).text == "Oakum"
    assert answer(reader, "Which item is at 7 in stock?", table).text == "Rope"


@pytest.mark.parametrize(
    ("passage", "units"),
    [
        ("Item\tPrice\nItem: Tar\tPrice: 4\nNo row", ["Item|Price", "Item: Tar|Price: 4|No row"]),
        ("One line\nand another.\n\nA paragraph.", ["One line\nand another.", "A paragraph."]),
        ("HAMLET\n  To be\n  or not.\nMR. LEE: Why?", ["HAMLET|To be\n  or not.", "MR. LEE:|Why?"]),
        ("HAMLET (aside)\nA rat!\nTHE QUEEN. O me.", ["HAMLET (aside)|A rat!", "THE QUEEN.|O me."]),
        ("MRS. LEE rows.\nU.S. forces left.", ["MRS. LEE rows.\nU.S. forces left."]),
        ("Ann: I go\nhome.\nBo: So long.", ["Ann:|I go\nhome.", "Bo:|So long."]),
        (
            "Skerry Island\nIt has a light that was lit.",
            ["Skerry Island|It has a light that was lit."],
        ),
        (
            "It was lit in the\nyear of the great fire of York.",
            ["It was lit in the\nyear of the great fire of York."],
        ),
        ("THE SELLER AND\nTHE BUYER\nagree: yes", ["THE SELLER AND\nTHE BUYER\nagree: yes"]),
    ],
)
def test_answers_do_not_cross_cells_turns_and_paragraphs(passage: str, units: list[str]) -> None:
    edges = [0, *edges_of(passage), len(passage)]
    parts = [passage[start:end].strip() for start, end in pairwise(edges)]
    assert [part for part in parts if part] == "|".join(units).split("|")


def test_special_tokens_of_the_model_are_text(reader: Embedded) -> None:
    passage = "The token [SEP] ends a text. Ann Dunning added the token [MASK] in 1902."
    assert answer(reader, "Who added [MASK]?", passage).text == "Ann Dunning"
    assert reader.count(["[SEP]"]) == [3]


def test_a_list_is_preferred_if_several_things_are_asked_for(reader: Embedded) -> None:
    passage = "The crew wear red, green and blue. The captain wears white."
    assert answer(reader, "Which colours do the crew wear?", passage).text == "red, green and blue"


def test_a_yes_no_question_is_answered_with_yes_or_no(reader: Embedded) -> None:
    output = answer(reader, "Did Ann Dunning find the fax?")
    assert output.text in ("yes", "no")
    assert output.span is None
    assert (output.probability or 1.0) < 0.6


def test_a_claim_has_one_of_three_labels(reader: Embedded) -> None:
    labels = {
        "Ann Dunning found the fax.": "Entailment",
        "Ann Dunning did not find the fax.": "Contradiction",
        "The ferry has run since 1902.": "Contradiction",
        "The king died.": "Not mentioned",
    }
    outputs = {claim: answer(reader, claim) for claim in labels}
    assert {claim: output.text for claim, output in outputs.items()} == labels
    assert all(output.span for output in outputs.values())
    [without_passages] = reader.read([Read((), "The king died.")])
    assert without_passages.text == "Not mentioned"


def test_differences_to_other_base_weights_are_refused(tmp_path: Path) -> None:
    """The sum would be meaningless."""
    shutil.copytree(SHIPPED / "verdicts", tmp_path / "verdicts")
    config = json.loads((SHIPPED / "verdicts/config.json").read_text("utf-8")) | {"base": "other"}
    (tmp_path / "verdicts/config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(UserError, match="train it again"):
        Encoder(SHIPPED / "answers", tmp_path / "verdicts")


def test_one_of_the_choices_is_chosen(reader: Embedded) -> None:
    choices = ("Grigor Sande", "Ann Dunning", "the Widow Frack", "the Widow Frack")
    [output] = reader.read([Read(HALVES, "Who found the unread fax?", choices=choices)])
    assert output.text == "Ann Dunning"
    assert output.span
    assert FERRY.text[output.span.start : output.span.end] == "Ann Dunning"
    assert len(output.scores) == 4
    assert output.score == max(output.scores)


def test_the_sentences_of_a_summary_are_in_document_order() -> None:
    reader = Embedded()
    [output] = reader.read([Read(HALVES[::-1], "Summarise this")])
    places = [output.text.find(words) for words in ("ferry at Quern", "unread fax")]
    assert 0 <= places[0] < places[1]


def test_without_passages_the_output_is_unanswerable(reader: Embedded) -> None:
    [output] = reader.read([Read((), "Who?")])
    assert output.text == "unanswerable"
    assert output.score is not None
    assert output.score <= -1e9


def test_a_refusal_is_never_sure() -> None:
    """The document may have the answer in other words."""
    reader = Embedded(threshold=-2.0, unanswerable="unanswerable")
    [output] = reader.read([Read(HALVES, "Which colour has the moon of Mars?")])
    assert output.text == "unanswerable"
    assert output.probability == 0.75


@pytest.mark.skipif(not has_int8_units(), reason="the processor has no units for 8 bits")
def test_answers_in_8_bits_are_those_in_32_bits(reader: Embedded) -> None:
    """Scores differ by tenths; a processor without units computes in 32 bits."""
    exact = Embedded(precision="float32")
    for question in ("Who found the unread fax?", "Since when has the ferry run?"):
        outputs = [answer(variant, question) for variant in (reader, exact)]
        assert outputs[0].text == outputs[1].text
        assert outputs[0].score != outputs[1].score
        assert outputs[0].score == pytest.approx(outputs[1].score, abs=0.5)


def test_the_score_of_a_passage_does_not_depend_on_the_batch(
    reader: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # threads that share the passages
    encoder = Encoder(SHIPPED / "answers")
    pairs = [TextPair([7, 8], [*range(5, 5 + length)]) for length in (4, 90, 30)]
    together = encoder.scores(pairs)
    for pair, scores in zip(pairs, together, strict=True):
        [alone] = reader._encoder.scores([pair])
        assert all(np.array_equal(scores[head], alone[head]) for head in alone)


def test_a_long_passage_is_read_to_its_end(reader: Embedded) -> None:
    long = Document("long", "The sea was calm that day. " * 200 + FERRY.text[93:])
    output, start = answer(reader, "Who found the unread fax?", long.chunk(0, len(long.text))), 5400
    assert (output.text, output.span) == ("Ann Dunning", Span(start, start + 11))


def test_damaged_weights_are_reported(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED / "answers", tmp_path / "answers")
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


def test_packaged_folders_are_small_and_list_their_files() -> None:
    sizes = {}
    for folder in (path for path in SHIPPED.iterdir() if path.is_dir()):
        checksums = json.loads((folder / "config.json").read_text(encoding="utf-8"))["sha256"]
        assert {*checksums, "card.md", "config.json"} == {path.name for path in folder.iterdir()}
        sizes[folder.name] = sum(file.stat().st_size for file in folder.iterdir())
    assert max(sizes["choices"], sizes["statements"]) < 3_000_000
    assert sum(sizes.values()) <= 50e6


@pytest.fixture(scope="module", name="judge")
def _judge() -> StatementJudge:
    """The head for statements, with rules instead of weights as its span head."""
    return StatementJudge(SHIPPED / "statements", PlainHead())


@pytest.mark.parametrize(
    ("clauses", "best"),
    [
        ("The Receiving Party may make copies of the Confidential Information as needed.", 1),
        ("The Receiving Party shall not copy or reproduce any Confidential Information.", 2),
        ("The moon is far from the sea, and the boats are old.", 0),
    ],
)
def test_a_known_statement_is_judged_unread(judge: StatementJudge, clauses: str, best: int) -> None:
    before = "This Agreement is governed by the laws of Norway. "
    judgement = judge.judge(COPY, ["", before + clauses])
    assert int(np.argmax(judgement.probabilities)) == best
    assert judge.knows(COPY)
    if best:
        assert judgement.place
        assert (judgement.place.text, judgement.place.passage) == (clauses, 1)


def test_an_unknown_statement_is_read(judge: StatementJudge) -> None:
    stated = judge.judge("boats are old", ["The boats are old."])
    missing = judge.judge("hens fly", ["Zinc."])
    assert not judge.knows("boats are old")
    assert stated.probabilities[0] < missing.probabilities[0]


@pytest.mark.parametrize(
    ("choices", "order"),
    [
        (("Entailment", "Contradiction", "Not mentioned"), (2, 0, 1)),
        (("SUPPORTS", "NOT ENOUGH INFO", "REFUTES"), (1, 0, 2)),
        (("yes", "no", "perhaps"), None),
        (("Entailment", "Contradiction"), None),
        ((), None),
    ],
)
def test_choices_with_names_of_labels_are_labels(
    choices: tuple[str, ...], order: tuple[int, int, int] | None
) -> None:
    assert label_order(choices) == order
