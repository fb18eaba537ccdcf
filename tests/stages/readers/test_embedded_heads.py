"""Tests of the heads for choices and statements, with their weights and a plain span head."""

import json
from pathlib import Path

import numpy as np
import pytest
from plain_head import PlainHead

import leporello.readers.embedded.choices as stage
from leporello.core.errors import UserError
from leporello.readers.embedded.choices import ChoiceRanker
from leporello.readers.embedded.statements import StatementJudge, label_order

SHIPPED = Path(stage.__file__).parent / "shipped"
COPY = "Receiving Party may create a copy of some Confidential Information in some circumstances."


@pytest.fixture(scope="module", name="ranker")
def _ranker() -> ChoiceRanker:
    return ChoiceRanker(SHIPPED / "choices", PlainHead())


@pytest.fixture(scope="module", name="judge")
def _judge() -> StatementJudge:
    return StatementJudge(SHIPPED / "statements", PlainHead())


def test_the_option_in_the_passages_is_chosen(ranker: ChoiceRanker) -> None:
    passages = ("it rained all day long", "and then Dunning found the fax")
    options = ("Grigor Sande", "Widow Frack", "Dunning", "Bob")
    [choice] = ranker.choose([("who found the fax?", options, passages)])
    assert choice.index == 2
    assert choice.span is not None
    assert passages[choice.span.passage][choice.span.start : choice.span.end] == "Dunning"


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
    [judgement] = judge.judge([(COPY, ["", before + clauses])])
    assert int(np.argmax(judgement.probabilities)) == best
    assert judge.knows(COPY)
    if best:
        assert (before + clauses)[judgement.start : judgement.end] == clauses
        assert judgement.passage == 1


def test_an_unknown_statement_is_read(judge: StatementJudge) -> None:
    stated, missing = judge.judge(
        [("boats are old", ["The boats are old."]), ("hens fly", ["Zinc."])]
    )
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


@pytest.mark.parametrize("name", ["choices", "statements"])
def test_packaged_heads_are_small_and_complete(name: str, tmp_path: Path) -> None:
    files = {path.name: path.read_bytes() for path in (SHIPPED / name).iterdir()}
    assert {*files} == {"card.md", "config.json", "weights.safetensors"}
    assert sum(map(len, files.values())) < 3_000_000
    assert "sha256" in json.loads(files["config.json"])
    for path, content in files.items():
        (tmp_path / path).write_bytes(content[:-1] if path == "weights.safetensors" else content)
    make = ChoiceRanker if name == "choices" else StatementJudge
    with pytest.raises(UserError, match="damaged"):
        make(tmp_path, PlainHead())
