"""Tests of the tasks of MuLD, SCROLLS and ZeroSCROLLS, on files in the official formats."""

import itertools
import random
import tracemalloc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from official_rows import STORY, official_input
from official_rows import scrolls_row as row
from official_rows import zero_scrolls_row as prompted
from row_files import json_lines, write_rows
from stories import zipped

from leporello.core.errors import ConfigError, UserError
from leporello.core.protocols import Task
from leporello.core.records import Document
from leporello.jobs.jobs import prepare
from leporello.jobs.options import JobOptions
from leporello.tasks import Muld, Scrolls, ZeroScrolls, zero_scrolls

Row = dict[str, Any]
OPTIONS = "\n\n (A) a fox\n (B) The gate\n (C) C\n (D) a dog, or two\n\n"


def put(data: Path, place: str, rows: Sequence[Row | str]) -> Path:
    write_rows(data / place, *rows)
    return data


def put_zip(data: Path, place: str, members: Mapping[str, bytes]) -> None:
    (data / place).parent.mkdir(parents=True, exist_ok=True)
    (data / place).write_bytes(zipped(members))


def by_document(task: Task) -> list[tuple[str, list[str]]]:
    """Returns the text of each document with the ids of its examples, grouped as in a run."""
    groups = itertools.groupby(task.examples(), key=lambda example: example.document)
    return [(document.text, [example.id for example in group]) for document, group in groups]


@pytest.mark.parametrize(
    ("name", "given_input", "parts"),
    [
        ("qasper", f"Who sat?\n\n{STORY}", ("Who sat?", STORY, ())),
        ("gov_report", f"Title\n\n{STORY}", ("", f"Title\n\n{STORY}", ())),
        ("summ_screen_fd", f"Title\n\n{STORY}", ("", f"Title\n\n{STORY}", ())),
        ("contract_nli", "Nobody sat.\n\nContract",
         ("Nobody sat.", "Contract", ("Entailment", "Contradiction", "Not mentioned"))),
        ("quality", f"Who sat (A) or (B)?{OPTIONS}{STORY}(A) is no option here.\n\n(B)",
         ("Who sat (A) or (B)?", f"{STORY}(A) is no option here.\n\n(B)",
         ("a fox", "The gate", "C", "a dog, or two"))),
    ],
)  # fmt: skip
def test_an_input_is_split(
    tmp_path: Path, name: Any, given_input: str, parts: tuple[str, str, tuple[str, ...]]
) -> None:
    """A query is before the first blank line, except in summaries; options have no letters."""
    put(tmp_path, f"scrolls/{name}/validation.jsonl", [row("a", given_input)])
    [example] = Scrolls(name, data=tmp_path, instruction="Say.").examples()
    assert (example.question, example.document.text, example.choices) == parts
    assert (example.instruction, example.references) == ("Say.", ("gold",))
    assert official_input(example) == given_input


def test_the_hard_questions_are_a_separate_task(tmp_path: Path) -> None:
    ids = {"a": 0, "b": 1, "c": True}
    rows = [row(i, f"Q{OPTIONS}{STORY}", is_hard=is_hard) for i, is_hard in ids.items()]
    put(tmp_path, "scrolls/quality/validation.jsonl", rows)
    hard = Scrolls("quality_hard", data=tmp_path)
    assert [example.id for example in hard.examples()] == ["b", "c"]
    assert len(hard) == 2
    groups = [example.group for example in Scrolls("quality", data=tmp_path).examples()]
    assert groups == ["easy", "hard", "hard"]


