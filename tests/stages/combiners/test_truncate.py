"""Tests that Truncate cuts official prompts of benchmarks at the same token as their code."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from official_rows import zero_scrolls_row
from row_files import write_rows
from tiny_models import network, save
from tokenizers import Tokenizer as RustTokenizer
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
QUERY = "Question:\nWho writes every soul down?"
BEFORE = "You are given a story and a question. Answer it.\n\nStory:\n"
ASKED = OfficialPrompt(BEFORE, "\n\n", QUERY, "\n\nAnswer:\n", SEPARATOR)
FIRST = OfficialPrompt("Who writes every soul down?\n\n")  # the document is at the end: SCROLLS


def example(prompt: OfficialPrompt, text: str = STORY) -> Example:
    """Returns an example in the layout of a benchmark's task."""
    return Example("e", Document("d", text), "Who?", metadata=prompt.metadata())


def final_read(
    combiner: Truncate | TruncateMiddle,
    example: Example,
    fit: Callable[[Read], int],
    reader: Seq2Seq | None = None,
) -> tuple[Read, Any]:
    generator: Any = combiner.combine(example, ())
    answers: Any = None
    while isinstance(request := generator.send(answers)[0], Fit):
        if request.behind is None:
            answers = [fit(request.read)]
        else:
            answers = [reader.sliced(request.read, request.behind) if reader else -1]
    with pytest.raises(StopIteration) as stop:
        generator.send([Output("answer")])
    return request, stop.value.value


def text_of(read: Read) -> str:
    """Returns the prompt of a reader that adds nothing."""
    return "".join(map(passage_text, read.passages))


def by_characters(limit: int) -> Callable[[Read], int]:
    """Returns a function that counts the passages that fit a number of characters."""

    def fit(read: Read) -> int:
        ends = [len(text_of(Read(read.passages[:n]))) for n in range(1, len(read.passages) + 1)]
        return sum(end <= limit for end in ends)

    return fit


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of tiny models: a T5 with a tokenizer like T5's, and a BART."""
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


def reader(model: Path, limit: int) -> Seq2Seq:
    """Returns a reader that adds nothing to the prompt, and slices long prompts."""
    bare: dict[str, Any] = {"prompt": "{context}", "separator": "", "on_overflow": "slice"}
    return Seq2Seq(str(model), max_input_tokens=limit, max_new_tokens=4, device="cpu", **bare)


def ids(reader: Seq2Seq, read: Read) -> list[int]:
    [prompt] = reader._model_inputs(read, reader._window.parts(read))
    return list(prompt.tokens)


def official_ids(tokens: Any, prompt: OfficialPrompt, text: str, limit: int) -> list[int]:
    """Returns the tokens of a prompt in the T5 runner of the benchmark's authors."""
    uncut = list(tokens(prompt.around(text))["input_ids"])
    if len(uncut) <= limit:
        return uncut
    tail = list(tokens(prompt.separator + prompt.surviving)["input_ids"])
    head = list(tokens(prompt.before + text + prompt.between)["input_ids"])
    return head[: limit - len(tail)] + tail


@given(
    text=st.text(max_size=60),
    pieces=st.tuples(*[st.text(max_size=8)] * 5),
    limit=st.integers(0, 140),
    joint=st.sampled_from(["", " "]),
)
def test_the_document_is_cut_to_the_length_that_fits(
    text: str, pieces: tuple[str, str, str, str, str], limit: int, joint: str
) -> None:
    prompt = OfficialPrompt(*pieces)
    uncut = prompt.around(text)
    tail = prompt.separator + prompt.surviving
    tail = joint + tail if tail else ""
    prompted = example(prompt, text)
    if len(uncut) > limit < len(tail):
        with pytest.raises(ValueError, match="raise max_input_tokens"):
            final_read(Truncate(joint=joint), prompted, by_characters(limit))
        return
    read, value = final_read(Truncate(joint=joint), prompted, by_characters(limit))
    assert value == "answer"
    head = prompt.before + text + prompt.between
    cut = head[: limit - len(tail)] + tail
    assert text_of(read) == (uncut if len(uncut) <= limit else cut)
    length = len(text) if len(uncut) <= limit else limit - len(tail) - len(prompt.before)
    chunks = "".join(p.text for p in read.passages if isinstance(p, Chunk))
    assert chunks == text[: max(length, 0)]
    assert "" not in read.passages


def test_a_task_without_an_official_prompt_is_refused() -> None:
    with pytest.raises(UserError, match="on_overflow: truncate and the combiner Stuff"):
        final_read(Truncate(), Example("mine", Document("d", "text")), by_characters(9))


