"""Truncate on the benchmarks' own input: what is kept, to the token where a reader can tell."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from official_rows import zero_scrolls_row
from tiny_models import network, save
from tokenizers import Tokenizer as RustTokenizer
from tokenizers import decoders, pre_tokenizers, processors, trainers
from tokenizers.models import BPE
from transformers import AutoTokenizer, T5Tokenizer

from leporello.api import run
from leporello.combiners import Truncate, TruncateMiddle
from leporello.config import load_config
from leporello.core.errors import UserError
from leporello.core.official_prompt import OfficialPrompt
from leporello.core.records import Chunk, Document, Example, Fit, Output, Read
from leporello.readers import Seq2Seq
from leporello.readers.prompting.template import passage_text
from leporello.tasks import Sample
from leporello.tasks.long_context.templates import data_of

STORY = next(Sample().examples()).document.text[:6000]
SEPARATOR = "... [The rest of the story is omitted]\n\n"
ASKED = OfficialPrompt(
    "You are given a story and a question. Answer it.\n\nStory:\n",
    "\n\n",
    "Question:\nWho writes every soul down?",
    "\n\nAnswer:\n",
    SEPARATOR,
)
FIRST = OfficialPrompt("Who writes every soul down?\n\n")  # as in SCROLLS: the document stands last


def example(prompt: OfficialPrompt, text: str = STORY) -> Example:
    """Returns an example as a benchmark's task gives it."""
    return Example("e", Document("d", text), "Who?", metadata=prompt.metadata())


def asked_for(
    combiner: Truncate | TruncateMiddle,
    one: Example,
    fit: Callable[[Read], int],
    made: Seq2Seq | None = None,
) -> tuple[Read, Any]:
    """Returns what is read in the end, and what is made of the answer."""
    generator = combiner.combine(one, ())
    assert not isinstance(generator, (str, int, float, list, dict))
    answers: Any = None
    while isinstance(request := cast(Any, generator).send(answers)[0], Fit):
        if request.behind is None:
            answers = [fit(request.read)]
        else:
            answers = [made.sliced(request.read, request.behind) if made else -1]
    with pytest.raises(StopIteration) as stop:
        cast(Any, generator).send([Output("said")])
    return request, stop.value.value


def text_of(read: Read) -> str:
    """Returns what a reader that adds nothing is given."""
    return "".join(map(passage_text, read.passages))


def by_characters(limit: int) -> Callable[[Read], int]:
    """Returns what fits a window that counts characters."""

    def fit(read: Read) -> int:
        ends = [len(text_of(Read(read.passages[:n]))) for n in range(1, len(read.passages) + 1)]
        return sum(end <= limit for end in ends)

    return fit


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny models: a T5 with the tokenizer of its kind, and a BART."""
    base = tmp_path_factory.mktemp("truncate")
    words = Counter(re.findall(r"\S+", STORY))
    pieces = Counter({f"▁{word}": count for word, count in words.items() if count > 1})
    for word, count in words.items():
        spelt = f"▁{word}"
        for size in (1, 2, 3, 5):
            pieces[spelt[: size + 1]] += count
            pieces[spelt[-size:]] += count
        pieces.update(spelt)
    total = sum(pieces.values())
    special = [(token, 0.0) for token in ("<pad>", "</s>", "<unk>")]
    scores = [(piece, -5.0 + count / total) for piece, count in sorted(pieces.items())]
    tokens = T5Tokenizer(vocab=special + scores, extra_ids=0)
    network("t5", len(tokens)).save_pretrained(base / "t5")
    tokens.save_pretrained(base / "t5")
    save("bart", base / "bart")
    return base


def reader(model: Path, limit: int, rule: Literal["slice", "error"] = "slice") -> Seq2Seq:
    """Returns a reader that adds nothing, and slices or refuses what is too long."""
    return Seq2Seq(
        str(model),
        prompt="{context}",
        separator="",
        max_input_tokens=limit,
        on_overflow=rule,
        max_new_tokens=4,
        device="cpu",
    )


def ids(made: Seq2Seq, read: Read) -> list[int]:
    """Returns the tokens that the model is given."""
    [prompt] = made._model_inputs(read, made._window.parts(read))
    return list(prompt.tokens)


def official_ids(model: Path, prompt: OfficialPrompt, text: str, limit: int) -> list[int]:
    """Returns the tokens that the authors' T5 runner gives its model."""
    tokens: Any = AutoTokenizer.from_pretrained(str(model))
    whole = list(tokens(prompt.around(text))["input_ids"])
    if len(whole) <= limit:
        return whole
    tail = list(tokens(prompt.separator + prompt.surviving)["input_ids"])
    return (
        list(tokens(prompt.before + text + prompt.between)["input_ids"])[: limit - len(tail)] + tail
    )