def test_a_pattern_skips_tasks_without_rows_and_all_missing_data_are_reported_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LEPORELLO_DATA", str(tmp_path))
    put(tmp_path, "scrolls/quality/validation.jsonl", [row("a", f"Q{OPTIONS}{STORY}")])
    [job] = prepare(JobOptions(["lead"], ["scrolls/qualit*"]))
    assert job.task.name == "scrolls/quality"
    assert "scrolls/quality_hard is skipped: " in caplog.text
    with pytest.raises(UserError, match="none of its 1 rows belongs to this task"):
        prepare(JobOptions(["lead"], ["scrolls/quality", "scrolls/quality_hard"]))
    with pytest.raises(UserError) as caught:
        prepare(JobOptions(["lead"], suite="scrolls", split="validation"))
    missing = str(caught.value).splitlines()
    assert len(missing) == 6
    assert all("`fetch scrolls/" in line for line in missing)


def test_rows_with_one_id_are_one_example(tmp_path: Path) -> None:
    golds = (("a", "first"), ("b", "other"), ("a", "second"), ("b", "other"), ("a", "third"))
    rows = [row(name, f"Q{name}\n\n{STORY}", gold) for name, gold in golds]
    rows.insert(4, row("c", "Q\n\nText", "far"))
    put(tmp_path, "scrolls/qasper/validation.jsonl", rows)
    task = Scrolls("qasper", data=tmp_path)
    references = {example.id: example.references for example in task.examples()}
    assert references == {"a": ("first", "second", "third"), "b": ("other", "other"), "c": ("far",)}
    assert len(task) == 3


def questions(stories: int = 7, per_story: int = 5) -> list[Row]:
    """Returns questions on some stories, each with two references."""
    texts = [f"{STORY}No. {number}" for number in range(stories)]
    return [
        row(f"{place}-{q}", f"Q{q}?\n\n{text}", f"gold {place} {q} {reference}")
        for place, text in enumerate(texts)
        for q in range(per_story)
        for reference in range(2)
    ]


def test_rows_of_a_document_share_it_in_any_order(tmp_path: Path) -> None:
    ordered = put(tmp_path / "a", "scrolls/narrative_qa/train.jsonl", questions())
    rows = questions()
    random.Random(5).shuffle(rows)
    shuffled = put(tmp_path / "b", "scrolls/narrative_qa/train.jsonl", rows)
    first, second = (Scrolls("narrative_qa", "train", data=data) for data in (ordered, shuffled))
    assert [len(ids) for _, ids in by_document(second)] == [5] * 7
    assert sorted((t, sorted(ids)) for t, ids in by_document(second)) == sorted(by_document(first))
    by_id = {e.id: (e.question, sorted(e.references)) for e in first.examples()}
    assert {e.id: (e.question, sorted(e.references)) for e in second.examples()} == by_id
    assert next(e.references for e in first.examples()) == ("gold 0 0 0", "gold 0 0 1")
    firsts = list(dict.fromkeys(r["input"].partition("\n\n")[2] for r in rows))
    assert [text for text, _ in by_document(second)] == firsts


