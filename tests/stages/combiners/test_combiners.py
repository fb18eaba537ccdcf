"""Tests of the basic combiners: their reads, and their answers from outputs."""

from collections.abc import Callable
from functools import partial
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
_drive = partial(drive, example=EXAMPLE, hits=HITS, fits=2)


def _echo(read: Read) -> Output:
    return Output("+".join(texts_of(read)), score=float(len(read.passages)))


def test_stuff_reads_all_hits_together_best_first() -> None:
    value, [[read]] = _drive(Stuff(), _echo)
    assert value == "bb+dd+aa"
    assert (read.question, read.instruction, read.title) == ("which?", "Answer.", "Letters")


def test_stuff_with_fit_drops_the_worst_hits() -> None:
    assert _drive(Stuff(order="document", fit=True), _echo)[0] == "bb+dd"
    assert _drive(Stuff(fit=True), _echo, fits=0)[0] == "bb"


def test_read_each_joins_the_answers_in_document_order() -> None:
    value, rounds = _drive(ReadEach(), _echo)
    assert value == "aa\nbb\ndd"
    assert [len(reads) for reads in rounds] == [3]


def test_the_votes_of_read_each_ignore_case_and_punctuation() -> None:
    texts = {"bb": "No.", "dd": "Yes", "aa": "yes!"}
    value, _ = _drive(ReadEach(keep="vote"), lambda read: Output(texts[texts_of(read)[0]]))
    assert value == "Yes"
    value, _ = _drive(ReadEach(keep="vote"), _echo)
    assert value == "bb"


def test_read_each_ignores_answers_to_skip() -> None:
    texts = {"bb": "Unanswerable", "dd": "unanswerable.", "aa": "red"}
    reader: Callable[[Read], Output] = lambda read: Output(texts[texts_of(read)[0]])  # noqa: E731 -- typed
    skip = ("unanswerable",)
    assert _drive(ReadEach(keep="vote", skip=skip), reader)[0] == "red"
    assert _drive(ReadEach(keep="vote", skip=skip), reader, hits=HITS[:2])[0] == "Unanswerable"


def test_read_each_keeps_the_answer_with_the_best_score() -> None:
    scores = {"bb": -2.0, "dd": -0.5, "aa": -1.0}
    outputs = {text: Output(text, score) for text, score in scores.items()}
    value, _ = _drive(ReadEach(keep="best"), lambda read: outputs[texts_of(read)[0]])
    assert value == "dd"
    with pytest.raises(ValueError, match="keep: vote"):
        _drive(ReadEach(keep="best"), lambda _: Output("x"))


def test_map_reduce_reads_answers_in_groups_that_fit_until_one_remains() -> None:
    value, rounds = _drive(MapReduce(), lambda read: Output("".join(texts_of(read))))
    assert [len(reads) for reads in rounds] == [3, 2, 1]
    assert value == "aabbdd"


def test_map_reduce_scores_choices_only_in_the_last_round() -> None:
    example = Example("e", DOCUMENT, question="which?", choices=("x", "y"))
    _, rounds = _drive(MapReduce(), _echo, example=example, fits=9)
    assert [[read.choices for read in reads] for reads in rounds] == [[()] * 3, [("x", "y")]]


def test_map_reduce_uses_different_instructions_for_hits_and_answers() -> None:
    combiner = MapReduce(map_instruction="M", reduce_instruction="R")
    _, rounds = _drive(combiner, _echo, fits=9)
    assert {(r.instruction, r.question) for r in rounds[0]} == {("M", "which?")}
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
    def answer(read: Read) -> Output:
        texts = texts_of(read)
        is_again = len(texts) == 1 and texts[0].endswith(" x")
        joined = "+".join(text.removesuffix(" x") for text in texts)
        return Output(joined if is_again else f"{joined} x")

    text, reads_of_rounds = _drive(MapReduce(target_words=target), answer)
    assert text == value
    assert [len(reads) for reads in reads_of_rounds] == rounds


def test_refine_reads_each_hit_with_the_answer_so_far() -> None:
    texts = iter(["first", " ", "last"])
    value, rounds = _drive(Refine(), lambda _: Output(next(texts)))
    read_texts = [texts_of(read) for [read] in rounds]
    assert read_texts == [["aa"], ["Answer so far: first", "bb"], ["Answer so far: first", "dd"]]
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
        MapReduce(map_instruction="M", reduce_instruction="R"),
        Refine(refine_instruction="R"),
    ],
)
def test_without_hits_only_the_question_is_read(
    combiner: Any, choices: tuple[str, ...], fit: bool
) -> None:
    example = Example("e", DOCUMENT, "which?", "Answer.", choices=choices)
    answer = Output("from memory", score=-1.0)
    value, [[read]] = _drive(combiner, lambda _: answer, hits=[], example=example, fits=int(fit))
    assert value == "from memory"
    assert read == Read((), "which?", "Answer.", choices, title="Letters")
