"""The naive baselines: what they answer, what they copied it from, and how they are learned."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import naive
from leporello import readers
from leporello.api import load_pipelines, run
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

TEXT = "A fox sat on a gate. It saw  nothing,\nand it said so. 猫も。 The gate was old."
DOCUMENT = Document("d", TEXT, parts=(Span(0, 20), Span(21, 54), Span(55, len(TEXT))))
LETTERS = ("A", "B", "C", "D")

BENCHMARKS_OWN = [
    *(f"scrolls-bart-{tokens}" for tokens in (256, 512, 1024)),
    *(f"scrolls-led-{tokens}" for tokens in (1024, 4096, 16384)),
    *(f"zero-scrolls-flan-t5-{tokens}" for tokens in (512, 1024, 2048, 4096, 8192)),
]


def whole(document: Document = DOCUMENT) -> Chunk:
    """Returns a document as one chunk."""
    return document.chunk(0, len(document.text))


def answer(reader: Reader, read: Read) -> Output:
    """Returns what is answered to one input."""
    [output] = reader.read([read])
    return output


# -- learned from a train split --------------------------------------------------------------


def test_a_prefix_is_a_share_of_all_characters() -> None:
    """Passages count as one text; what is copied of the document is read."""
    read = Read(("Who sat?\n\n", whole()))
    output = answer(Prefix(0.25), read)
    both = "Who sat?\n\n" + TEXT
    length = int(0.25 * len(both))
    assert output.text == both[:length].strip()
    assert output.read == (Span(0, length - 10),)
    assert output.cut == len(both) - length
    assert answer(Prefix(0.0), read) == Output("", read=(), cut=len(both))
    assert answer(Prefix(3.0), read).text == both
    assert answer(Prefix(0.5), Read(())).text == ""


def test_a_majority_option_is_the_choice_at_its_place() -> None:
    """Places count from 1; a place that is not there fails the input."""
    read = Read((whole(),), choices=("x", "y"))
    assert answer(MajorityOption(2), read) == Output("y", read=(), cut=len(TEXT))
    with pytest.raises(ValueError, match="no option 3 among 2 choices"):
        answer(MajorityOption(3), read)


def test_a_majority_answer_belongs_to_its_question() -> None:
    """A question that was not learned fails the input."""
    reader = MajorityAnswer({"Nobody sat.": "Contradiction"})
    assert answer(reader, Read((whole(),), "Nobody sat.")).text == "Contradiction"
    with pytest.raises(ValueError, match="lacks the question 'Somebody sat"):
        answer(reader, Read((whole(),), "Somebody sat."))


@pytest.mark.parametrize(
    ("reader", "parameter"),
    [(Prefix(), "share"), (MajorityOption(), "option"), (MajorityAnswer(), "answers")],
)
def test_what_was_not_learned_is_refused(reader: Reader, parameter: str) -> None:
    """The message states what to give, before any work where a task is known."""
    told = rf"`{parameter}` is not set: set it to the .* the train split"
    with pytest.raises(UserError, match=told):
        answer(reader, Read((whole(),), choices=("x",)))
    with pytest.raises(UserError, match=told):
        check_files(reader, "data of a task")
    check_files(reader)


# -- fixed ------------------------------------------------------------------------------------


def test_fixed_answers() -> None:
    """The answer is the same for all; the given order has as many numbers as the document parts."""
    read = Read((whole(),), "Who?")
    assert FixedAnswer("50%").read([read, Read(())]) == [
        Output("50%", read=(), cut=len(TEXT)),
        Output("50%", read=()),
    ]
    assert answer(GivenOrder(), read) == Output("1, 2, 3", read=(), cut=len(TEXT))
    for without in (Read(("text",)), Read((whole(Document("d", TEXT)),))):
        with pytest.raises(ValueError, match="this one has none"):
            answer(GivenOrder(), without)


# -- random -----------------------------------------------------------------------------------


@given(
    texts=st.lists(st.text("ab \n猫", max_size=30), max_size=4),
    words=st.integers(1, 12),
    seed=st.integers(0, 3),
)
def test_a_random_span_is_words_that_follow_each_other(
    texts: list[str], words: int, seed: int
) -> None:
    """As many as are wanted or there are; what is read is what is said, and the rest is cut."""
    joined = "\n".join(texts)
    document = Document("d", joined)
    starts = [sum(len(text) + 1 for text in texts[:n]) for n in range(len(texts))]
    chunks = [document.chunk(a, a + len(t)) for a, t in zip(starts, texts, strict=True)]
    reader = RandomSpan(words, seed=seed)
    output = answer(reader, Read(tuple(chunks)))
    every = [joined[a:b] for a, b in _offsets(joined)]
    said = [output.text[a:b] for a, b in _offsets(output.text)]
    assert len(said) == min(words, len(every))
    assert said in [every[n : n + len(said)] for n in range(len(every) + 1)]
    assert output.read is not None
    assert "\n\n".join(joined[span.start : span.end] for span in output.read) == output.text
    assert output.cut == sum(map(len, texts)) - sum(map(len, output.read))


def _offsets(text: str) -> list[tuple[int, int]]:
    from leporello.text.tokens import Words

    return [(int(start), int(end)) for start, end in Words().offsets(text)]


def test_a_random_answer_is_any_of_those_given_or_of_the_choices() -> None:
    """Each as often as the others; without any, the input fails."""
    reads = [Read((whole(),), f"Question {n}?", choices=("x", "y")) for n in range(2000)]
    drawn = Counter(output.text for output in RandomAnswer(LETTERS).read(reads))
    assert set(drawn) == set(LETTERS)
    assert min(drawn.values()) > 420
    assert {output.text for output in RandomAnswer().read(reads)} == {"x", "y"}
    with pytest.raises(ValueError, match="no choices"):
        answer(RandomAnswer(), Read((whole(),)))


@pytest.mark.parametrize("kind", [RandomSpan(3), RandomAnswer(LETTERS)])
def test_what_is_random_depends_on_seed_question_and_passages_alone(kind: Any) -> None:
    """Neither on the order of the inputs nor on their company."""
    reads = [Read((whole(),), f"Question {n}?") for n in range(40)]
    alone = [answer(kind, read) for read in reads]
    order = random.Random(0).sample(range(40), 40)
    assert kind.read([reads[n] for n in order]) == [alone[n] for n in order]
    other = type(kind)(*(getattr(kind, name) for name in list(kind.__dict__)[:1]), seed=1)
    assert other.read(reads) != alone
    elsewhere = Document("e", TEXT)
    assert kind.read([Read((whole(elsewhere),), read.question) for read in reads]) != alone


# -- learning ---------------------------------------------------------------------------------


def row(name: str, given: str, output: str) -> dict[str, str]:
    """Returns a row as SCROLLS has it."""
    return {"id": name, "pid": f"{name}_0", "input": given, "output": output}


def split(data: Path, name: str, which: str, rows: list[dict[str, str]]) -> None:
    """Writes a split of a task."""
    place = data / "scrolls" / name / f"{which}.jsonl"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three tasks of SCROLLS with a train and a validation split, and one without the former."""
    options = "\n\n (A) a\n (B) b\n (C) c\n (D) d\n\n"
    for which in ("train", "validation"):
        split(tmp_path, "qasper", which, [
            row("1", "Who?\n\n" + "x" * 100, "y" * 10),
            row("1", "Who?\n\n" + "x" * 100, "y" * 30),
            row("2", "Who?\n\n" + "z" * 200, "y" * 10),
        ])  # fmt: skip
        split(tmp_path, "quality", which, [
            row(str(n), f"Q{n}{options}Story", gold) for n, gold in enumerate("acbcb")
        ])  # fmt: skip
        labels = ("Entailment", "Not mentioned", "Entailment")
        split(tmp_path, "contract_nli", which, [
            row(f"{n}{q}", f"{q} holds.\n\nContract {n}", label if q == "P" else "Not mentioned")
            for n, label in enumerate(labels) for q in "PQ"
        ])  # fmt: skip
    split(tmp_path, "gov_report", "validation", [row("1", "Report", "Summary")])
    return tmp_path