def test_tokens_equal_those_of_the_t5_runner(models: Path) -> None:
    tokens = AutoTokenizer.from_pretrained(str(models / "t5"))
    for limit in range(60, 180, 3):
        t5 = reader(models / "t5", limit)
        read, _ = final_read(Truncate(), example(ASKED), t5.fit, t5)
        assert ids(t5, read) == official_ids(tokens, ASKED, STORY, limit)


def test_tokens_equal_those_of_a_truncating_tokenizer(models: Path) -> None:
    """SCROLLS cuts in this way."""
    tokens: Any = AutoTokenizer.from_pretrained(str(models / "bart"))
    for limit in range(20, 140, 3):
        bart = reader(models / "bart", limit)
        read, _ = final_read(Truncate(), example(FIRST), bart.fit, bart)
        expected = tokens(FIRST.around(STORY), max_length=limit, truncation=True)["input_ids"]
        assert ids(bart, read) == expected


@pytest.fixture
def written(models: Path, tmp_path: Path) -> Path:
    """Config of a run on one question about a story that exceeds the input window."""
    row = zero_scrolls_row(
        "a", before=BEFORE, text=STORY, query=QUERY.removeprefix("Question:\n"), output="Grigor"
    )
    assert row["input"] == ASKED.around(STORY)
    write_rows(tmp_path / "zero_scrolls/squality/validation.jsonl", row)
    reader_settings = (
        f'class: Seq2Seq, model: {models / "t5"}, prompt: "{{context}}", separator: "",'
        "max_input_tokens: 120, on_overflow: slice, max_new_tokens: 4, device: cpu"
    )
    path = tmp_path / "mine.yaml"
    path.write_text(
        f"pipelines: {{cut: {{reader: {{{reader_settings}}}, combiner: Truncate}}}}\n"
        f"tasks: {{story: {{class: ZeroScrolls, name: squality, data: {tmp_path}}}}}\n"
    )
    return path


def test_the_coverage_counts_the_characters_before_the_separator_as_read(
    written: Path, models: Path, tmp_path: Path
) -> None:
    summary = run(["cut"], ["story"], config=[written], out=tmp_path / "out", workers=0)
    [prediction] = summary.predictions("cut", "story")
    assert summary.failures == 0
    [span] = prediction.read
    t5 = reader(models / "t5", 120)
    read, _ = final_read(Truncate(), example(ASKED), t5.fit, t5)
    [part] = t5._window.parts(read)
    [chunk] = [passage for passage in part.passages if isinstance(passage, Chunk)]
    assert (span.start, span.end) == (0, chunk.end)
    ledger = prediction.coverage
    assert ledger.selected == ledger.document == len(STORY)
    assert (ledger.read, ledger.cut) == (chunk.end, len(STORY) - chunk.end)


@pytest.fixture(scope="module")
def bytes_tokenizer(tiny: Callable[[str], str]) -> Path:
    """Byte-level tokenizer that prepends a special token, like that of Llama 3."""
    return Path(tiny("llama")) / "tokenizer.json"


@given(
    st.integers(2, 90),
    st.lists(st.sampled_from(["soul", " ", "\n", "  ", "é", "Who", "x1", ".", "灯"]), max_size=40),
)
def test_the_middle_is_cut_as_by_the_code_of_the_benchmark(
    bytes_tokenizer: Path, tokens: int, words: list[str]
) -> None:
    """The prompt is the decoded first and last tokens, unless a cut divides a character."""
    prompted = example(ASKED, "".join(words))
    read, answer = final_read(TruncateMiddle(tokens, str(bytes_tokenizer)), prompted, lambda _: 0)
    official = RustTokenizer.from_file(str(bytes_tokenizer))
    prompt, half = ASKED.around(prompted.document.text), tokens // 2
    if len(ids := official.encode(prompt).ids) > tokens:
        prompt = official.decode(ids[:half]) + official.decode(ids[-half:])
    if "\ufffd" not in prompt:
        assert text_of(read) == prompt
    assert answer == "answer"
    for chunk in (passage for passage in read.passages if isinstance(passage, Chunk)):
        assert chunk.text == prompted.document.text[chunk.start : chunk.end]


def test_pipelines_of_longbench_have_the_output_lengths_of_its_authors() -> None:
    rows = {name: row for name, [row] in load_config().pipelines.items() if "middle" in name}
    lengths = {
        task: row.stages["reader"].resolved()["max_new_tokens"]
        for row in rows.values()
        for task in row.tasks
    }
    official = {f"longbench/{name}": data for name, data in data_of("longbench").items()}
    assert lengths == {name: data["max_new_tokens"] for name, data in official.items()}
