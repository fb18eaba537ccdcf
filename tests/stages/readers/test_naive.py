"""Tests of the naive baselines, and of the recipe that learns them."""

import dataclasses
import json
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from command_line import HERE, leporello, read_lines
from hypothesis import given
from hypothesis import strategies as st
from official_rows import scrolls_row
from retrieval import joined
from row_files import write_rows

from benchmarks import naive
from leporello.core.calls.contracts import check_files
from leporello.core.errors import UserError
from leporello.core.protocols import Reader
from leporello.core.records import Chunk, Document, Output, Read, Span
from leporello.readers import (
    FixedAnswer,
    GivenOrder,
    MajorityAnswer,
    MajorityOption,
    Prefix,
    RandomAnswer,
    RandomSpan,
)
from leporello.text.tokens import Words

TEXT = "A fox sat on a gate. It saw  nothing,\nand it said so. 猫も。 The gate was old."
DOCUMENT = Document("d", TEXT, parts=(Span(0, 20), Span(21, 54), Span(55, len(TEXT))))
LETTERS = ("A", "B", "C", "D")


def complete(document: Document = DOCUMENT) -> Chunk:
    return document.chunk(0, len(document.text))


def answer(reader: Reader, read: Read) -> Output:
    [output] = reader.read([read])
    return output


def test_a_prefix_is_a_share_of_all_characters() -> None:
    read = Read(("Who sat?\n\n", complete()))
    output = answer(Prefix(0.25), read)
    both = "Who sat?\n\n" + TEXT
    length = int(0.25 * len(both))
    assert output.text == both[:length].strip()
    assert output.read == (Span(0, length - 10),)
    assert output.cut == len(both) - length
    assert answer(Prefix(0.0), read) == Output("", read=(), cut=len(both))
    assert answer(Prefix(3.0), read).text == both
    assert answer(Prefix(0.5), Read(())).text == ""


def test_a_majority_option_is_the_choice_with_a_number() -> None:
    read = Read((complete(),), choices=("x", "y"))
    assert answer(MajorityOption(2), read) == Output("y", read=(), cut=len(TEXT))
    with pytest.raises(ValueError, match="option 3 exceeds the number of choices, 2"):
        answer(MajorityOption(3), read)


def test_a_majority_answer_depends_on_the_question() -> None:
    reader = MajorityAnswer({"Nobody sat.": "Contradiction"})
    assert answer(reader, Read((complete(),), "Nobody sat.")).text == "Contradiction"
    with pytest.raises(ValueError, match="lacks the question 'Somebody sat"):
        answer(reader, Read((complete(),), "Somebody sat."))


@pytest.mark.parametrize(
    ("reader", "parameter"),
    [(Prefix(), "share"), (MajorityOption(), "option"), (MajorityAnswer(), "answers")],
)
def test_readers_that_have_not_learned_are_refused(reader: Reader, parameter: str) -> None:
    message = rf"`{parameter}` is not set: `train` learns it from the train split"
    with pytest.raises(UserError, match=message):
        answer(reader, Read((complete(),), choices=("x",)))
    with pytest.raises(UserError, match=message):
        check_files(reader, "data of a task")
    check_files(reader)


def test_a_fixed_answer_and_the_given_order_are_constant() -> None:
    read = Read((complete(),), "Who?")
    assert FixedAnswer("50%").read([read, Read(())]) == [
        Output("50%", read=(), cut=len(TEXT)),
        Output("50%", read=()),
    ]
    assert answer(GivenOrder(), read) == Output("1, 2, 3", read=(), cut=len(TEXT))
    for without in (Read(("text",)), Read((complete(Document("d", TEXT)),))):
        with pytest.raises(ValueError, match="this one has none"):
            answer(GivenOrder(), without)


@given(
    texts=st.lists(st.text("ab \n猫", max_size=30), max_size=4),
    words=st.integers(1, 12),
    seed=st.integers(0, 3),
)
def test_a_random_span_is_consecutive_words(texts: list[str], words: int, seed: int) -> None:
    complete = "\n".join(texts)
    output = answer(RandomSpan(words, seed=seed), Read(tuple(joined(texts, "\n"))))
    all_words, answer_words = (
        [text[start:end] for start, end in Words().offsets(text)]
        for text in (complete, output.text)
    )
    assert len(answer_words) == min(words, len(all_words))
    places = range(len(all_words) + 1)
    assert answer_words in [all_words[n : n + len(answer_words)] for n in places]
    assert output.read is not None
    assert "\n\n".join(complete[span.start : span.end] for span in output.read) == output.text
    assert output.cut == sum(map(len, texts)) - sum(map(len, output.read))