def test_a_zip_and_a_folder_have_the_same_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of the data is a parameter, or an environment variable, or else `data`."""
    content = json_lines(questions())
    put(tmp_path / "data", "scrolls/qasper/validation.jsonl", questions())
    put(tmp_path / "other", "scrolls/qasper/validation.jsonl", questions(1))
    members = {"qasper/train.jsonl": b"nonsense", "qasper/validation.jsonl": content}
    put_zip(tmp_path / "given", "scrolls/qasper.zip", members)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LEPORELLO_DATA", raising=False)
    folder, archive = Scrolls("qasper"), Scrolls("qasper", data=tmp_path / "given")
    assert by_document(folder) == by_document(archive)
    same = Document("", "")
    first, second = ([replace(e, document=same) for e in t.examples()] for t in (folder, archive))
    assert first == second
    assert (len(folder), len(archive)) == (35, 35)
    before = folder.fingerprint()
    put(tmp_path / "data", "scrolls/qasper/validation.jsonl", questions(2))
    assert folder.fingerprint() != before
    assert len(folder) == 10
    monkeypatch.setenv("LEPORELLO_DATA", str(tmp_path / "other"))
    assert len(by_document(Scrolls("qasper"))) == 1


def test_a_test_split_without_gold_runs(tmp_path: Path) -> None:
    rows = [row("a", f"Q\n\n{STORY}", None), {"id": "b", "input": f"Q\n\n{STORY}"}]
    put(tmp_path, "scrolls/qasper/test.jsonl", rows)
    examples = Scrolls("qasper", "test", data=tmp_path).examples()
    assert [(example.references, example.fault) for example in examples] == [((), "")] * 2


@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize(
    ("name", "query", "headers"),
    [
        ("squality", "Who sat?\nAnd why?", ("Story", "Question", "Answer")),
        ("gov_report", "", ("Story", "", "Answer")),
    ],
)
def test_a_prompt_is_split(
    tmp_path: Path, name: Any, query: str, headers: tuple[str, ...], over: bool
) -> None:
    given_row = prompted("a", query=query, over=over)
    put(tmp_path, f"zero_scrolls/{name}/validation.jsonl", [given_row])
    [example] = ZeroScrolls(name, data=tmp_path).examples()
    assert (example.document.text, example.instruction) == (STORY, "Read this. Answer well.")
    assert (example.question, example.headers) == (query, headers)
    assert official_input(example) == given_row["input"]


ASK = "Read this. Answer well."
BRIEF = f"{ASK} Do not provide any explanation."
TAGS = f"{BRIEF[:-1]}, and please highlight your final answer with <answer></answer> tags."


@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize(
    ("name", "chat", "before", "after"),
    [
        ("qasper", True, BRIEF, ""),
        ("qmsum", True, ASK, ""),
        ("qasper", "claude", f"\n\nHuman: {TAGS}", "\n\nAssistant: Answer: <answer>"),
        ("qmsum", "claude", f"\n\nHuman: {ASK}", "\n\nAssistant:"),
    ],
)
def test_chat_models_get_another_prompt(
    tmp_path: Path, name: Any, chat: Any, before: str, after: str, *, over: bool
) -> None:
    """As in the authors' code: no response header, and only summaries may have explanations."""
    given_row = prompted("a", query="Who sat?", over=over)
    put(tmp_path, f"zero_scrolls/{name}/validation.jsonl", [given_row])
    [example] = ZeroScrolls(name, chat=chat, data=tmp_path).examples()
    assert example.document.text == STORY
    prompt = f"{before}\n\nStory:\n{STORY}\n\nQuestion:\nWho sat?{after}"
    assert official_input(example) == prompt


def test_the_sentence_for_chat_models_is_not_repeated(tmp_path: Path) -> None:
    """Some copies of the data have it already."""
    given_row = prompted("a", query="Who sat?")
    given_row["input"] = given_row["input"].replace(ASK, BRIEF)
    for name in zero_scrolls._OFFSETS:
        given_row[name] += len(BRIEF) - len(ASK)
    put(tmp_path, "zero_scrolls/musique/validation.jsonl", [given_row])
    [example] = ZeroScrolls("musique", chat=True, data=tmp_path).examples()
    assert (example.instruction, example.document.text) == (BRIEF, STORY)


def test_inner_documents_are_parts(tmp_path: Path) -> None:
    text = "Review 1:\nfine\n\nReview 2:\nbad\n\n"
    given_row = prompted("a", text=text, output="50%")
    start = given_row["document_start_index"]
    given_row["inner_docs_start_indices"] = [start, start + 16]
    put(tmp_path, "zero_scrolls/space_digest/validation.jsonl", [given_row])
    [example] = ZeroScrolls("space_digest", data=tmp_path).examples()
    texts = [example.document.text[part.start : part.end] for part in example.document.parts]
    assert texts == ["Review 1:\nfine", "Review 2:\nbad"]


