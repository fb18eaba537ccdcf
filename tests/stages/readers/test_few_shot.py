"""Tests of sampling, rendering, counting and checking worked examples."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from command_line import ROOT, leporello, read_lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_models import STORY
from transformers import PreTrainedTokenizerFast

from leporello.api import run
from leporello.config import load_config
from leporello.core.errors import ConfigError, UserError
from leporello.core.records import Document, Read
from leporello.jobs.jobs import prepare
from leporello.jobs.options import JobOptions
from leporello.readers import CausalLM, Endpoint, Seq2Seq
from leporello.readers.prompting.few_shot import FewShot, Shot, draw
from leporello.readers.prompting.template import Template
from leporello.training import few_shot_examples

AnyReader: TypeAlias = Seq2Seq | CausalLM

DOCUMENT = Document("story", " ".join([STORY] * 4))
ROWS: list[dict[str, Any]] = [
    {"question": "Who barked?", "context": "The dog barked.", "answer": " the dog "},
    {"question": "Who rowed?", "passages": ["Ann slept.", "Bo rowed."], "answer": "Bo"},
    {"question": "Is it so?", "choices": ["yes", "no"], "answer": "no", "title": "T"},
    {"instruction": "Sum up.", "context": "Rain, and then more rain.", "answer": "It rained."},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "examples.jsonl", *map(json.dumps, ROWS))


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def reader(tiny: Callable[[str], str]) -> Callable[..., AnyReader]:
    """Returns a function that returns a reader with a tiny model."""

    def reader_with(name: str, **parameters: Any) -> AnyReader:
        kind = CausalLM if name in ("llama", "chat") else Seq2Seq
        defaults = {"max_input_tokens": 400, "max_new_tokens": 4, "device": "cpu"}
        return kind(tiny(name), **{**defaults, **parameters})

    return reader_with


def test_answers_follow_the_last_words_of_a_prompt(file: Path) -> None:
    template = Template("{instruction}\n{title}\n{context}\nQ: {question}\n{choices}\nA:", " / ")
    prompt = FewShot(template, tuple(sorted(draw(file, 9, 0), key=lambda s: s.answer))).render(
        Read(("He left.",), "Who left?", "Be brief.")
    )
    assert prompt == (
        "Ann slept. / Bo rowed.\nQ: Who rowed?\nA: Bo\n\n"
        "Sum up.\nRain, and then more rain.\nA: It rained.\n\n"
        "T\nQ: Is it so?\n(A) yes\n(B) no\nA: no\n\n"
        "The dog barked.\nQ: Who barked?\nA: the dog\n\n"
        "Be brief.\nHe left.\nQ: Who left?\nA:"
    )


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        ("{question}\n{context}", "q?\nc\nanswer: a\n\nQ?\nC\nanswer:"),
        ("{question}\n{context}\n", "q?\nc\nanswer: a\n\nQ?\nC\nanswer:"),
        ("{context} {question} A: ", "c q? A: a\n\nC Q? A: "),
        ("{context} {question}\n\n=>\n", "c q?\n\n=>\na\n\nC Q?\n\n=>\n"),
    ],
)
def test_answers_are_announced_after_a_prompt_that_ends_in_a_field(text: str, prompt: str) -> None:
    template, read = Template(text), Read(("C",), "Q?")
    assert FewShot(template, (Shot(context="c", question="q?", answer="a"),)).render(read) == prompt
    assert FewShot(template).render(read) == text.format(context="C", question="Q?")


def test_examples_are_earlier_turns_of_a_chat(file: Path, reader: Callable[..., AnyReader]) -> None:
    text, read = "{context}\n{question}", Read(("He left.",), "Who left?")
    chat = reader("chat", system="Be brief.", examples=file, shots=2, prompt=text)
    turns = [
        f"<|user|>{Template(text).render(shot.read)}</s><|assistant|>{shot.answer}</s>"
        for shot in draw(file, 2, 0)
    ]
    prompt = chat.render(read)
    assert prompt == "".join(
        ["<|system|>Be brief.</s>", *turns, "<|user|>He left.\nWho left?</s><|assistant|>"]
    )
    [output] = chat.read([read])
    tokens = PreTrainedTokenizerFast.from_pretrained(chat.model)
    assert output.input_tokens == len(tokens(prompt, add_special_tokens=False)["input_ids"])


@pytest.mark.parametrize("name", ["t5", "llama", "chat"])
@pytest.mark.parametrize("overflow", ["fit", "truncate", "split"])
def test_passages_are_cut_before_examples(
    name: str, overflow: str, file: Path, reader: Callable[..., AnyReader]
) -> None:
    limit = {"t5": 260, "llama": 400, "chat": 400}[name]
    few = reader(name, examples=file, shots=3, max_input_tokens=limit, on_overflow=overflow)
    chunks = tuple(DOCUMENT.chunk(i, i + 200) for i in range(0, 1000, 200))
    read = Read(chunks, "Who had a cat?", choices=("the youngest", "nobody"))
    [output] = few.read([read])
    prompt = few.render(read)
    count = prompt.lower().count("question: who had a cat?")
    for shot in draw(file, 3, 0):
        assert prompt.count(few._prompts.template.render(shot.read)) == count > 0
    assert "(A) the youngest\n(B) nobody" in prompt
    parts = few._window.parts(read)
    assert all(len(few._prompt(part).tokens) <= limit for part in parts)
    assert (output.cut > 0) is (overflow != "split")
    assert len(parts) > 1 or overflow != "split"
    assert few.fit(read) < reader(name, max_input_tokens=limit).fit(read)


def test_examples_without_room_are_refused(file: Path, reader: Callable[..., AnyReader]) -> None:
    for name in ("t5", "llama", "chat"):
        few = reader(name, examples=file, max_input_tokens=60)
        with pytest.raises(UserError, match=r"4 examples take \d+ tokens .* lower shots"):
            few.load()


@given(count=st.integers(1, 12), shots=st.integers(0, 14), seed=st.integers(0, 99))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_sample_depends_on_the_seed(count: int, shots: int, seed: int, tmp_path: Path) -> None:
    rows = (json.dumps({"question": str(n), "answer": "a"}) for n in range(count))
    path = write(tmp_path / f"{count}.jsonl", *rows)
    numbers = [int(shot.read.question) for shot in draw(path, shots, seed)]
    assert len(numbers) == len(set(numbers)) == min(shots, count)
    everything = draw(path, count, seed)
    assert sorted(int(shot.read.question) for shot in everything) == list(range(count))
    assert draw(path, shots, seed) == everything[:shots]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"question": "Why?"}', "answer: Field required"),
        ('{"question": "Why?", "answer": " "}', "answer: String should have at least 1 character"),
        ('{"question": "Why?", "anwser": "a"}', "not permitted; did you mean 'answer'"),
        ('{"passages": ["a", 1], "answer": "a"}', "passages.1: must be a valid string"),
        ('{"context": "", "answer": "a"}', "has neither question nor context"),
        ('{"question": "Q", "choices": ["yes", "no"], "answer": "Yes"}',
         "answer 'Yes' is not one of the choices; did you mean 'yes'"),
        ("question: Why?", "expected value at line 1 column 1; each line must be an object"),
        ('["Q", "a"]', "each line must be an object like {"),
    ],
)  # fmt: skip
def test_faults_in_a_file_have_their_line(line: str, message: str, tmp_path: Path) -> None:
    good = json.dumps(ROWS[0])
    path = write(tmp_path / "mine.jsonl", f"\ufeff{good}", "", line, good, line)
    endpoint = Endpoint("http://127.0.0.1:1/v1", "m", examples=path)
    for reader in (Seq2Seq("m", examples=path), CausalLM("m", examples=path), endpoint):
        with pytest.raises(ConfigError) as caught:
            reader.check_files("")
        faults = caught.value.faults
        assert {(fault.file, fault.line) for fault in faults} == {(path, 3), (path, 5)}
        assert message in "\n".join(fault.text for fault in faults if fault.line == 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [('{"question": "Why?"}', "drawn.jsonl:1: answer: Field required"), (None, "no such")],
)
def test_examples_are_checked_before_a_run(
    text: str | None, message: str, splits: Path, tmp_path: Path
) -> None:
    if text:
        write(tmp_path / "drawn.jsonl", text)
    assert load_config([splits])
    process = leporello("check", "--config", splits, status=2)
    assert re.search(f"few.reader: .*{message}", process.stderr)
    with pytest.raises(UserError, match=message):
        run(["few"], ["rows"], config=[splits], out=tmp_path / "out", cached=False, workers=0)
    assert not (tmp_path / "out").exists()


SPLITS = """\
pipelines:
  plain:
    chunker: {class: Sentences, size: 12}
    retriever: {class: BM25, k: 1}
    reader: {class: BestSentence}
  each: {extends: plain, combiner: {class: Refine}}
  few:
    extends: plain
    reader: {class: Endpoint, base_url: "http://127.0.0.1:1/v1", model: m, examples: drawn.jsonl}