def test_a_random_answer_is_one_of_the_parameter_or_of_the_choices() -> None:
    reads = [Read((complete(),), f"Question {n}?", choices=("x", "y")) for n in range(2000)]
    counts = Counter(output.text for output in RandomAnswer(LETTERS).read(reads))
    assert set(counts) == set(LETTERS)
    assert min(counts.values()) > 420
    assert {output.text for output in RandomAnswer().read(reads)} == {"x", "y"}
    with pytest.raises(ValueError, match="no choices"):
        answer(RandomAnswer(), Read((complete(),)))


@pytest.mark.parametrize("kind", [RandomSpan(3), RandomAnswer(LETTERS)])
def test_random_outputs_depend_only_on_seed_question_and_passages(kind: Any) -> None:
    documents = (DOCUMENT, DOCUMENT, Document("e", TEXT))
    reads, again, others = (
        [Read((complete(document),), f"Question {n}?") for n in range(40)] for document in documents
    )
    outputs = kind.read(reads)
    assert [answer(kind, read) for read in again] == outputs
    assert kind.read(others) != outputs
    assert dataclasses.replace(kind, seed=1).read(reads) != outputs


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the tasks of SCROLLS, whose test splits have references here."""
    monkeypatch.setenv("LEPORELLO_DATA", str(tmp_path))

    def split(task: str, which: str, rows: Sequence[Mapping[str, object]]) -> None:
        write_rows(tmp_path / f"scrolls/{task}/{which}.jsonl", *rows)

    options = "\n\n (A) a\n (B) b\n (C) c\n (D) d\n\n"
    labels = ("Entailment", "Not mentioned", "Entailment")
    for which in ("train", "validation", "test"):
        for task in ("qasper", "qmsum", "narrative_qa"):
            split(task, which, [
                scrolls_row("1", "Who?\n\n" + "x" * 100, "y" * 10),
                scrolls_row("1", "Who?\n\n" + "x" * 100, "y" * 30),
                scrolls_row("2", "Who?\n\n" + "z" * 200, "y" * 10),
            ])  # fmt: skip
        for task in ("gov_report", "summ_screen_fd"):
            split(task, which, [scrolls_row("1", "A report. " * 10, "Summary")])
        split("quality", which, [
            scrolls_row(str(n), f"Q{n}{options}Story", gold, is_hard=n > 1)
            for n, gold in enumerate("acbcb")
        ])  # fmt: skip
        split("contract_nli", which, [
            scrolls_row(f"{n}{q}", f"{q} holds.\n\nContract {n}",
                        label if q == "P" else "Not mentioned")
            for n, label in enumerate(labels) for q in "PQ"
        ])  # fmt: skip
    return tmp_path


def test_the_naive_row_of_scrolls_is_learned_run_and_shown(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (data / "scrolls/qmsum/train.jsonl").rename(data / "away.jsonl")
    errors = leporello("train", "naive", "--suite", "scrolls", status=2).stderr
    assert "qmsum" in errors
    assert not (tmp_path / "models").exists()
    (data / "away.jsonl").rename(data / "scrolls/qmsum/train.jsonl")
    *_, command = leporello("train", "naive", "--suite", "scrolls").stdout.splitlines()
    again = leporello("train", "naive", "--suite", "scrolls")
    assert again.stdout.splitlines()[-1] == command
    assert again.stderr.count("--update trains it again") == 7
    errors = leporello("train", "naive", "--suite", "scrolls", "--limit", "1", status=2).stderr
    assert "already exists (--update replaces it)" in errors
    words = shlex.split(command)
    words = words[words.index("run") :]  # after the program's name
    assert words[:4] == ["run", "--suite", "scrolls", "naive-trained"]
    leporello(*words, "--out", tmp_path / "runs", *HERE)
    files = words[4:]
    table = json.loads(leporello("table", "scrolls", "runs", *files, "--format", "json").stdout)
    scores = {(r["column"], r["label"]): r for r in table["rows"] if r["row"] == "naive-trained"}
    assert len({column for column, _ in scores}) == 8  # with the average
    assert scores["quality", "EM-T"]["value"] == pytest.approx(40.0)
    assert scores["contract_nli", "EM"]["value"] == pytest.approx(100 * 5 / 6)
    [line] = [row for row in read_lines(next(tmp_path.glob("runs/*qasper*/**/predictions.jsonl")))
              if row["id"] == "2"]  # fmt: skip
    assert (line["prediction"], line["coverage"]["read"]) == ("z" * 30, 30)


def test_documents_are_left_out_where_at_least_two_have_references(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [scrolls_row(n, f"Who?\n\n{n * 100}", n * 10) for n in "123"]
    del rows[2]["output"]
    write_rows(data / "scrolls/qasper/validation.jsonl", *rows)
    monkeypatch.setattr(sys, "argv", ["naive", str(data)])
    naive.main()
    printed = capsys.readouterr()
    assert "qasper: 100.0 [100.0, 100.0], 2 examples, 2 documents" in printed.out
    assert "gov_report: fewer than two documents have references" in printed.err