def test_options_in_a_prompt_are_choices(tmp_path: Path) -> None:
    query = "Who sat?\n\n (A) a fox\n (B) The gate\n (C) C\n (D) a dog"
    given_row = prompted("a", query=query, output="B", header="Question and Possible Answers")
    put(tmp_path, "zero_scrolls/quality/validation.jsonl", [given_row])
    [example] = ZeroScrolls("quality", data=tmp_path).examples()
    assert (example.question, example.references) == ("Who sat?", ("B",))
    assert example.choices == ("a fox", "The gate", "C", "a dog")
    assert example.headers[1] == "Question and Possible Answers"
    assert official_input(example) == given_row["input"]


@pytest.mark.parametrize(
    ("given_input", "question", "text"),
    [
        ("Who sat? \ufeffA fox? It sat.", "Who sat?", "A fox? It sat."),
        ("Name who sat. <html>\nA fox?", "Name who sat.", "<html>\nA fox?"),
        ("Who sat? A fox? It sat.\nTwice?", "Who sat?", "A fox? It sat.\nTwice?"),
        ('Who said "What?" A fox.', 'Who said "What?"', "A fox."),
        ("Who sat? And where?\n\nA fox?", "Who sat? And where?", "A fox?"),
        ("Who sat?", "Who sat?", ""),
    ],
)
def test_a_question_is_separated_from_a_book(
    tmp_path: Path, given_input: str, question: str, text: str
) -> None:
    put(tmp_path, "muld/narrativeqa_test.json.bz2", [{"input": given_input, "output": ["x", "y"]}])
    [example] = Muld("narrativeqa", data=tmp_path).examples()
    assert (example.question, example.document.text) == (question, text)
    assert (example.id, example.references) == ("test-0", ("x", "y"))
    assert (example.fault, official_input(example)) == ("", given_input)


SUBTITLES = "Hello.\nBye."


@pytest.mark.parametrize(
    ("name", "given_input", "output", "references"),
    [
        ("opensubtitles", SUBTITLES, "Hallo.\nAde.", ("Hallo.\nAde.",)),
        ("opensubtitles", SUBTITLES, ["Hallo.", "Ade."], ("Hallo.\nAde.",)),
        ("vlsp", "1 Intro\n2 End", ["one", "two"], ("one", "two")),
        ("character_id", "Ann\nINT. NIGHT\nAnn sits.", "Villain/Antagonist",
         ("Villain/Antagonist",)),
    ],
)  # fmt: skip
def test_outputs_are_references(
    tmp_path: Path, name: Any, given_input: str, output: object, references: tuple[str, ...]
) -> None:
    """A list of subtitles is one reference, two abstracts are two; metadata is hidden as gold."""
    given_row = {"input": given_input, "output": output, "metadata": '{"pronoun": "es"}'}
    put(tmp_path, f"muld/{name}_test.json.bz2", [given_row])
    [example] = Muld(name, data=tmp_path).examples()
    assert example.references == references
    assert example.metadata["gold"] == {"pronoun": "es"}
    expected = ("Ann", ("Hero", "Villain/Antagonist")) if name == "character_id" else ("", ())
    assert (example.question, example.choices) == expected
    assert example.document.text == given_input.removeprefix("Ann\n")


@pytest.mark.parametrize(
    "output",
    [["1", "1", "2"], [1, 1, 2], "[1, 1, 2]", "1 1 2", ["1, 1, 2"]],
)
def test_authors_of_paragraphs_are_read_in_any_form(tmp_path: Path, output: object) -> None:
    given_row = {"input": "It was.\nIt is.\n\nThen\u2028so.", "output": output, "metadata": ""}
    put(tmp_path, "muld/style_change_test.json.bz2", [given_row])
    [example] = Muld("style_change", data=tmp_path).examples()
    texts = [example.document.text[part.start : part.end] for part in example.document.parts]
    assert texts == ["It was.", "It is.", "Then\u2028so."]
    assert (example.references, example.fault) == (("[1, 1, 2]",), "")
    assert "gold" not in example.metadata


def prompted_gold(gold: str) -> Row:
    return prompted("a", query="Q", output=gold)


