"""Tests of the corpora of the Shuffle Test's paper, and of Scientific Papers."""

import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from row_files import write_rows

from leporello.core.errors import ConfigError, UserError
from leporello.tasks import ScientificPapers, ShuffleTest
from leporello.tasks.shuffle_test import sentences_of
from leporello.text.sentences import _punkt_tokenizer

TEXT = "Dr. Ina fixed the pump. It ran all night. By morning the cellar was dry."


def texts(task: ShuffleTest) -> list[str]:
    facts: list[Any] = [example.metadata["gold"] for example in task.examples()]
    return [*dict.fromkeys(str(fact["shuffle_test"]["document"]) for fact in facts)]


def test_bills_are_the_first_thousand_split_by_punkt(tmp_path: Path) -> None:
    rows = [{"bill_id": f"b{n}", "text": TEXT} for n in range(1002)]
    file = tmp_path / "billsum/us_test_data_final_OFFICIAL.jsonl"
    write_rows(file, {"bill_id": "e", "text": " "}, *rows)
    task = ShuffleTest(corpus="billsum", split="test", unit="punkt", data=tmp_path, shuffles=1,
                       block_sizes=(1,))  # fmt: skip
    ids = texts(task)
    assert (len(ids), ids[0], ids[-1]) == (1000, "b0", "b999")
    original = next(task.examples()).document.text
    assert original.splitlines()[0] == "Dr. Ina fixed the pump."


def test_posts_are_the_last_thousand_and_the_others_are_for_training(tmp_path: Path) -> None:
    file = tmp_path / "reddit_tifu/tifu_all_tokenized_and_filtered.json"
    usual = {"selftext_without_tldr": TEXT, "trimmed_title": "a title"}
    untitled = {"id": "none", **usual, "trimmed_title": ""}
    write_rows(file, untitled, *({"id": f"p{n}", **usual} for n in range(1003)))
    sizes: dict[str, Any] = {"data": tmp_path, "shuffles": 1, "block_sizes": (1,)}
    tested = texts(ShuffleTest(corpus="reddit_tifu", split="test", **sizes))
    assert (len(tested), tested[0], tested[-1]) == (1000, "p3", "p1002")
    assert texts(ShuffleTest(corpus="reddit_tifu", split="train", **sizes)) == ["p0", "p1", "p2"]


def test_articles_are_a_list_of_objects(tmp_path: Path) -> None:
    text = "One went.\nTwo came.\nThree stayed."
    write_rows(tmp_path / "shuffle_test/coherence_test_set.json", [{"text": text}])
    task = ShuffleTest(corpus="wsj", split="test", unit="line", data=tmp_path, shuffles=2)
    assert next(task.examples()).document.text == text


def test_faults_of_official_files_are_reported_with_their_lines(tmp_path: Path) -> None:
    write_rows(tmp_path / "billsum/us_test_data_final_OFFICIAL.jsonl", {"bill_id": "a", "txt": "x"})
    with pytest.raises(ConfigError, match=r"us_test_data_final_OFFICIAL\.jsonl:1: .*'text'"):
        ShuffleTest(corpus="billsum", split="test", data=tmp_path).check()
    with pytest.raises(UserError, match="tifu_all_tokenized"):
        ShuffleTest(corpus="reddit_tifu", split="test", data=tmp_path).check()
    with pytest.raises(UserError, match="no split 'tset'; did you mean 'test'"):
        ShuffleTest(corpus="wsj", split="tset", data=tmp_path).check()
    with pytest.raises(ValueError, match="either the path of a file, or a corpus"):
        ShuffleTest(tmp_path / "a.jsonl", corpus="wsj", split="test")


def test_punkt_has_the_sentences_of_nltk() -> None:
    """With the abbreviations and sentence starters of its data, and its runs of punctuation."""
    text = "Mr. Roe owns the U.S. Mint. So far . . . it runs (Fig. 2). Ok! ! Prof. E. Li left."
    assert sentences_of(text, "punkt") == [
        "Mr. Roe owns the U.S. Mint.", "So far .", ".", ".", "it runs (Fig.", "2).",
        "Ok!", "!", "Prof. E. Li left.",
    ]  # fmt: skip


def test_punkt_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _punkt_tokenizer.cache_clear()
    monkeypatch.setitem(sys.modules, "punkt", None)
    write_rows(tmp_path / "rows.jsonl", {"text": TEXT})
    with pytest.raises(UserError, match=r"pip install 'leporello\[shuffle-test\]'"):
        ShuffleTest(tmp_path / "rows.jsonl", unit="punkt").check()


PAPER = {
    "article_id": "p",
    "article_text": ["One .", "Two ."],
    "abstract_text": ["<S> Short . </S>"],
}


@pytest.mark.parametrize("zipped", [False, True])
def test_papers_are_read_from_folder_or_zip(tmp_path: Path, zipped: bool) -> None:
    inner = tmp_path / "scientific_papers/arxiv-dataset/val.txt"
    write_rows(inner, {**PAPER, "article_id": "e", "article_text": []}, PAPER)
    if zipped:
        with zipfile.ZipFile(inner.parent.with_suffix(".zip"), "w") as file:
            file.write(inner, "arxiv-dataset/val.txt")
        inner.unlink()
    [example] = ScientificPapers("arxiv", data=tmp_path).examples()
    assert (example.id, example.document.text) == ("p", "One .\nTwo .")
    assert example.references == ("Short .",)


def test_faults_of_papers_are_reported_with_their_lines(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="download it from https://github"):
        list(ScientificPapers("pubmed", data=tmp_path).examples())
    write_rows(tmp_path / "scientific_papers/arxiv-dataset/val.txt", {**PAPER, "article_text": "x"})
    with pytest.raises(UserError, match=r"val\.txt:1: .*'article_text' must be a list of texts"):
        list(ScientificPapers("arxiv", data=tmp_path).examples())
