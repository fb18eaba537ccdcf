"""Tests of the retrievers Oracle, OracleAnswer and Mixed."""

from itertools import pairwise
from pathlib import Path

import pytest
from row_files import write_rows

from leporello import Document, Example, Hit, Span
from leporello.chunkers import FixedTokens
from leporello.core.calls.contracts import sees_gold
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.core.notes import collect_notes
from leporello.retrievers import BM25, First, Mixed, Oracle, OracleAnswer
from leporello.runs.run import run

TEXT = "The cat sat. A dog, old and blind, ran off. Nobody saw the cat again. The dog came back."


DOCUMENT = Document("d", TEXT)
CHUNKS = divide(FixedTokens(4), DOCUMENT)
NOBODY = Span(TEXT.index("Nobody"), TEXT.index("Nobody") + 6)


def _texts_and_scores(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.chunk.text.strip(), round(hit.score, 3)) for hit in hits]


def test_the_oracle_ranks_chunks_by_their_share_of_the_evidence() -> None:
    start = TEXT.index("dog, old and blind")
    both = (Span(start, start + 18), NOBODY)
    examples = [Example("e", DOCUMENT, evidence=both)]
    [hits] = retrieve(Oracle(k=9), examples, CHUNKS)
    overlapping = [c for c in CHUNKS if any(s.start < c.end and c.start < s.end for s in both)]
    assert {hit.chunk for hit in hits} == set(overlapping)
    assert sum(hit.score for hit in hits) == pytest.approx(1)
    assert retrieve(Oracle(k=1), examples, CHUNKS) == [hits[:1]]
    equal = Document("d", "aa bb cc dd")
    example = Example("e", equal, evidence=(Span(0, 11),))
    [equal_hits] = retrieve(Oracle(), [example], divide(FixedTokens(1), equal)[::-1])
    assert [text for text, _ in _texts_and_scores(equal_hits)] == ["aa", "bb", "cc", "dd"]


def test_an_oracle_without_gold_returns_no_hits_with_a_note() -> None:
    """This is not an error, since tasks may have evidence for some examples only."""
    for oracle, word in ((Oracle(), "evidence"), (OracleAnswer(), "reference")):
        with collect_notes() as notes:
            assert retrieve(oracle, [Example("e", DOCUMENT)], CHUNKS) == [[]]
        assert [word in note for note in notes] == [True]
    with collect_notes() as notes:
        for chunks in (CHUNKS, CHUNKS[:1]):
            retrieve(Oracle(), [Example("e", DOCUMENT, evidence=(NOBODY,))], chunks)
    assert notes == ["no chunk contains the gold evidence of a question on this document"]


def test_oracle_answer_returns_chunks_that_contain_a_reference() -> None:
    """Texts are normalised as in SQuAD; the chunks are in document order, with score 1."""
    begins = [TEXT.index(part) for part in ("The cat", "A dog", "old", "Nobody", "The dog")]
    chunks = [DOCUMENT.chunk(*place) for place in pairwise([*begins, len(TEXT)])]
    examples = [Example("e", DOCUMENT, references=("a DOG!", "cat again"))]
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
    chunks = divide(FixedTokens(2), document)
    example = Example("e", document, references=("three x four five x", "nothing of this"))
    [hits] = retrieve(OracleAnswer(), [example], chunks)
    assert _texts_and_scores(hits) == [("three four", 0.4), ("five six", 0.2)]
    for reference in ("zero", "the", ""):
        with collect_notes() as notes:
            example = Example("e", document, references=(reference,))
            assert retrieve(OracleAnswer(), [example], chunks) == [[]]
        assert len(notes) == 1


def test_mixed_chooses_by_seed_and_id() -> None:
    examples = [Example(f"e{n}", DOCUMENT, "dog", evidence=(NOBODY,)) for n in range(400)]

    def firsts(share: float, seed: int = 0) -> set[int]:
        """Returns the numbers of the examples for which the first retriever, an oracle, is used."""
        mixed = Mixed((Oracle(k=1), First(k=2)), share=share, seed=seed)  # type: ignore[arg-type]  # retrieves for examples
        lists = retrieve(mixed, examples, CHUNKS)
        return {number for number, hits in enumerate(lists) if len(hits) == 1}

    quarter = firsts(0.25)
    assert 70 < len(quarter) < 130
    assert quarter & {*range(10)} == {1, 3, 4, 6, 7, 8}  # the same in every process
    assert quarter < firsts(0.5)
    assert quarter != firsts(0.25, seed=1)
    assert (firsts(1.0), firsts(0.0)) == ({*range(400)}, set())


def test_mixed_gives_the_gold_only_to_an_oracle() -> None:
    """It counts as seeing the gold if one of its retrievers does."""
    examples = [Example(f"e{n}", DOCUMENT, "dog", evidence=(NOBODY,)) for n in range(8)]
    mixed = Mixed((Oracle(), BM25()))  # type: ignore[arg-type]  # retrieves for examples
    assert sees_gold(mixed)
    assert not sees_gold(Mixed((BM25(), First())))
    assert all(retrieve(mixed, examples, CHUNKS))
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


def test_results_with_an_oracle_are_marked_as_seeing_the_gold(tmp_path: Path) -> None:
    parts = ("cat sat", "Nobody saw", "came back")
    rows = [{"id": p, "document_id": "d", "question": "?", "evidence": [p]} for p in parts]
    rows[0]["document"] = TEXT
    write_rows(tmp_path / "rows.jsonl", *rows)
    (tmp_path / "mine.yaml").write_text(CONFIG)
    config = [tmp_path / "mine.yaml"]
    summary = run(["gold", "plain"], ["rows"], config=config, out=tmp_path / "out", workers=0)
    assert [result.sees_gold for result in summary.results] == [True, False]
    assert summary.results[0].scores["mrr"] == 100
    for part, prediction in zip(parts, summary.predictions("gold", "rows"), strict=True):
        [(start, end, _)] = prediction.hits
        assert TEXT[start:end].strip().startswith(part) or part in TEXT[start:end]