# -- what is kept ------------------------------------------------------------------------------


@given(
    text=st.text(max_size=60),
    pieces=st.tuples(*[st.text(max_size=8)] * 5),
    limit=st.integers(0, 140),
    joint=st.sampled_from(["", " "]),
)
def test_as_much_of_the_document_is_kept_as_fits(
    text: str, pieces: tuple[str, str, str, str, str], limit: int, joint: str
) -> None:
    """The official input if it fits; else its beginning up to the last character, and the tail."""
    prompt = OfficialPrompt(*pieces)
    whole = prompt.around(text)
    tail = prompt.separator + prompt.surviving
    tail = joint + tail if tail else ""
    one = example(prompt, text)
    if len(whole) > limit < len(tail):
        with pytest.raises(ValueError, match="raise max_input_tokens"):
            asked_for(Truncate(joint=joint), one, by_characters(limit))
        return
    read, said = asked_for(Truncate(joint=joint), one, by_characters(limit))
    assert said == "said"
    head = prompt.before + text + prompt.between
    cut = head[: limit - len(tail)] + tail
    assert text_of(read) == (whole if len(whole) <= limit else cut)
    chunks = [passage for passage in read.passages if isinstance(passage, Chunk)]
    left = len(text) if len(whole) <= limit else limit - len(tail) - len(prompt.before)
    expected = text[: max(left, 0)]
    assert "".join(chunk.text for chunk in chunks) == expected
    assert "" not in read.passages


def test_an_input_may_be_cut_to_so_many_characters_first() -> None:
    """As SCROLLS does for NarrativeQA, where the document stands last; a query is never cut."""
    read, _ = asked_for(Truncate(characters=100), example(FIRST), by_characters(1000))
    assert text_of(read) == FIRST.around(STORY)[:100]
    read, _ = asked_for(Truncate(characters=100), example(FIRST), by_characters(40))
    assert text_of(read) == FIRST.around(STORY)[:40]
    with pytest.raises(ValueError, match="but this one ends with a query"):
        asked_for(Truncate(characters=100), example(ASKED), by_characters(1000))


def test_a_task_without_official_input_is_refused() -> None:
    """The user is told what cuts the same way."""
    with pytest.raises(UserError, match="on_overflow: truncate and the combiner Stuff"):
        asked_for(Truncate(), Example("mine", Document("d", "text")), by_characters(9))


# -- to the token --------------------------------------------------------------------------------


def test_the_cut_is_that_of_the_t5_runner(models: Path) -> None:
    """Token by token, wherever in a word the cut is."""
    for limit in range(60, 180):
        made = reader(models / "t5", limit)
        read, _ = asked_for(Truncate(), example(ASKED), made.fit, made)
        assert ids(made, read) == official_ids(models / "t5", ASKED, STORY, limit)


def test_the_cut_of_scrolls_is_the_tokenizers_own(models: Path) -> None:
    """Token by token."""
    tokens: Any = AutoTokenizer.from_pretrained(str(models / "bart"))
    for limit in range(20, 140):
        made = reader(models / "bart", limit)
        read, _ = asked_for(Truncate(), example(FIRST), made.fit, made)
        theirs = tokens(FIRST.around(STORY), max_length=limit, truncation=True)["input_ids"]
        assert ids(made, read) == theirs


