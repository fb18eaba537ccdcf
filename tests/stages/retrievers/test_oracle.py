"""Tests of the retrievers Oracle, OracleAnswer and Mixed."""

from itertools import pairwise
from pathlib import Path

import pytest
from row_files import write_rows

from leporello import Chunk, Document, Example, Hit, Span
from leporello.chunkers import FixedTokens
from leporello.core.calls.contracts import sees_gold
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.core.notes import collect_notes
from leporello.retrievers import BM25, First, Mixed, Oracle, OracleAnswer
from leporello.runs.run import run

TEXT = "The cat sat. A dog, old and blind, ran off. Nobody saw the cat again. The dog came back."


def _chunks(document: Document, size: int) -> tuple[Chunk, ...]:
    return divide(FixedTokens(size), document)


DOCUMENT = Document("d", TEXT)
CHUNKS = _chunks(DOCUMENT, 4)


def _texts_and_scores(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.chunk.text.strip(), round(hit.score, 3)) for hit in hits]


def _span(part: str, text: str = TEXT) -> Span:
    return Span(text.index(part), text.index(part) + len(part))


def test_the_oracle_ranks_chunks_by_their_share_of_the_evidence() -> None:
    document, chunks = DOCUMENT, CHUNKS
    both = (_span("dog, old and blind"), _span("Nobody"))
    hits = retrieve(Oracle(k=9), [Example("e", document, evidence=both)], chunks)[0]
    overlapping = [c for c in chunks if any(s.start < c.end and c.start < s.end for s in both)]
    assert {hit.chunk for hit in hits} == set(overlapping)
    assert sum(hit.score for hit in hits) == pytest.approx(1)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert retrieve(Oracle(k=1), [Example("e", document, evidence=both)], chunks)[0] == hits[:1]
    equal = Document("d", "aa bb cc dd")
    example = Example("e", equal, evidence=(Span(0, 11),))
    [equal_hits] = retrieve(Oracle(), [example], _chunks(equal, 1)[::-1])
    assert [text for text, _ in _texts_and_scores(equal_hits)] == ["aa", "bb", "cc", "dd"]


def test_an_oracle_without_gold_returns_no_hits_with_a_note() -> None:
    """This is not an error, since tasks may have evidence for some examples only."""
    document, chunks = DOCUMENT, CHUNKS
    for oracle, word in ((Oracle(), "evidence"), (OracleAnswer(), "reference")):
        with collect_notes() as notes:
            assert retrieve(oracle, [Example("e", document)], chunks) == [[]]
        assert [word in note for note in notes] == [True]
    with collect_notes() as notes:
        evidence = (_span("Nobody"),)
        retrieve(Oracle(), [Example("e", document, evidence=evidence)], chunks)
        retrieve(Oracle(), [Example("e", document, evidence=evidence)], chunks[:1])
    assert notes == ["no chunk contains the gold evidence of a question on this document"]


def test_oracle_answer_returns_chunks_that_contain_a_reference() -> None:
    """Texts are normalised as in SQuAD; the chunks are in document order, with score 1."""
    document = Document("d", TEXT)
    begins = [TEXT.index(part) for part in ("The cat", "A dog", "old", "Nobody", "The dog")]
    chunks = [document.chunk(*place) for place in pairwise([*begins, len(TEXT)])]
    examples = [Example("e", document, references=("a DOG!", "cat again"))]
    [hits] = retrieve(OracleAnswer(), examples, chunks)
    assert _texts_and_scores(hits) == [
        ("A dog,", 1.0),
        ("Nobody saw the cat again.", 1.0),
        ("The dog came back.", 1.0),
    ]
    assert retrieve(OracleAnswer(k=2), examples, chunks)[0] == hits[:2]


def test_without_such_a_chunk_oracle_answer_ranks_by_similarity() -> None:
    """Scores are the ROUGE-L recall of the best reference; chunks with score 0 are left out."""
    document = Document("d", "one two three four five six seven eight nine ten")
    chunks = _chunks(document, 2)
    example = Example("e", document, references=("three x four five x", "nothing of this"))
    [hits] = retrieve(OracleAnswer(), [example], chunks)
    assert _texts_and_scores(hits) == [("three four", 0.4), ("five six", 0.2)]
    for reference in ("zero", "the", ""):
        with collect_notes() as notes:
            example = Example("e", document, references=(reference,))
            assert retrieve(OracleAnswer(), [example], chunks) == [[]]
        assert len(notes) == 1


def test_mixed_chooses_by_seed_and_id() -> None:
    document, chunks = DOCUMENT, CHUNKS
    examples = [Example(f"e{n}", document, "dog", evidence=(_span("Nobody"),)) for n in range(400)]
    mixed = Mixed((Oracle(k=1), First(k=2)), share=0.25)  # type: ignore[arg-type]  # retrieves for examples
    lists = retrieve(mixed, examples, chunks)
    is_first = [len(hits) == 1 for hits in lists]
    assert 70 < sum(is_first) < 130
    assert [retrieve(mixed, [example], chunks)[0] for example in examples[:20]] == lists[:20]
    assert retrieve(mixed, examples[::-1], chunks) == lists[::-1]
    assert [n for n in range(10) if is_first[n]] == [1, 3, 4, 6, 7, 8]  # the same in every process
    more = retrieve(Mixed(mixed.retrievers, share=0.5), examples, chunks)
    assert all(len(hits) == 1 for hits, is_oracle in zip(more, is_first, strict=True) if is_oracle)
    reseeded = retrieve(Mixed(mixed.retrievers, share=0.25, seed=1), examples, chunks)
    assert [len(hits) == 1 for hits in reseeded] != is_first
    for share, size in ((1.0, 1), (0.0, 2)):
        lists = retrieve(Mixed(mixed.retrievers, share=share), examples, chunks)
        assert {len(hits) for hits in lists} == {size}


def test_mixed_gives_the_gold_only_to_an_oracle() -> None:
    """It counts as seeing the gold if one of its retrievers does."""
    document, chunks = DOCUMENT, CHUNKS
    examples = [Example(f"e{n}", document, "dog", evidence=(_span("Nobody"),)) for n in range(8)]
    mixed = Mixed((Oracle(), BM25()))  # type: ignore[arg-type]  # retrieves for examples
    assert sees_gold(mixed)
    assert not sees_gold(Mixed((BM25(), First())))
    assert [bool(hits) for hits in retrieve(mixed, examples, chunks)] == [True] * 8
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
def test_results_with_an_oracle_are_marked_as_seeing_the_gold(tmp_path: Path, workers: int) -> None:
    parts = ("cat sat", "Nobody saw", "came back")
    rows = [{"id": p, "document_id": "d", "question": "?", "evidence": [p]} for p in parts]
    rows[0]["document"] = TEXT
    write_rows(tmp_path / "rows.jsonl", *rows)
    (tmp_path / "mine.yaml").write_text(CONFIG)
    config = [tmp_path / "mine.yaml"]
    summary = run(["gold", "plain"], ["rows"], config=config, out=tmp_path / "out", workers=workers)
    assert [result.sees_gold for result in summary.results] == [True, False]
    assert summary.results[0].scores["mrr"] == 100
    for part, prediction in zip(parts, summary.predictions("gold", "rows"), strict=True):
        [(start, end, _)] = prediction.hits
        assert TEXT[start:end].strip().startswith(part) or part in TEXT[start:end]
