"""Tests of the extractive reader with tiny models."""

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tiny_encoders import POSITIONS, byte_pairs, save
from tiny_models import STORY, encoder
from transformers import (
    AutoModelForQuestionAnswering,
    AutoTokenizer,
    BertConfig,
    ByT5Tokenizer,
    GPT2Config,
    GPT2ForQuestionAnswering,
)

from leporello.core.calls.stage_calls import read as read_checked
from leporello.core.errors import UserError
from leporello.core.records import Document, Read
from leporello.readers import Extractive
from leporello.readers.prompting.template import passage_text

DOCUMENT = Document("story", " ".join([STORY] * 4))
NAMES = ("bert", "distilbert", "roberta", "longformer", "deberta")
PIECES = [
    "the cat", " ", "\n\n", "Mill", "猫は", "🐈👢", "e\u0301", "</s>", "<s>", "\ud800", "\x00", "—",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=30).map("".join)


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Extractive]:
    """Returns a function that returns a reader with a tiny model, which it creates if needed."""
    base = tmp_path_factory.mktemp("models")

    def reader_with(name: str, **parameters: Any) -> Extractive:
        if not (base / name).exists():
            save(name, base / name)
        defaults = {"max_input_tokens": 48, "stride": 8, "max_answer_tokens": 5, "device": "cpu"}
        return Extractive(str(base / name), **{**defaults, **parameters})

    return reader_with


def reads() -> list[Read]:
    """Returns inputs of several shapes and lengths, with a duplicate."""
    few = tuple(DOCUMENT.chunk(i, i + 40) for i in range(0, 160, 40))
    duplicate = Read(few[:1], "Who had a cat?")
    long = Read((DOCUMENT.chunk(7, 900), "What was said before."), "Why?")
    blanks = Read((*few[:1], "", " \n"), "Who had a cat?")
    return [duplicate, Read(few, "長靴?"), long, duplicate, blanks]


class Pair(NamedTuple):
    """Start and end that a plain implementation allows, with the sum of their logits."""

    score: float
    passage: int
    start: int
    end: int


@cache
def loaded(model: str) -> tuple[Any, Any]:
    network = AutoModelForQuestionAnswering.from_pretrained(model)
    return AutoTokenizer.from_pretrained(model), network


def encodable(text: str) -> str:
    """Returns a text with U+FFFD in place of halves of surrogate pairs."""
    return "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in text)


def plain(reader: Extractive, read: Read) -> tuple[list[Pair], float]:
    """Returns all allowed pairs in the segments of all passages, and the lowest null score."""
    tokenizer, model = loaded(reader.model)
    bare = {"add_special_tokens": False, "split_special_tokens": True}
    question = tokenizer(encodable(read.question), **bare)["input_ids"]
    between = [2, 2] if model.config.model_type in ("roberta", "longformer") else [2]
    head = [1, *question, *between]
    room = reader.max_input_tokens - len(head) - 1
    pairs, nulls = [], []
    for number, passage in enumerate(read.passages):
        text = passage_text(passage)
        if not text.strip():
            continue
        encoded = tokenizer(encodable(text), **bare, return_offsets_mapping=True)
        ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
        begins = range(0, max(len(ids) - reader.stride, 1), room - reader.stride)
        for begin in begins:
            segment = offsets[begin : begin + room]
            row = [*head, *ids[begin : begin + room], 2]
            inputs = {"input_ids": torch.tensor([row])}
            if model.config.model_type == "bert":
                types = [0] * len(head) + [1] * (len(row) - len(head))
                inputs["token_type_ids"] = torch.tensor([types])
            with torch.inference_mode():
                outputs = model(**inputs)
            starts, ends = outputs.start_logits[0].tolist(), outputs.end_logits[0].tolist()
            visible = [n for n, (s, e) in enumerate(segment) if text[s:e].strip()]
            if visible:
                nulls.append(starts[0] + ends[0])
            for first in visible:
                for last in visible:
                    if first <= last < first + reader.max_answer_tokens:
                        score = starts[len(head) + first] + ends[len(head) + last]
                        pairs.append(Pair(score, number, segment[first][0], segment[last][1]))
    return pairs, min(nulls, default=math.inf)


@pytest.mark.parametrize("name", NAMES)
@given(
    passages=st.lists(TEXTS, max_size=4), question=TEXTS.filter(lambda t: t.strip() and len(t) < 12)
)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_answer_is_the_best_span_of_all_segments(
    name: str, passages: list[str], question: str, reader: Callable[..., Extractive]
) -> None:
    """It is a slice of a passage; no start and end have a larger sum of logits."""
    extractive = reader(name, null_threshold=None, stride=4)
    read = Read(tuple(passages), question)
    assume(extractive._room(question) > extractive.stride)  # rare letters need many tokens
    [output] = extractive.read([read])
    pairs, _ = plain(extractive, read)
    if not pairs:
        assert (output.text, output.score) == ("", -1e9)
        return
    assert output.score == pytest.approx(max(pairs).score, abs=1e-4)
    best = [p for p in pairs if p.score > max(pairs).score - 1e-4]
    assert output.text in [passages[p.passage][p.start : p.end].strip() for p in best]


