"""Tests of LongBench, InfiniteBench and LooGLE: rows as in the official loaders, and faults."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from command_line import GOLDEN, write_files
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from official_rows import official_input
from row_files import write_rows
from stories import zipped

from leporello.core.errors import ConfigError, UserError
from leporello.core.protocols import Task
from leporello.tasks import InfiniteBench, LongBench, LongBenchV2, LooGLE

Row = dict[str, Any]
PROMPTS: list[Mapping[str, Any]] = json.loads(
    (GOLDEN / "long_context_prompts.json").read_text(encoding="utf-8")
)["cases"]


def written(data: Path, task: str, *rows: Row | str) -> Path:
    """Writes rows to the file of the task; returns the data directory."""
    bench, _, name = task.partition("/")
    file = {"longbench": f"data/{name}.jsonl", "longbench_v2": "data.json"}
    path = data / bench / file.get(bench, f"{name}.jsonl")
    is_list = bench == "longbench_v2"
    write_rows(path, *([json.dumps(rows, indent=4, ensure_ascii=False)] if is_list else rows))
    return data


def task_of(task: str, data: Path) -> Task:
    name: Any = task.partition("/")[2]
    builders: Mapping[str, Callable[[], Any]] = {
        "longbench": lambda: LongBench(name, data=data),
        "longbench_v2": lambda: LongBenchV2(data=data),
        "infinite_bench": lambda: InfiniteBench(name, data=data),
        "loogle": lambda: LooGLE(name, data=data),
    }
    return cast(Task, builders[task.partition("/")[0]]())


@pytest.mark.parametrize("case", PROMPTS, ids=lambda case: str(case["task"]))
def test_prompts_equal_those_of_the_official_code(case: Mapping[str, Any], tmp_path: Path) -> None:
    data = written(tmp_path, case["task"], case["row"])
    [example] = task_of(case["task"], data).examples()
    row = case["row"]
    text = row["input"] if "loogle" in case["task"] else row["context"]
    assert example.document.text == (text.strip() if "v2" in case["task"] else text)
    assert official_input(example) == case["prompt"]
    assert not example.fault
    assert all(line in case["prompt"] for line in example.instruction.split("\n"))
    if "answer" in case:
        wanted = case["answer"] if isinstance(case["answer"], list) else [case["answer"]]
        listed = [wanted] if "math_calc" in case["task"] else wanted
        read = [text if isinstance(text, str) else json.dumps(text) for text in listed]
        assert list(example.references) == read


texts = st.text(alphabet='ab {}\n"\\é雾.', max_size=30)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=4), st.sampled_from([None, 0, 4]))
def test_a_list_of_objects_is_read_row_by_row(
    tmp_path: Path, pairs: list[tuple[str, str]], indent: int | None
) -> None:
    more = {f"choice_{letter}": letter for letter in "ABCD"}
    more |= {"difficulty": "easy", "length": "short", "answer": "A"}
    rows = [
        {"_id": str(n), "question": question, "context": context, **more}
        for n, (context, question) in enumerate(pairs)
    ]
    content = json.dumps(rows, indent=indent, ensure_ascii=indent == 0)
    write_files(tmp_path, {"longbench_v2/data.json": content})
    examples = LongBenchV2(data=tmp_path).examples()
    texts_read = {e.id: (e.document.text, e.question) for e in examples}
    assert texts_read == {str(n): (c.strip(), q.strip()) for n, (c, q) in enumerate(pairs)}


def longbench(name: str = "qasper", **more: object) -> Row:
    fields = {"input": "Who?", "context": "He.", "answers": ["he"], "length": 1}
    return {**fields, "dataset": name, "language": "en", "all_classes": None, "_id": "a", **more}


V2: Row = {
    "_id": "a", "difficulty": "easy", "length": "short", "question": "Who?", "answer": "A",
    "context": "He.", **{f"choice_{letter}": letter for letter in "ABCD"},
}  # fmt: skip
INFINITE: Row = {"id": 1, "context": "He.", "input": "Who?", "answer": ["he"], "options": []}

FAULTY: list[tuple[str, Row | str, str]] = [
    ("longbench/qasper", "{", ":2: not JSON"),
    ("longbench/qasper", {"input": "x"}, ":2: field 'answers' is missing"),
    ("longbench/qasper", longbench(_id="b", answers="he"), ":2: field 'answers' must be a list"),
    ("longbench/trec", longbench(_id="b", all_classes=[1]), ":2: field 'all_classes' must be"),
    ("longbench/qasper", longbench(context="She."), ":2: id 'a' has another document on line 1"),
    ("infinite_bench/passkey", INFINITE | {"answer": 7, "id": 2}, ":2: field 'answer' must be"),
    ("infinite_bench/code_run", INFINITE | {"id": 2}, ":2: field 'answer' must be a number"),
    ("infinite_bench/code_run", INFINITE | {"answer": 7}, ":2: field 'input' must contain a call"),
    ("infinite_bench/code_debug", INFINITE, ":2: field 'answer' must be one of the options"),
    ("loogle/shortdep_qa", {"input": "He.", "qa_pairs": "none"}, ":2: field 'qa_pairs' must be"),
    ("loogle/shortdep_cloze", {"input": "x", "qa_pairs": [{"Q": "a", "A": "b"}]}, ":2: field 'A'"),
]  # fmt: skip


@pytest.mark.parametrize(("task", "row", "message"), FAULTY)
def test_faulty_rows_are_reported_with_file_and_line(
    tmp_path: Path, task: str, row: Row | str, message: str
) -> None:
    good: Mapping[str, Row] = {
        "longbench": longbench(answers=["he"]),
        "infinite_bench": next(
            c["row"] for c in reversed(PROMPTS) if c["task"] in (task, "infinite_bench/passkey")
        ),
        "loogle": next(c["row"] for c in PROMPTS if c["task"] in (task, "loogle/shortdep_qa")),
    }
    data = written(tmp_path, task, good[task.partition("/")[0]], row)
    with pytest.raises(ConfigError) as error:
        list(task_of(task, data).examples())
    assert f"{task.split('/')[1]}.jsonl{message}" in str(error.value)


@pytest.mark.parametrize(
    ("field", "value"), [("answer", "E"), ("difficulty", None), ("length", 3), ("choice_C", 1)]
)
def test_faults_of_v2_have_their_line(tmp_path: Path, field: str, value: object) -> None:
    data = written(tmp_path, "longbench_v2", V2, V2 | {"_id": "b", field: value})
    with pytest.raises(ConfigError, match=rf"data.json:{len(V2) + 4}: field '{field}' must be"):
        list(LongBenchV2(data=data).examples())


@pytest.mark.parametrize("text", ['[{"_id": "a"', '[{"a": {}}]', "no list", '[{"_id": "a"}'])
def test_a_truncated_list_is_an_error(tmp_path: Path, text: str) -> None:
    write_files(tmp_path, {"longbench_v2/data.json": text})
    with pytest.raises(UserError, match=r"is truncated or damaged|field|not JSON"):
        list(LongBenchV2(data=tmp_path).examples())


def test_the_zip_of_all_tasks_is_read(tmp_path: Path) -> None:
    (tmp_path / "longbench").mkdir()
    content = zipped({"data/qasper.jsonl": json.dumps(longbench())})
    (tmp_path / "longbench/data.zip").write_bytes(content)
    assert [e.question for e in LongBench("qasper", data=tmp_path).examples()] == ["Who?"]
    with pytest.raises(UserError, match="has no split 'train'"):
        list(LongBench("qasper", split="train", data=tmp_path).examples())


def test_loogle_reads_rows_of_either_kind(tmp_path: Path) -> None:
    pairs = [{"Q": f"Who, {n}?", "A": "he", "S": ["He.", "gone"]} for n in range(2)]
    rows: list[Row] = [
        {"input": "He. She.", "title": "t", "qa_pairs": pairs, "output": "none"},
        {"input": "They.", "title": "u", "qa_pairs": str(pairs), "output": "none"},
        {"context": "He. She.", "question": "Why?", "answer": "so", "evidence": ["She."]},
    ]
    data = written(tmp_path, "loogle/shortdep_qa", *rows)
    examples = list(LooGLE("shortdep_qa", data=data).examples())
    ids = [f"shortdep_qa-{place}" for place in ("0-0", "0-1", "2-0", "1-0", "1-1")]
    assert [example.id for example in examples] == ids
    spans = [[e.document.text[s.start : s.end] for s in e.evidence] for e in examples]
    assert spans == [["He."], ["He."], ["She."], [], []]
    assert len({id(example.document) for example in examples}) == 2
    assert len(LooGLE("shortdep_qa", data=data)) == 5


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("B", "The correct answer is (B)"), ("she", "The correct answer is (B)"), ("?", "?")],
)
def test_answers_of_v2_are_normalised_for_its_metric(answer: str, expected: str) -> None:
    """A letter or an option becomes the sentence that the metric requires."""
    [case] = [case for case in PROMPTS if case["task"] == "longbench_v2"]
    [example] = LongBenchV2()._take(0, case["row"])
    assert LongBenchV2().normalise(answer, example) == expected
