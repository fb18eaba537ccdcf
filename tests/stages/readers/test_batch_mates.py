"""A reader that says that no answer of its depends on batch mates is taken at its word."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leporello import readers
from leporello.core.calls.stage_calls import read as checked_read
from leporello.core.records import Document, Output, Read, Span
from leporello.testing.texts import ODD_QUESTIONS as QUESTIONS
from leporello.testing.texts import TEXTS

NAMES = ("cat", "mill", "king", "boots", "donkey")
CHOICES = ("yes", "no")
FREE: list[Any] = [
    readers.BestSentence(),
    readers.FixedAnswer("no"),
    readers.GivenOrder(),
    readers.Lead(words=5),
    readers.Polarity(),
    readers.Presence(),
    readers.MajorityAnswer(dict.fromkeys(QUESTIONS, "no")),
    readers.MajorityOption(2),
    readers.Prefix(0.3),
    readers.RandomAnswer(),
    readers.RandomAnswer(("a", "b"), seed=3),
    readers.RandomSpan(3, ("a", "b")),
    readers.Calibrated(readers.BestSentence(), slope=0.3),
]
# These compute with torch or its like, where the shape of a batch shows in the last digits.
COMPUTING = {"CausalLM", "Embedded", "Extractive", "LateInteractionClassifier", "LogLikelihood"}
COMPUTING |= {"PseudoLogLikelihood", "Seq2Seq"}
# Of these it depends on the model or reader that they have, or they have a test of their own.
OTHERS = {"Calibrated", "Classifier", "PairClassifier", "Endpoint", "Precedence"}


def passages() -> list[Read]:
    """Returns odd and sound passages, chunks and texts, each with odd questions and choices."""
    odd = [make(60) for make in TEXTS.values()]
    sound = [
        f"The {name} was old. Who had the {name}? Nobody did, said the {name}." for name in NAMES
    ]
    found = []
    for n, text in enumerate([*odd, *sound]):
        half = len(text) // 2
        document = Document(f"{n}", text, parts=(Span(0, half), Span(half, len(text))))
        chunks = tuple(document.chunk(*ends) for ends in ((0, half), (half, len(text))))
        found += [Read(chunks, question, choices=CHOICES) for question in QUESTIONS[n % 4 :: 4]]
        found += [Read((*chunks, text), f"Who had the {NAMES[n % 5]}?"), Read((text,))]
    return found


def taken(reader: Any, reads: Sequence[Read]) -> list[Read]:
    """Returns the reads that the reader does not refuse."""
    return [read for read in reads if _answer(reader, read) is not None]


def _answer(reader: Any, read: Read) -> Output | None:
    try:
        return checked_read(reader, [read])[0]
    except ValueError:
        return None


def parts(reads: Sequence[Read], chance: random.Random) -> Iterator[list[Read]]:
    """Yields all reads in groups of chance sizes."""
    left = list(reads)
    while left:
        size = chance.choice([1, 2, 3, 17, len(left)])
        yield left[:size]
        left = left[size:]


def check_alike(fresh: Callable[[], Any], reads: Sequence[Read]) -> None:
    """Fails where an input alone has another answer than in company, to the last digit."""
    assert fresh().depends_on_batch is False
    kept = taken(fresh(), reads)
    assert len(kept) > 20
    reader = fresh()
    alone = [checked_read(reader, [read])[0] for read in kept]
    assert checked_read(fresh(), kept) == alone
    chance = random.Random(0)
    for _ in range(4):
        order = chance.sample(range(len(kept)), len(kept))
        reader = fresh()
        groups = list(parts([kept[n] for n in order], chance))
        said = [output for group in groups for output in checked_read(reader, group)]
        assert said == [alone[n] for n in order]


@pytest.mark.parametrize("reader", FREE, ids=repr)
def test_without_a_model_an_answer_is_its_inputs_alone(reader: Any) -> None:
    """For odd texts and questions too."""
    check_alike(lambda: replace(reader), passages())


@pytest.mark.integration
def test_a_trained_classifier_answers_alike_in_any_company(tmp_path: Path) -> None:
    """With its words and n-grams, of two classes and of three."""
    for classes in (2, 3):
        inputs = [Read((f"{n} The {NAMES[n % classes]} came.",)) for n in range(30)]
        targets = [NAMES[n % classes] for n in range(30)]
        folder = tmp_path / str(classes)
        readers.Classifier().learn(inputs, targets, folder)
        model = str(folder / "model")
        asked = [replace(read, choices=()) for read in passages()]
        check_alike(lambda model=model: readers.Classifier(model), asked)  # type: ignore[misc]  # a default has no type


@pytest.mark.integration
def test_a_trained_pair_classifier_answers_alike_in_any_company(tmp_path: Path) -> None:
    """To which the number of pairs is that of a matrix's rows."""
    chance = random.Random(0)
    sound = [" ".join(chance.choices(NAMES, k=9)) + "." * (n % 4) for n in range(30)]
    pairs = [(one, other) for one in sound[:12] for other in sound[12:]]
    targets = ["same" if len(one) % 2 == len(other) % 2 else "different" for one, other in pairs]
    readers.PairClassifier().learn([Read((), pair=pair) for pair in pairs], targets, tmp_path)
    texts = [*(make(60) for make in TEXTS.values()), *sound]
    asked = [Read((), pair=(text, chance.choice(texts))) for text in texts * 5]
    check_alike(lambda: readers.PairClassifier(str(tmp_path / "model")), asked)


def test_networks_depend_on_their_batches() -> None:
    """And so does whatever has one; what says nothing counts as if it did."""
    for name in COMPUTING:
        assert getattr(getattr(readers, name), "depends_on_batch", True) is True
    network = readers.Seq2Seq("no-model")
    assert readers.Calibrated(network).depends_on_batch is True
    assert readers.Calibrated(readers.CausalLM("no-model", backend="vllm")).schedules_itself is True
    assert readers.Calibrated(network).schedules_itself is False


def test_every_reader_is_known_here() -> None:
    """A new one says which kind it is."""
    free = {type(reader).__name__ for reader in FREE}
    assert free | COMPUTING | OTHERS == {*readers.__all__}
