"""Tests of enrichers, with the small reader that summarises by copying."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from one_example import drive
from toy_stages import Returning

from leporello import enrichers
from leporello.chunkers import Paragraphs
from leporello.combiners import Stuff, Walk
from leporello.config import Pipeline
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.core.coverage import covered
from leporello.core.notes import collect_notes
from leporello.core.passages import Passage, derivation, flat_read, identity, spans_of
from leporello.core.records import Chunk, Document, Example, Output, Section
from leporello.engine.enriching import EnricherRunner
from leporello.engine.reading import BatchReaders
from leporello.engine.selection import select
from leporello.loaders.files import load
from leporello.readers import Embedded
from leporello.retrievers import BM25, All, Compress, TreeSearch
from leporello.testing.texts import long_text

EMBEDDED = Embedded()


def passages(enricher: Any, document: Document | str, **options: Any) -> list[Passage]:
    enriched = everything(enricher, document, **options)
    return [passage for passage in enriched if isinstance(passage, Passage)]


def everything(
    enricher: Any, document: Document | str, size: int = 20, reader: Any = None
) -> Sequence[Chunk]:
    document = Document("d", document, "Puss") if isinstance(document, str) else document
    stages = Pipeline(Paragraphs(size=size), BM25(), reader or EMBEDDED, Stuff(), enricher)
    return EnricherRunner(BatchReaders(stages)).passages_of(divide(stages.chunker, document, ""))


def depth(passage: Chunk) -> int:
    return max(level for level, _ in derivation(passage))


STORY = long_text(3000)
BAD = {
    "one sentence": "The miller had three sons.",
    "one word repeated": "mill " * 900,
    "equal paragraphs": "The mill turns all day.\n\n" * 90,
    "no words": "... !!\n\n" * 90,
}


@pytest.mark.integration
def test_a_summary_tree_has_few_roots_that_cover_the_document() -> None:
    with collect_notes():
        tree, again = (passages(enrichers.SummaryTree(width=4, roots=2), STORY) for _ in "12")
    sources = {id(source) for passage in tree for source in passage.sources}
    roots = [passage for passage in tree if id(passage) not in sources]
    assert 1 <= len(roots) <= 4
    assert max(map(depth, roots)) > 1
    assert all(len(passage.sources) <= 4 for passage in tree)
    assert 2 * covered(span for root in roots for span in spans_of(root)) > len(STORY)
    assert [(p.reading, p.spans) for p in again] == [(p.reading, p.spans) for p in tree]


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
@pytest.mark.parametrize("name", enrichers.__all__)
def test_texts_without_differences_can_be_enriched(name: str, text: str) -> None:
    """Texts of one sentence, of equal words or of no words neither loop nor yield nothing."""
    with collect_notes():
        assert everything(getattr(enrichers, name)(), text)


@pytest.mark.parametrize("text", ["", " \n", "and so on " * 10_000], ids=["", "blank", "long"])
def test_empty_and_overlong_summaries_are_dropped(text: str) -> None:
    for enricher in (enrichers.SummaryTree(), enrichers.Gists(words=60)):
        with collect_notes() as notes:
            assert passages(enricher, STORY, reader=Returning(Output(text))) == []
        assert "it was dropped" in notes[0]


FARM = Document(
    "farm",
    "THE MULE\n\nOdile Marsh feeds the mule. Grigor Sande pays for it.\n\nShe sings at noon.\n\n"
    "THE TOWN\n\nIt rains in Vell. The ferry crosses the river at noon.",
    "The Farm",
    sections=(Section("THE MULE", 0, 85), Section("THE TOWN", 85, 148)),
)


def test_context_by_rule_contains_the_headings_and_the_last_names() -> None:
    contextual = passages(enrichers.ContextualChunks(), FARM, size=4)
    song = next(passage for passage in contextual if "She sings" in passage.reading)
    heading, sentence = song.reading.splitlines()
    assert heading == "The Farm > THE MULE; before: Grigor Sande, Odile Marsh"
    assert sentence == "She sings at noon."
    assert song.parts[1] == song.sources[0]


def test_a_page_is_searched_by_its_gist_and_read_unchanged() -> None:
    [page, *_] = passages(enrichers.Gists(words=60), STORY)
    assert page.kind == "page"
    assert page.parts == page.sources
    assert len(page.text) < len(page.reading)


def test_statements_and_questions_lead_to_their_unchanged_chunk() -> None:
    for enricher in (enrichers.Propositions(), enrichers.Questions()):
        with collect_notes() as notes:
            searchable = passages(enricher, FARM, size=12)
        assert "the reader writes no" in notes[0]
        assert all(passage.parts == passage.sources for passage in searchable)
    assert any("Who feeds the mule?" in passage.text for passage in searchable)
    assert not any("Who ferry" in passage.text for passage in searchable)  # `The` is not a name


@pytest.mark.parametrize(
    ("enricher", "text"),
    [
        (enrichers.Questions(), "1. Who feeds?\n2. Where is it?\nnothing"),
        (enrichers.Propositions(), "- Odile feeds.\n- The mule eats."),
        (enrichers.ContextualChunks(by="reader"), "Of a farm."),
    ],
)
def test_a_reader_writes_questions_statements_and_context(enricher: Any, text: str) -> None:
    writer = Returning(Output(text), generates=True)
    [passage, *_] = passages(enricher, FARM, size=12, reader=writer)
    assert passage.text.startswith(text.splitlines()[0].lstrip("1.- "))


@pytest.mark.integration
def test_searching_and_walking_a_tree_end_at_chunks() -> None:
    document = Document("d", STORY)
    tree, search = enrichers.SummaryTree(width=4, roots=2), TreeSearch(BM25(k=10_000), k=3, beam=2)
    stages = Pipeline(Paragraphs(size=20), search, EMBEDDED, Stuff(), tree)
    words = " ".join(STORY[len(STORY) // 2 :].split()[:12])
    [selection] = select(stages, [Example("q", document, question=words)])
    assert 0 < len(selection.hits) <= 3
    assert not any(isinstance(hit.chunk, Passage) for hit in selection.hits)
    walking = dataclasses.replace(stages, retriever=All(), combiner=Walk(Stuff(), leaves=2))
    [selection] = select(walking, [Example("q", document, question=words)])
    example = Example("q", document, question=words)
    read = lambda request: stages.reader.read([flat_read(request)])[0]  # noqa: E731 -- short
    _, rounds = drive(walking.combiner, read, example, selection.hits, writes=False)
    leaves = rounds[-1][-1].passages
    assert 0 < len(leaves) <= 2
    assert not any(isinstance(chunk, Passage) for chunk in leaves)


@pytest.mark.parametrize(
    "enricher", [enrichers.Gists(words=60), enrichers.ParentChunks(), enrichers.Propositions()]
)
def test_without_a_tree_a_tree_search_equals_its_retriever(enricher: Any) -> None:
    rankings = []
    for retriever in (BM25(k=1), TreeSearch(BM25(k=10_000), k=1)):
        stages = Pipeline(Paragraphs(size=20), retriever, EMBEDDED, Stuff(), enricher)
        with collect_notes():
            [selection] = select(stages, [Example("q", FARM, question="Who feeds the mule?")])
        rankings.append([(identity(hit.chunk), hit.score) for hit in selection.hits])
    assert rankings[0] == rankings[1] != []


def test_hits_are_compressed_to_their_best_sentences() -> None:
    chunks = divide(Paragraphs(size=40), FARM, "")
    example = Example("q", FARM, question="Who feeds the mule?")
    [uncompressed] = retrieve(BM25(k=2), [example], chunks)
    [hits] = retrieve(Compress(BM25(k=2), BM25(k=99), 0.4), [example], chunks)
    short = [hit.chunk for hit in hits if isinstance(hit.chunk, Passage)]
    assert "Odile Marsh feeds the mule." in short[0].reading
    characters = sum(len(hit.chunk.text) for hit in uncompressed)
    assert sum(len(passage.reading) for passage in short) <= 0.4 * characters
    assert short[0].spans == (uncompressed[0].chunk.span,)


def test_sections_are_summarised_along_the_headings(tmp_path: Path) -> None:
    """Deepest first; a summary begins with its heading. A note reports missing headings."""
    body = " ".join(f"The cat number {n} went to king {n} in new boots." for n in range(9))
    chapters = "\n\n".join(
        f"# Part {part}\n\n## Chapter {part}.1\n\n{body}\n\n## Chapter {part}.2\n\n{body}"
        for part in "12"
    )
    (tmp_path / "cats.md").write_text(chapters, encoding="utf-8")
    tree = passages(enrichers.SectionTree(), load(tmp_path / "cats.md"))
    summaries = {str(passage.parts[0]): passage for passage in tree}
    numbers = ("1.1", "1.2", "2.1", "2.2")
    assert [*summaries] == [*(f"Chapter {number}" for number in numbers), "Part 1", "Part 2"]
    chapters_of_first = {summaries["Chapter 1.1"], summaries["Chapter 1.2"]}
    assert chapters_of_first <= {*summaries["Part 1"].sources}
    with collect_notes() as notes:
        assert passages(enrichers.SectionTree(), "No headings here. None at all.") == []
    assert "no headings found" in notes[0]