MULTIPLE = row("a", f"Q{OPTIONS}{STORY}")
STYLE = {"input": "a\nb", "output": ["1", "2"]}


@pytest.mark.parametrize(
    ("task", "good", "changed", "fault"),
    [
        (ZeroScrolls("quality"), prompted_gold("A"), {"output": "the fox"},
         "gold answer 'the fox' has no letter A to D"),
        (ZeroScrolls("space_digest"), prompted_gold("1%"), {"output": "60"},
         "gold answer '60' has no percentage"),
        (ZeroScrolls("book_sum_sort"), prompted_gold("2, 1"), {"output": "1"},
         "gold answer '1' is not an order of at least two ids"),
        (ZeroScrolls("qmsum"), prompted_gold("x"), {"document_end_index": 9999},
         "offsets of document, its parts and query do not ascend within `input`"),
        (ZeroScrolls("qmsum"), prompted_gold("x"), {"query_start_index": 3},
         "offsets of document, its parts and query do not ascend within `input`"),
        (ZeroScrolls("qmsum"), prompted_gold("x"), {"inner_docs_start_indices": [40, 38]},
         "offsets of document, its parts and query do not ascend within `input`"),
        (Scrolls("qasper"), MULTIPLE, {"input": "one line"}, "`input` has no blank line"),
        (Scrolls("quality"), MULTIPLE, {"input": "Q\n\n (A) x\n\nstory"},
         "`input` has no options (A) to (D)"),
        (Muld("hotpotqa", "train"), {"input": "Who? Me.", "output": "x"}, {"input": "word " * 300},
         "no question is recognised"),
        (Muld("style_change", "train"), STYLE, {"input": "a\nb\nc"},
         "3 paragraphs, but 2 authors of paragraphs"),
        (Muld("style_change", "train"), STYLE, {"output": ["Ann", "Bob"]},
         'gold answer \'["Ann", "Bob"]\' is not a'),
        (Muld("character_id", "train"), {"input": "Ann\nScript", "output": "hero"},
         {"output": "Sidekick"}, "gold answer 'Sidekick' is not a label"),
    ],
)  # fmt: skip
def test_only_faulty_examples_fail(
    tmp_path: Path, task: Any, good: Row, changed: Row, fault: str
) -> None:
    is_muld = isinstance(task, Muld)
    folder = tmp_path / task.benchmark
    path = folder / (f"{task.name}_train.json.bz2" if is_muld else f"{task.name}/validation.jsonl")
    write_rows(path, good | changed, good | {"id": "b"})
    first, second = replace(task, data=tmp_path).examples()
    assert first.fault.startswith(f"{path.name}:1: {fault}")
    assert second.id == ("train-1" if is_muld else "b")
    assert (first.references, second.fault) == ((), "")
    assert second.references


OK = row("ok", f"Q\n\n{STORY}")


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ('{"id": "a", "input', "not JSON: Unterminated string starting at"),
        ("[1]", "a row must be an object {…}, got [1]"),
        ({"id": "a", "output": "x"}, "field 'input' is missing; the row has id, output"),
        ({"input": "Q\n\nT", "output": "x"}, "field 'id' is missing"),
        ({"id": 7, "input": "Q\n\nT"}, "field 'id' must be text, got 7"),
        (row("", "Q\n\nT"), "the row's id is empty"),
        (row("a", f"Q\n\n{STORY}", 7), "field 'output' must be text, got 7"),
        (row("ok", "Q\n\nOther"), "id 'ok' has another document on line 1"),
        (row("ok", f"Q2\n\n{STORY}"), "id 'ok' has another question on line 1"),
    ],
)
def test_a_faulty_row_is_named_by_its_line(tmp_path: Path, wrong: Row | str, fault: str) -> None:
    put(tmp_path, "scrolls/qasper/validation.jsonl", [OK, "", wrong])
    with pytest.raises(ConfigError) as caught:
        Scrolls("qasper", data=tmp_path).fingerprint()
    path = tmp_path / "scrolls/qasper/validation.jsonl"
    assert str(caught.value).startswith(f"{path}:3: {fault}")


