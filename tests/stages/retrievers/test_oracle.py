"""The retrievers Oracle, OracleAnswer and Mixed, and where references stand in a text."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from leporello import Chunk, Document, Example, Hit, Span
from leporello.chunkers import FixedTokens
from leporello.core.calls.contracts import sees_gold
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.core.notes import collect_notes
from leporello.retrievers import BM25, First, Fusion, Mixed, Neighbours, Oracle, OracleAnswer
from leporello.runs.run import run

TEXT = "The cat sat. A dog, old and blind, ran off. Nobody saw the cat again. The dog came back."


def _chunks(document: Document, size: int) -> tuple[Chunk, ...]:
    return divide(FixedTokens(size), document)


def _found(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.chunk.text.strip(), round(hit.score, 3)) for hit in hits]


def _span(part: str, text: str = TEXT) -> Span:
    return Span(text.index(part), text.index(part) + len(part))


def test_the_oracle_gives_the_chunks_with_most_evidence_first() -> None:
    """By the share of the evidence's characters; equal shares in document order, others never."""
    document = Document("d", TEXT)
    chunks = _chunks(document, 4)
    both = (_span("dog, old and blind"), _span("Nobody"))
    found = retrieve(Oracle(k=9), [Example("e", document, evidence=both)], chunks)[0]
    touched = [c for c in chunks if any(s.start < c.end and c.start < s.end for s in both)]
    assert {hit.chunk for hit in found} == set(touched)
    assert sum(hit.score for hit in found) == pytest.approx(1)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert retrieve(Oracle(k=1), [Example("e", document, evidence=both)], chunks)[0] == found[:1]
    equal = Document("d", "aa bb cc dd")
    asked = Example("e", equal, evidence=(Span(0, 11),))
    [hits] = retrieve(Oracle(), [asked], _chunks(equal, 1)[::-1])
    assert [text for text, _ in _found(hits)] == ["aa", "bb", "cc", "dd"]


def test_examples_on_one_document_keep_their_own_gold() -> None:
    """What is selected for one is not what another's evidence, or reference, asks for."""
    document = Document("d", TEXT)
    chunks = _chunks(document, 4)
    parts = ("cat sat", "blind", "Nobody saw", "came back")
    examples = [Example(p, document, evidence=(_span(p),), references=(p,)) for p in parts]
    for oracle in (Oracle(), OracleAnswer(), Neighbours(Oracle(), 0, 0), Fusion((Oracle(),))):  # type: ignore[arg-type]  # take examples
        together = retrieve(oracle, examples, chunks)
        alone = [retrieve(oracle, [example], chunks)[0] for example in examples]
        assert together == alone
        assert all(p in hits[0].chunk.text for p, hits in zip(parts, together, strict=True))
        assert sees_gold(oracle)


def test_an_oracle_without_gold_selects_nothing_and_says_so() -> None:
    """It is no error: a task may have evidence of some examples only."""
    document = Document("d", TEXT)
    chunks = _chunks(document, 4)
    for oracle, word in ((Oracle(), "evidence"), (OracleAnswer(), "reference")):
        with collect_notes() as notes:
            assert retrieve(oracle, [Example("e", document)], chunks) == [[]]
        assert [word in note for note in notes] == [True]
    with collect_notes() as notes:
        evidence = (_span("Nobody"),)
        retrieve(Oracle(), [Example("e", document, evidence=evidence)], chunks)
        retrieve(Oracle(), [Example("e", document, evidence=evidence)], chunks[:1])
    assert notes == ["no chunk contains the gold evidence of a question on this document"]


def test_the_answers_oracle_prefers_chunks_that_contain_a_reference() -> None:
    """As SQuAD compares texts; these alone, in document order, each with score 1."""
    document = Document("d", TEXT)
    begins = [TEXT.index(part) for part in ("The cat", "A dog", "old", "Nobody", "The dog")]
    chunks = [document.chunk(*place) for place in pairwise([*begins, len(TEXT)])]
    asked = [Example("e", document, references=("a DOG!", "cat again"))]
    [hits] = retrieve(OracleAnswer(), asked, chunks)
    assert _found(hits) == [
        ("A dog,", 1.0),
        ("Nobody saw the cat again.", 1.0),
        ("The dog came back.", 1.0),
    ]
    assert retrieve(OracleAnswer(k=2), asked, chunks)[0] == hits[:2]