tasks:
  rows: {class: JsonLines, path: "{split}.jsonl", split: test}
"""


@pytest.fixture
def splits(tmp_path: Path) -> Path:
    """Returns a config with a task that has a train split and a test split."""
    for split, numbers in (("train", range(10)), ("test", range(10, 14))):
        rows = [
            {"id": f"{split}-{n}", "question": "Who rowed the boat?",
             "document": f"Nobody slept. Person {n} rowed the boat. All was well.",
             "references": [f"Person {n}"] if n != 7 else []}
            for n in numbers
        ]  # fmt: skip
        write(tmp_path / f"{split}.jsonl", *map(json.dumps, rows))
    return write(tmp_path / "splits.yaml", SPLITS)


def test_examples_are_sampled_from_the_train_split(splits: Path, tmp_path: Path) -> None:
    verb = ("examples", "plain", "--config", splits, "--task", "rows", "--no-cache")
    process = leporello(*verb, "-n", "4", "--out", tmp_path / "drawn.jsonl")
    assert process.stdout.splitlines() == [
        "4 worked examples; to show them to a reader:",
        f"--set reader.examples={tmp_path / 'drawn.jsonl'}",
    ]
    rows = read_lines(tmp_path / "drawn.jsonl")
    options: dict[str, Any] = {"config": [splits], "cached": False}
    for row in rows:
        number = row["id"].removeprefix("train-")
        assert row["answer"] == f"Person {number}"
        assert row["passages"] == [f"Nobody slept. Person {number} rowed the boat. All was well."]
    assert "train-7" not in [row["id"] for row in rows]
    for count, seed, expected in ((2, 1, 2), (99, 0, 9)):
        out = tmp_path / f"{count}.jsonl"
        result = few_shot_examples("plain", "rows", count=count, seed=seed, out=out, **options)
        again = read_lines(result.file)
        assert (result.examples, result.skipped, result.split) == (expected, 0, "train")
        assert (again[:2] == rows[:2], len(again)) == (seed == 0, expected)
    with pytest.raises(UserError, match="already exists"):
        few_shot_examples("plain", "rows", out=tmp_path / "drawn.jsonl", **options)
    with pytest.raises(UserError, match="Refine has no method `supervise`; use Stuff"):
        few_shot_examples("each", "rows", out=tmp_path / "each.jsonl", **options)


def test_examples_from_the_split_of_the_run_are_refused(splits: Path, tmp_path: Path) -> None:
    file = tmp_path / "drawn.jsonl"
    few_shot_examples("plain", "rows", count=2, config=[splits], out=file, cached=False)
    assert prepare(JobOptions(["few"], ["rows"], config=[splits]))
    message = r"few.reader: the worked example 'train-\d' was drawn from"
    with pytest.raises(UserError, match=message):
        prepare(JobOptions(["few"], ["rows"], config=[splits], split="train"))


def test_examples_from_a_document_of_the_input_are_refused(
    tmp_path: Path, reader: Callable[..., AnyReader]
) -> None:
    """Splits may share documents; the reader compares hashes of documents."""
    row = {"question": "Q", "answer": "a", "id": "x", "document_sha256": DOCUMENT.sha256}
    path = write(tmp_path / "own.jsonl", json.dumps(row))
    for name in ("t5", "llama"):
        few = reader(name, examples=path)
        with pytest.raises(UserError, match="example 'x' was drawn from document 'story'"):
            few.read([Read((DOCUMENT.chunk(0, 30),), "Who?")])
        few.read([Read((Document("other", "He left.").chunk(0, 8), DOCUMENT.text[:9]), "Who?")])


def test_the_examples_of_the_guide_are_valid(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "readers.md").read_text(encoding="utf-8")
    section = guide[guide.index("## Models that copy") :]
    [rows] = re.findall(r"```json\n(.*?)```", section, re.DOTALL)
    path = write(tmp_path / "examples.jsonl", rows)
    assert len(draw(path, 9, 0)) == 2
    configs = re.findall(r"```yaml\n(pipelines:\n.*?)```", section, re.DOTALL)
    blocks = [text for text in configs if "Extractive" in text or "examples" in text]
    for number, block in enumerate(blocks):
        load_config([write(tmp_path / f"{number}.yaml", block)])
    assert len(blocks) >= 2
