"""Tests of readers by role in a config, and of messages about faults."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from leporello.config import PipelineSpec, load_config
from leporello.core.calls.contracts import StageError
from leporello.core.errors import ConfigError
from leporello.readers import BestSentence, Lead

READERS = "readers: {answer: BestSentence, words: {class: Lead, words: 9}}"


def _points(folder: Path, text: str, *overrides: str) -> Mapping[str, Sequence[PipelineSpec]]:
    file = folder / "mine.yaml"
    file.write_text(f"pipelines:\n{text}\n")
    return load_config([file], overrides, ["mine"] if overrides else ()).pipelines


def test_each_role_has_its_reader_and_no_role_is_that_of_answers(tmp_path: Path) -> None:
    """A role that no stage names is not a fault."""
    [point] = _points(tmp_path, f"  mine: {{{READERS}}}")["mine"]
    assert point.unasked() == ["words"]
    stages = point.build()
    assert isinstance(stages.reader, BestSentence)
    assert stages.reader_of("") is stages.reader_of("answer") is stages.reader
    assert stages.reader_of("words") == Lead(words=9)
    assert point.resolved()["readers"] == {"words": {"class": "Lead", "words": 9}}
    with pytest.raises(StageError, match="no reader has the role 'word'; did you mean 'words'"):
        stages.reader_of("word")


def test_a_single_reader_has_all_roles(tmp_path: Path) -> None:
    text = "  mine: {reader: Lead, combiner: {class: MapReduce, map_role: summarise}}"
    [point] = _points(tmp_path, text)["mine"]
    assert point.build().reader_of("summarise") == Lead()


def test_readers_are_merged_role_by_role_and_swept(tmp_path: Path) -> None:
    text = f"  base: {{{READERS}}}\n  mine: {{extends: base, readers: {{words: {{words: 3}}}}}}"
    [point] = _points(tmp_path, text)["mine"]
    assert point.readers["words"].params == {"words": 3}
    assert point.readers["answer"].name == "BestSentence"
    swept = _points(tmp_path, text, "readers.words.words=4,5", "readers.answer=Lead")["mine"]
    assert [p.name for p in swept] == [f"mine@readers.words.words={n}" for n in (4, 5)]
    assert {p.readers["answer"].name for p in swept} == {"Lead"}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            f"{READERS}, combiner: {{class: MapReduce, map_role: word}}",
            "mine.combiner.map_role: no reader has the role 'word'; did you mean 'words'",
        ),
        ("reader: Lead, " + READERS, "the pipeline has a `reader` too"),
        ("readers: {words: Lead}", "needs a reader, or `answer` among its readers"),
        ("readers: {answer: Lead, 'a b': Lead}", "must be a mapping of roles to readers"),
        ("readers: {answer: Lead, words: {class: Leed}}", "mine.readers.words.class"),
    ],
)
def test_faults_are_reported_with_their_line(tmp_path: Path, keys: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        _points(tmp_path, f"  mine: {{{keys}}}")
    assert message in str(raised.value)
    assert "mine.yaml:2" in str(raised.value)


@pytest.mark.parametrize("override", ["readers={words: Lead}", "readers.a b=Lead"])
def test_set_changes_one_reader(override: str) -> None:
    with pytest.raises(ConfigError, match=r"with a path such as retriever\.k or readers\.ROLE"):
        load_config(overrides=[override], names=["lead"])