def test_unanswerable_questions_follow_squad_2(reader: Callable[..., Extractive]) -> None:
    """There is no answer if the lowest null score exceeds the best span by the threshold."""
    for read in reads():
        pairs, null = plain(reader("bert"), read)
        margin = max(pairs).score - null
        for threshold, is_empty in [(-margin - 0.01, True), (-margin + 0.01, False)]:
            extractive = reader("bert", null_threshold=threshold, unanswerable="unanswerable")
            [output] = extractive.read([read])
            assert (output.text == "unanswerable") is is_empty
            assert output.score == pytest.approx(margin, abs=1e-4)


def test_an_output_has_a_span_and_all_chunks_as_read(reader: Callable[..., Extractive]) -> None:
    extractive, chunk = reader("bert", null_threshold=None), DOCUMENT.chunk(7, 900)
    [output] = read_checked(extractive, [Read((chunk, "What was said before."), "Why?")])
    [copied] = read_checked(extractive, [Read((chunk,), "Why?")])
    assert copied.span is not None
    assert DOCUMENT.text[copied.span.start : copied.span.end] == copied.text
    [literal] = read_checked(extractive, [Read((STORY,), "Why?")])
    assert literal.span is None
    assert (output.read, output.cut, output.output_tokens) == ((chunk.span,), 0, 0)
    assert output.score is not None
    assert extractive.fit(Read(tuple("abc"), "Why?")) == 3
    assert extractive.count(["", "the cat"])[0] == 0
    assert extractive.count(["the cat"])[0] > 0


def test_without_text_the_output_is_unanswerable(reader: Callable[..., Extractive]) -> None:
    for threshold in (0.0, None):
        extractive = reader("bert", null_threshold=threshold, unanswerable="?")
        for passages in [(), ("",), (" \n", DOCUMENT.chunk(3, 3))]:
            [output] = read_checked(extractive, [Read(passages, "Why?")])
            assert output.text == "?"
            assert output.score == -1e9


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (Read(("a",), "Why?", choices=("b", "c")), "does not support choices"),
        (Read((), pair=("a", "b")), "pair classifier"),
        (Read(("a",), instruction="Summarise."), "this input does not have"),
        (Read(("a",), "Why " * 60), r"leaves 0 of max_input_tokens=48 .* raise max_input_tokens"),
    ],
)
def test_unsuitable_inputs_are_refused(
    read: Read, message: str, reader: Callable[..., Extractive]
) -> None:
    with pytest.raises(ValueError, match=message):
        reader("bert").read([read])


def test_unsuitable_models_are_refused(tmp_path: Path, reader: Callable[..., Extractive]) -> None:
    read = Read(("a",), "Why?")
    with pytest.raises(ValueError, match=r"stride \(48\) must be less"):
        reader("bert", stride=48)
    for name in ("bert", "roberta"):
        with pytest.raises(UserError, match=f"{POSITIONS} positions, but max_input_tokens"):
            reader(name, max_input_tokens=129).load()
    reader("roberta", max_input_tokens=128).read([Read((STORY,), "Why?")])
    words = byte_pairs([STORY], "roberta")
    words.save_pretrained(tmp_path / "headless")
    encoder("bert", "", len(words)).save_pretrained(tmp_path / "headless")
    with pytest.raises(UserError, match="lacks weights"):
        Extractive(str(tmp_path / "headless")).read([read])
    ByT5Tokenizer().save_pretrained(tmp_path / "slow")
    BertConfig().save_pretrained(tmp_path / "slow")
    with pytest.raises(UserError, match="slow tokenizer"):
        Extractive(str(tmp_path / "slow")).read([read])
    gpt2 = GPT2Config(n_embd=8, n_layer=1, n_head=1, vocab_size=len(words))
    GPT2ForQuestionAnswering(gpt2).save_pretrained(tmp_path / "gpt2")
    words.cls_token = None
    words.backend_tokenizer.post_processor = None
    words.save_pretrained(tmp_path / "gpt2")
    with pytest.raises(UserError, match="set null_threshold to null"):
        Extractive(str(tmp_path / "gpt2")).read([read])
    assert Extractive(str(tmp_path / "gpt2"), null_threshold=None).read([read])[0].text == "a"