def test_without_such_a_chunk_it_takes_those_most_like_a_reference() -> None:
    """ROUGE-L's recall, of the best reference; chunks that share no word are left out."""
    document = Document("d", "one two three four five six seven eight nine ten")
    chunks = _chunks(document, 2)
    asked = Example("e", document, references=("three x four five x", "nothing of this"))
    [hits] = retrieve(OracleAnswer(), [asked], chunks)
    assert _found(hits) == [("three four", 0.4), ("five six", 0.2)]
    for reference in ("zero", "the", ""):
        with collect_notes() as notes:
            asked = Example("e", document, references=(reference,))
            assert retrieve(OracleAnswer(), [asked], chunks) == [[]]
        assert len(notes) == 1


def test_mixed_draws_by_seed_and_id() -> None:
    """The share is kept on average; order, company and process change nothing."""
    document = Document("d", TEXT)
    chunks = _chunks(document, 4)
    examples = [Example(f"e{n}", document, "dog", evidence=(_span("Nobody"),)) for n in range(400)]
    mixed = Mixed((Oracle(k=1), First(k=2)), share=0.25)  # type: ignore[arg-type]  # takes examples
    found = retrieve(mixed, examples, chunks)
    first = [len(hits) == 1 for hits in found]
    assert 70 < sum(first) < 130
    assert [retrieve(mixed, [example], chunks)[0] for example in examples[:20]] == found[:20]
    assert retrieve(mixed, examples[::-1], chunks) == found[::-1]
    assert [n for n in range(10) if first[n]] == [1, 3, 4, 6, 7, 8]  # the same in every process
    more = retrieve(Mixed(mixed.retrievers, share=0.5), examples, chunks)
    assert all(len(hits) == 1 for hits, was in zip(more, first, strict=True) if was)
    other = retrieve(Mixed(mixed.retrievers, share=0.25, seed=1), examples, chunks)
    assert [len(hits) == 1 for hits in other] != first
    for share, size in ((1.0, 1), (0.0, 2)):
        hits = retrieve(Mixed(mixed.retrievers, share=share), examples, chunks)
        assert {len(each) for each in hits} == {size}


def test_mixed_shows_the_gold_to_an_oracle_only() -> None:
    """It sees the gold if either of the two does; the other is asked without."""
    document = Document("d", TEXT)
    chunks = _chunks(document, 4)
    asked = [Example(f"e{n}", document, "dog", evidence=(_span("Nobody"),)) for n in range(8)]
    mixed = Mixed((Oracle(), BM25()))  # type: ignore[arg-type]  # takes examples
    assert sees_gold(mixed)
    assert not sees_gold(Mixed((BM25(), First())))
    assert [bool(hits) for hits in retrieve(mixed, asked, chunks)] == [True] * 8
    with pytest.raises(ValueError, match="two"):
        Mixed((BM25(),))


CONFIG = """
tasks:
  rows: {class: JsonLines, path: rows.jsonl, metrics: [f1, recall]}
pipelines:
  gold:
    chunker: {class: FixedTokens, size: 4}
    retriever: {class: Mixed, retrievers: [{class: Oracle, k: 1}, {class: First, k: 1}], share: 1}
    reader: {class: BestSentence}
  plain:
    extends: gold
    retriever: {class: First, k: 1}
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_a_run_with_an_oracle_says_that_it_sees_the_gold(tmp_path: Path, workers: int) -> None:
    """In processes beside as in this one, and each example with its own gold."""
    parts = ("cat sat", "Nobody saw", "came back")
    rows = [{"id": p, "document_id": "d", "question": "?", "evidence": [p]} for p in parts]
    rows[0]["document"] = TEXT
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "mine.yaml").write_text(CONFIG)
    config = [tmp_path / "mine.yaml"]
    done = run(["gold", "plain"], ["rows"], config=config, out=tmp_path / "out", workers=workers)
    assert [result.sees_gold for result in done.results] == [True, False]
    assert done.results[0].scores["mrr"] == 100
    for part, found in zip(parts, done.predictions("gold", "rows"), strict=True):
        [(start, end, _)] = found.hits
        assert TEXT[start:end].strip().startswith(part) or part in TEXT[start:end]
