"""The combiners, driven by hand: what they ask to read, and what they make of the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from one_example import drive, texts_of

from leporello.combiners import MapReduce, ReadEach, Refine, Stuff
from leporello.core.records import Document, Example, Hit, Output, Read

DOCUMENT = Document("d", "aa bb cc dd", title="Letters")
HITS = [
    Hit(DOCUMENT.chunk(3, 5), 3.0),
    Hit(DOCUMENT.chunk(9, 11), 2.0),
    Hit(DOCUMENT.chunk(0, 2), 1.0),
]
EXAMPLE = Example("e", DOCUMENT, question="which?", instruction="Answer.")


def _drive(
    combiner: Any,
    answer: Callable[[Read], Output],
    hits: Sequence[Hit] = HITS,
    example: Example = EXAMPLE,
    fits: int = 2,
) -> tuple[Any, list[list[Read]]]:
    """Runs a combiner to its end; returns its value and the reads of every round."""
    return drive(combiner, example, hits, answer, fits=fits)


def _echo(read: Read) -> Output:
    return Output("+".join(texts_of(read)), score=float(len(read.passages)))


def test_stuff_reads_all_hits_as_one_input_best_first() -> None:
    """Question, instruction and title go with it."""
    value, [[read]] = _drive(Stuff(), _echo)
    assert value == "bb+dd+aa"
    assert (read.question, read.instruction, read.title) == ("which?", "Answer.", "Letters")


def test_stuff_that_fits_drops_the_worst_hits() -> None:
    """Rank decides what is dropped, whatever the order of reading; the best is always read."""
    assert _drive(Stuff(order="document", fit=True), _echo)[0] == "bb+dd"
    assert _drive(Stuff(fit=True), _echo, fits=0)[0] == "bb"


def test_read_each_joins_the_answers_in_document_order() -> None:
    """One read a hit, in one round."""
    value, rounds = _drive(ReadEach(separator=" / "), _echo)
    assert value == "aa / bb / dd"
    assert [len(reads) for reads in rounds] == [3]


def test_read_each_votes_with_case_and_punctuation_set_aside() -> None:
    """The commonest answer wins; between equals the better-ranked hit's."""
    said = {"bb": "No.", "dd": "Yes", "aa": "yes!"}
    value, _ = _drive(ReadEach(keep="vote"), lambda read: Output(said[texts_of(read)[0]]))
    assert value == "Yes"
    value, _ = _drive(ReadEach(keep="vote"), _echo)
    assert value == "bb"


def test_read_each_leaves_out_what_counts_as_no_answer() -> None:
    """Unless every answer is such."""
    said = {"bb": "Unanswerable", "dd": "unanswerable.", "aa": "red"}
    reader: Callable[[Read], Output] = lambda read: Output(said[texts_of(read)[0]])  # noqa: E731 -- typed
    skip = ("unanswerable",)
    assert _drive(ReadEach(keep="vote", skip=skip), reader)[0] == "red"
    assert _drive(ReadEach(keep="vote", skip=skip), reader, hits=HITS[:2])[0] == "Unanswerable"


def test_read_each_keeps_the_surest_answer() -> None:
    """Scores decide; a reader without scores is refused with what to do."""
    surety = {"bb": -2.0, "dd": -0.5, "aa": -1.0}
    value, _ = _drive(
        ReadEach(keep="best"),
        lambda read: Output(texts_of(read)[0], score=surety[texts_of(read)[0]]),
    )
    assert value == "dd"
    with pytest.raises(ValueError, match="keep: vote"):
        _drive(ReadEach(keep="best"), lambda _: Output("x"))


def test_map_reduce_reads_answers_in_groups_that_fit_until_one_is_left() -> None:
    """Three answers, two to a window: a round for the hits and two to bring them together."""
    value, rounds = _drive(MapReduce(), lambda read: Output("".join(texts_of(read))))
    assert [len(reads) for reads in rounds] == [3, 2, 1]
    assert value == "aabbdd"


def test_map_reduce_scores_choices_once_at_the_end() -> None:
    """Hits are read without choices, everything together with them."""
    example = Example("e", DOCUMENT, question="which?", choices=("x", "y"))
    _, rounds = _drive(MapReduce(), _echo, example=example, fits=9)
    assert [[read.choices for read in reads] for reads in rounds] == [[()] * 3, [("x", "y")]]


def test_map_reduce_uses_its_own_instructions() -> None:
    """One for the hits, one for the answers; the question may be kept from the hits."""
    combiner = MapReduce(map_instruction="M", reduce_instruction="R", ask=False)
    _, rounds = _drive(combiner, _echo, fits=9)
    assert {(r.instruction, r.question) for r in rounds[0]} == {("M", "")}
    assert [(r.instruction, r.question) for r in rounds[1]] == [("R", "which?")]


@pytest.mark.parametrize(
    ("target", "value", "rounds"),
    [
        (9, "aa x\nbb x\ndd x", [3]),  # 6 words fit
        (6, "aa x\nbb x\ndd x", [3]),
        (3, "aa+bb x\ndd", [3, 2]),
        (2, "aa+bb+dd x", [3, 2, 1]),
        (1, "aa+bb+dd", [3, 2, 1, 1]),  # the last one is read again while it gets shorter
        (0, "aa+bb+dd x", [3, 2, 1]),
    ],
)
def test_map_reduce_ends_at_a_target_length(target: int, value: str, rounds: list[int]) -> None:
    """As soon as what is left, joined, has no more words."""

    def answer(read: Read) -> Output:
        texts = texts_of(read)
        again = len(texts) == 1 and texts[0].endswith(" x")
        said = "+".join(text.removesuffix(" x") for text in texts)
        return Output(said if again else f"{said} x")

    found, asked = _drive(MapReduce(target_words=target), answer)
    assert found == value
    assert [len(reads) for reads in asked] == rounds


def test_refine_reads_each_hit_with_the_answer_so_far() -> None:
    """As many rounds as hits; an empty answer leaves the one before."""
    said = iter(["first", " ", "last"])
    value, rounds = _drive(Refine(label="So far: "), lambda _: Output(next(said)))
    assert [texts_of(reads[0]) for reads in rounds] == [
        ["aa"],
        ["So far: first", "bb"],
        ["So far: first", "dd"],
    ]
    assert value == "last"


@pytest.mark.parametrize("fit", [True, False])
@pytest.mark.parametrize("choices", [(), ("x", "y")])
@pytest.mark.parametrize(
    "combiner",
    [
        Stuff(),
        Stuff(fit=True),
        ReadEach(),
        ReadEach(keep="vote", skip=("from memory",)),
        ReadEach(keep="best"),
        MapReduce(map_instruction="M", reduce_instruction="R", ask=False),
        Refine(refine_instruction="R"),
    ],
)
def test_without_hits_every_combiner_asks_the_bare_question(
    combiner: Any, choices: tuple[str, ...], fit: bool
) -> None:
    """The reader answers from what it knows, once; the ledger says that nothing was read."""
    example = Example("e", DOCUMENT, "which?", "Answer.", choices=choices)
    answer = Output("from memory", score=-1.0)
    value, [[read]] = _drive(combiner, lambda _: answer, hits=[], example=example, fits=int(fit))
    assert value == "from memory"
    assert read == Read((), "which?", "Answer.", choices, title="Letters")