def test_what_is_learned_is_a_config_that_runs(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each pipeline on its own task; a task without a train split is told, and left out."""
    monkeypatch.setattr(sys, "argv", ["naive", str(data)])
    naive.main()
    printed = capsys.readouterr()
    assert "gov_report: " in printed.err
    assert "gov_report" not in printed.out
    tasks = {
        f"scrolls/{name}": {"class": "Scrolls", "name": name, "data": str(data)}
        for name in ("qasper", "quality", "contract_nli")
    }
    path = tmp_path / "naive.yaml"
    path.write_text(f"{printed.out}tasks: {json.dumps(tasks)}\n", encoding="utf-8")
    names = [f"scrolls-naive-{name}" for name in ("qasper", "quality", "contract_nli")]
    done = run(names, config=[path], out=tmp_path / "out", workers=0)
    assert [result.task for result in done.results] == list(tasks)
    assert done.failures == 0
    first, second = done.predictions("scrolls-naive-qasper", "scrolls/qasper")
    assert (first.prediction, second.prediction) == ("x" * 15, "z" * 30)
    assert second.coverage.read == 30
    said = [p.prediction for p in done.predictions("scrolls-naive-quality", "scrolls/quality")]
    assert said == ["b"] * 5
    assert done.results[2].scores["exact_match"] == pytest.approx(100 * 5 / 6)


# -- named pipelines -----------------------------------------------------------------------------


def test_the_baselines_of_the_papers_are_named_pipelines() -> None:
    """They read the official input, and add nothing to it."""
    pipelines = load_pipelines([]).pipelines
    for name in BENCHMARKS_OWN:
        [point] = pipelines[name]
        reader, combiner = (point.stages[key] for key in ("reader", "combiner"))
        assert reader.params["max_input_tokens"] == int(name.rpartition("-")[2])
        assert (reader.params["prompt"], reader.params["separator"]) == ("{context}", "")
        assert combiner.cls.__name__ == "Truncate"


@pytest.mark.parametrize(("benchmark", "count"), [("scrolls", 7), ("zero_scrolls", 10)])
def test_every_task_of_a_leaderboard_has_a_naive_baseline(benchmark: str, count: int) -> None:
    """Which runs on it unless told otherwise."""
    config = load_pipelines([])
    prefix = f"{benchmark.replace('_', '-')}-naive-"
    named = {n: points[0] for n, points in config.pipelines.items() if n.startswith(prefix)}
    assert len(named) == count
    for name, point in named.items():
        assert point.tasks == (f"{benchmark}/{name.removeprefix(prefix)}",)
        assert point.stages["reader"].cls.__name__ in readers.__all__
