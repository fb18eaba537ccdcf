"""Tests of ALCE's measures: entailed sentences, needed citations, and claims."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from scored import example_of, prediction_of

from leporello.chunkers import Sentences
from leporello.combiners import Stuff
from leporello.config import Pipeline
from leporello.core.records import JSON, Document, Example, Output, Read
from leporello.engine.shard_rows import rows_of
from leporello.metrics.citations import Citations
from leporello.readers import BestSentence
from leporello.retrievers import BM25

TEXT = "the cat sat. a dog ran. a hen and the cat slept. nobody knew."
PARTS = ("the cat sat.", "a dog ran.", "a hen and the cat slept.", "nobody knew.")


class Words:
    """Reader for which texts entail the sentences that contain only their words."""

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        return [Output(_label(read)) for read in inputs]

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]


def _label(read: Read) -> str:
    words = {w for text in read.passages for w in str(getattr(text, "text", text)).lower().split()}
    words |= {word.strip(".") for word in words}
    claimed = {word.strip(".") for word in read.question.lower().split()}
    return read.choices[0 if claimed <= words else 2]


def _scores(answer: str, **metadata: JSON) -> dict[str, float]:
    prediction = prediction_of(
        answer, tuple((TEXT.index(p), TEXT.index(p) + len(p)) for p in PARTS)
    )
    example = example_of("The cat sat. Cows fly.", text=TEXT, metadata=metadata)
    metric = Citations()
    asking = metric.ask(prediction, example)
    try:
        reads: Any = next(asking)
        while True:
            reads = asking.send(Words().read(reads))
    except StopIteration as end:
        return metric.aggregate([end.value])


@pytest.mark.parametrize(
    ("answer", "recall", "precision"),
    [
        ("The cat sat [1].", 100, 100),
        ("The cat sat [2].", 0, 0),
        ("The cat sat [1][2].", 100, 50),  # the second is not needed
        ("The cat ran [1][2].", 100, 100),  # neither suffices, both are needed
        ("The cat [1][3].", 100, 100),  # each suffices
        ("The cat sat [9].", 0, 0),  # no passage has this number
        ("The cat sat [1]. A dog ran.", 50, 100),  # the second sentence cites nothing
        ("The cat sat.", 100, 33.3333),  # without marks: the best three hits
        ("Nobody knew.", 0, 0),  # only the fourth hit entails this
    ],
)
def test_recall_and_precision_equal_alce(answer: str, recall: float, precision: float) -> None:
    """A citation counts if it entails the sentence, or if the other citations do not."""
    scores = _scores(answer)
    assert (scores["citations"], scores["citation_precision"]) == (recall, precision)


def test_claims_are_sentences_of_the_reference_or_metadata() -> None:
    assert _scores("The cat sat [4].")["claim_recall"] == 50
    assert _scores("The cat sat [4].", claims=["the cat", "sat", "cows"])["claim_recall"] == (
        pytest.approx(200 / 3, abs=1e-3)
    )


def test_a_run_asks_the_role(tmp_path: Path) -> None:
    stages = Pipeline(
        Sentences(size=4), BM25(k=2), BestSentence(), Stuff(), roles={"judge": Words()}
    )
    examples = [Example("q", Document("d", TEXT), "Who sat?", references=("the cat sat.",))]
    [row] = rows_of(tmp_path / "journal.jsonl", examples, stages, metrics=["f1", "citations"])
    assert row["statistics"]["citations"]["citations"] == 100
    assert {call["role"] for call in row["calls"]} == {"", "judge"}