def test_a_damaged_archive_is_an_error(tmp_path: Path) -> None:
    put_zip(tmp_path, "scrolls/qasper.zip", {"qasper/validation.jsonl": json_lines(questions())})
    path = tmp_path / "scrolls/qasper.zip"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(UserError, match=r"qasper\.zip .* is truncated or damaged after line 0"):
        Scrolls("qasper", data=tmp_path).fingerprint()
    noise = random.Random(4).choices("abcdef", k=1_500_000)  # compresses to many bytes
    rows = [row(str(n), "".join(noise[n::500])) for n in range(500)]
    path = write_rows(tmp_path / "muld/hotpotqa_validation.json.bz2", *rows)
    path.write_bytes(path.read_bytes()[:300_000])
    with pytest.raises(UserError, match=r"bz2: is truncated or damaged after line \d+: .*fetch it"):
        Muld("hotpotqa", "validation", data=tmp_path).fingerprint()


def test_a_row_without_the_gold_of_the_others_fails(tmp_path: Path) -> None:
    data = put(tmp_path, "scrolls/qasper/validation.jsonl",
               [row("a", "Who?\n\nA fox.", "a fox"), row("b", "Who?\n\nA cat.", None),
                row("c", "Who?\n\nA dog.", None), row("c", "Who?\n\nA dog.", "a dog")])  # fmt: skip
    faults = {e.id: e.fault for e in Scrolls("qasper", "validation", data).examples()}
    expected = "validation.jsonl:2: no gold answer, although other rows of the file have one"
    assert faults == {"a": "", "b": expected, "c": ""}


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (Scrolls("qasper", "dev"), "allowed: test, train, validation"),
        (ZeroScrolls("qasper", "train"), "allowed: test, validation"),
        (Muld("hotpotqa"), "allowed: train, validation"),
    ],
)
def test_an_unknown_split_is_an_error(task: Task, message: str) -> None:
    with pytest.raises(UserError, match=message):
        task.fingerprint()


def test_a_missing_file_or_split_without_rows_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        Scrolls("quality_hard", data=tmp_path).fingerprint()
    folder = tmp_path / "scrolls"
    assert str(caught.value) == (
        f"task scrolls/quality_hard: there is neither {folder}/quality/validation.jsonl nor"
        f" {folder}/quality.zip; `fetch scrolls/quality_hard` downloads it, --data or"
        " LEPORELLO_DATA sets its folder"
    )
    with pytest.raises(UserError, match=r"there is no .*/muld/vlsp_test\.json\.bz2;"):
        Muld("vlsp", data=tmp_path).fingerprint()
    put(tmp_path, "scrolls/qasper/validation.jsonl", ["", "  "])
    with pytest.raises(UserError, match="has no rows"):
        len(Scrolls("qasper", data=tmp_path))
    put_zip(tmp_path, "scrolls/qasper.zip", {"qasper/train.jsonl": json_lines([OK])})
    with pytest.raises(UserError, match=r"has no qasper/test\.jsonl; it contains qasper/train"):
        len(Scrolls("qasper", "test", data=tmp_path))


@pytest.mark.integration
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    text = "".join(random.Random(1).choices("abcdefgh \n", k=20_000))
    ids = [(q, place) for q in range(5) for place in range(60)]
    rows = [row(f"{q}-{place}", f"Q{q}?\n\nStory {place}. {text}") for q, place in ids]
    put_zip(tmp_path, "scrolls/narrative_qa.zip", {"narrative_qa/train.jsonl": json_lines(rows)})
    del rows
    task = Scrolls("narrative_qa", "train", data=tmp_path)
    tracemalloc.start()
    assert sum(1 for _ in task.examples()) == len(ids)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000