# -- in a run ------------------------------------------------------------------------------------


@pytest.fixture
def written(models: Path, tmp_path: Path) -> Path:
    """A ZeroSCROLLS file with one question on a story that exceeds the window."""
    row = zero_scrolls_row(
        "a", before=ASKED.before, text=STORY, query="Who writes every soul down?",
        output="Grigor", truncation_seperator=SEPARATOR,
    )  # fmt: skip
    assert row["input"] == ASKED.around(STORY)
    place = tmp_path / "zero_scrolls/squality/validation.jsonl"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(row) + "\n", encoding="utf-8")
    made = {
        "class": "Seq2Seq", "model": str(models / "t5"), "prompt": "{context}", "separator": "",
        "max_input_tokens": 120, "on_overflow": "slice", "max_new_tokens": 4, "device": "cpu",
    }  # fmt: skip
    config = {
        "pipelines": {
            "cut": {"reader": made, "combiner": {"class": "Truncate"}},
        },
        "tasks": {"story": {"class": "ZeroScrolls", "name": "squality", "data": str(tmp_path)}},
    }
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def test_the_ledger_counts_what_is_left_of_the_document(
    written: Path, models: Path, tmp_path: Path
) -> None:
    """What stands before the separator is read, the rest is cut; the prompt counts as neither."""
    done = run(["cut"], ["story"], config=[written], out=tmp_path / "out", workers=0)
    [prediction] = done.predictions("cut", "story")
    assert done.failures == 0
    [seen] = prediction.read
    made = reader(models / "t5", 120)
    read, _ = asked_for(Truncate(), example(ASKED), made.fit, made)
    [part] = made._window.parts(read)
    [chunk] = [passage for passage in part.passages if isinstance(passage, Chunk)]
    assert (seen.start, seen.end) == (0, chunk.end)
    assert prediction.coverage.selected == prediction.coverage.document == len(STORY)
    assert prediction.coverage.read == chunk.end
    assert prediction.coverage.cut == len(STORY) - chunk.end


# -- The middle cut out ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bytes_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer of bytes with a special token in front, as Llama 3 has."""
    made = RustTokenizer(BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<s>"], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator([STORY], trainer)
    made.post_processor = processors.TemplateProcessing("<s> $A", None, [("<s>", 0)])
    path = tmp_path_factory.mktemp("bytes") / "tokenizer.json"
    made.save(str(path))
    return path


@given(
    st.integers(2, 90),
    st.lists(st.sampled_from(["soul", " ", "\n", "  ", "é", "Who", "x1", ".", "灯"]), max_size=40),
)
def test_the_middle_is_cut_as_the_benchmarks_own_code_cuts_it(
    bytes_tokenizer: Path, tokens: int, words: list[str]
) -> None:
    """Two halves of the tokens, decoded and joined, are what is read: but for halved characters."""
    one = example(ASKED, "".join(words))
    read, answer = asked_for(TruncateMiddle(tokens, str(bytes_tokenizer)), one, lambda _: 0)
    theirs = RustTokenizer.from_file(str(bytes_tokenizer))
    prompt, half = ASKED.around(one.document.text), tokens // 2
    if len(ids := theirs.encode(prompt).ids) > tokens:
        prompt = theirs.decode(ids[:half]) + theirs.decode(ids[-half:])
    if "\ufffd" not in prompt:
        assert text_of(read) == prompt
    assert answer == "said"
    for chunk in (each for each in read.passages if isinstance(each, Chunk)):
        assert chunk.text == one.document.text[chunk.start : chunk.end]


def test_longbenchs_rows_write_as_much_as_the_authors_let_models_write() -> None:
    """Each task has a pipeline of its own length."""
    rows = {name: row for name, [row] in load_config().pipelines.items() if "middle" in name}
    lengths = {
        task: row.stages["reader"].resolved()["max_new_tokens"]
        for row in rows.values()
        for task in row.tasks
    }
    official = {f"longbench/{name}": data for name, data in data_of("longbench").items()}
    assert lengths == {name: data["max_new_tokens"] for name, data in official.items()}
