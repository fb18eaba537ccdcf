"""Tests of the sample task."""

import logging
from pydoc_data import topics

import pytest

from leporello.tasks import Sample
from leporello.text.outline import heading


def test_every_answer_has_evidence() -> None:
    """Only questions on Python may be left out."""
    assert all(example_id.startswith("python-") for example_id in Sample().left_out)
    for example in Sample().examples():
        assert example.question.endswith("?")
        assert example.references
        assert example.instruction
        assert example.evidence
        assert all(span.end <= len(example.document.text) for span in example.evidence)


def test_a_topic_of_the_reference_is_a_section() -> None:
    documents = {example.document.id: example.document for example in Sample().examples()}
    python = documents["python"]
    assert len(python.sections) == len(topics.topics)
    assert heading(python, python.text.index("break\n\n")) != ""
    assert python.sections[-1].end == len(python.text)


def test_questions_without_evidence_in_this_python_are_skipped_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = Sample()
    count, fingerprint = len(list(before.examples())), before.fingerprint()
    monkeypatch.setattr(topics, "topics", {"break": "Another wording."})
    task = Sample()
    with caplog.at_level(logging.WARNING, logger="leporello"):
        remaining = [list(task.examples()) for _ in range(2)]
    assert len(task.left_out) + len(remaining[0]) == count + len(before.left_out)
    assert len(caplog.records) == 1
    assert all(example_id in caplog.text for example_id in task.left_out)
    assert task.fingerprint() != fingerprint
