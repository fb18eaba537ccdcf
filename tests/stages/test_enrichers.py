"""What enrichers make of a document, with the small reader that summarises by copying."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from leporello import enrichers
from leporello.chunkers import Paragraphs
from leporello.combiners import Stuff, Walk
from leporello.config import Pipeline
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.core.coverage import covered
from leporello.core.notes import collect_notes
from leporello.core.passages import Passage, derivation, flat_read, identity, spans_of
from leporello.core.records import Chunk, Document, Example, Output, Read, Section
from leporello.engine.enriching import EnricherRunner
from leporello.engine.selection import select
from leporello.loaders.files import load
from leporello.readers import Embedded
from leporello.retrievers import BM25, All, Compress, TreeSearch
from leporello.testing.texts import long_text


@dataclass(frozen=True)
class Says:
    """Says the same so many times to whatever it reads."""

    text: str
    times: int = 1

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output an input."""
        return [Output(self.text * self.times) for _ in inputs]

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the lengths."""
        return [len(text) for text in texts]


def passages(
    enricher: Any, document: Document | str, size: int = 20, reader: Any = None
) -> list[Passage]:
    """Returns the passages that an enricher makes, and not the chunks among them."""
    made = everything(enricher, document, size, reader)
    return [one for one in made if isinstance(one, Passage)]


def everything(
    enricher: Any, document: Document | str, size: int = 20, reader: Any = None
) -> Sequence[Chunk]:
    """Returns chunks and passages."""
    document = Document("d", document, "Puss") if isinstance(document, str) else document
    stages = Pipeline(Paragraphs(size=size), BM25(), reader or Embedded(), Stuff(), enricher)
    return EnricherRunner(stages).passages_of(divide(stages.chunker, document, ""))


def depth(passage: Chunk) -> int:
    """Returns how many passages stand between one and the document."""
    return max(level for level, _ in derivation(passage))


STORY = long_text(6000)
BAD = {
    "one sentence": "The miller had three sons.",
    "one word repeated": "mill " * 900,
    "equal paragraphs": "The mill turns all day.\n\n" * 90,
    "no words": "... !!\n\n" * 90,
}


@pytest.mark.integration
def test_a_summary_tree_ends_in_few_roots_that_stand_for_all() -> None:
    """All levels are returned, and a passage stands for what is below it."""
    with collect_notes():
        made, again = (passages(enrichers.SummaryTree(width=4, roots=2), STORY) for _ in "12")
    used = {id(source) for one in made for source in one.sources}
    roots = [one for one in made if id(one) not in used]
    assert 1 <= len(roots) <= 4
    assert max(map(depth, roots)) > 1
    assert all(len(one.sources) <= 4 for one in made)
    assert 2 * covered(span for one in roots for span in spans_of(one)) > len(STORY)
    assert [(one.reading, one.spans) for one in again] == [(one.reading, one.spans) for one in made]


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
@pytest.mark.parametrize("name", enrichers.__all__)
def test_what_cannot_be_told_apart_ends_in_passages(name: str, text: str) -> None:
    """Of one sentence, of one word again and again, of none: never endless, never nothing."""
    with collect_notes():
        assert everything(getattr(enrichers, name)(), text)


@pytest.mark.parametrize("said", [Says(""), Says(" \n"), Says("and so on ", 10_000)])
def test_summaries_that_say_nothing_or_too_much_are_dropped(said: Says) -> None:
    """A note tells it; the chunks are still searched."""
    for enricher in (enrichers.SummaryTree(), enrichers.Gists(words=60)):
        with collect_notes() as notes:
            assert passages(enricher, STORY, reader=said) == []
        assert "it was dropped" in notes[0]


FARM = Document(
    "farm",
    "THE MULE\n\nOdile Marsh feeds the mule. Grigor Sande pays for it.\n\nShe sings at noon.\n\n"
    "THE TOWN\n\nIt rains in Vell. The ferry crosses the river at noon.",
    "The Farm",
    sections=(Section("THE MULE", 0, 85), Section("THE TOWN", 85, 148)),
)


def test_context_by_rule_says_where_a_chunk_is_and_who_was_last_named() -> None:
    """Before the chunk, which is read as it stands."""
    made = passages(enrichers.ContextualChunks(), FARM, size=4)
    told = next(one for one in made if "She sings" in one.reading)
    assert (
        told.reading == "The Farm > THE MULE; before: Grigor Sande, Odile Marsh\nShe sings at noon."
    )
    assert told.parts[1] == told.sources[0]


def test_a_page_is_found_by_its_gist_and_read_as_it_stands() -> None:
    """Or its gist alone is read."""
    [page, *_] = passages(enrichers.Gists(words=60), STORY)
    assert page.kind == "page"
    assert page.parts == page.sources
    assert len(page.text) < len(page.reading)
    [gist, *_] = passages(enrichers.Gists(words=60, read="gist"), STORY)
    assert (gist.reading, gist.spans) == (page.text, page.spans)


def test_statements_and_questions_find_the_chunk_that_they_are_of() -> None:
    """Which is read as it stands; by rule, where the reader writes none, with a note."""
    for enricher in (enrichers.Propositions(), enrichers.Questions()):
        with collect_notes() as notes:
            made = passages(enricher, FARM, size=12)
        assert "the reader writes no" in notes[0]
        assert all(one.parts == one.sources for one in made)
    assert any("Who feeds the mule?" in one.text for one in made)
    assert not any("Who ferry" in one.text for one in made)  # `The` is no name


@pytest.mark.parametrize(
    ("enricher", "said"),
    [
        (enrichers.Questions(), "1. Who feeds?\n2. Where is it?\nnothing"),
        (enrichers.Propositions(read="proposition"), "- Odile feeds.\n- The mule eats."),
        (enrichers.ContextualChunks(by="reader"), "Of a farm."),
    ],
)
def test_a_reader_that_writes_is_asked(enricher: Any, said: str) -> None:
    """A line is a question or a statement; its number is none of it."""

    @dataclass(frozen=True)
    class Writes(Says):
        generates: bool = True

    stages = Pipeline(Paragraphs(size=12), BM25(), Writes(said), Stuff(), enricher)
    [one, *_] = EnricherRunner(stages).passages_of(divide(stages.chunker, FARM, ""))
    assert isinstance(one, Passage)
    first = said.splitlines()[0].lstrip("1.- ")
    assert one.text.startswith(first)


@pytest.mark.integration
def test_a_tree_is_searched_and_walked_down_to_chunks() -> None:
    """By the best passages of each level, and by the reader's surest answers."""
    document = Document("d", STORY)
    stages = Pipeline(
        Paragraphs(size=20),
        TreeSearch(BM25(k=10_000), k=3, beam=2),
        Embedded(),
        Stuff(),
        enrichers.SummaryTree(width=4, roots=2),
    )
    words = " ".join(STORY[len(STORY) // 2 :].split()[:12])
    [selection] = select(stages, [Example("q", document, question=words)])
    assert 0 < len(selection.hits) <= 3
    assert not any(isinstance(hit.chunk, Passage) for hit in selection.hits)
    walked = dataclasses.replace(stages, retriever=All(), combiner=Walk(Stuff(), leaves=2))
    [found] = select(walked, [Example("q", document, question=words)])
    combination = walked.combiner.combine(Example("q", document, question=words), found.hits)
    given = drive(combination, Embedded())
    assert 0 < len(given) <= 2
    assert not any(isinstance(chunk, Passage) for chunk in given)


@pytest.mark.parametrize(
    "enricher", [enrichers.Gists(words=60), enrichers.ParentChunks(), enrichers.Propositions()]
)
def test_without_a_tree_passages_are_found_as_they_are(enricher: Any) -> None:
    """The best ones, where the chunks that they were made of are not searched."""
    found = []
    for retriever in (BM25(k=1), TreeSearch(BM25(k=10_000), k=1)):
        stages = Pipeline(Paragraphs(size=20), retriever, Embedded(), Stuff(), enricher)
        with collect_notes():
            [selection] = select(stages, [Example("q", FARM, question="Who feeds the mule?")])
        found.append([(identity(hit.chunk), hit.score) for hit in selection.hits])
    assert found[0] == found[1] != []


def drive(combination: Any, reader: Any) -> tuple[Any, ...]:
    """Runs a combiner to its end; returns the passages of its last read."""
    requests, last = next(combination), tuple[Any, ...]()
    while True:
        reads = [one for one in requests if isinstance(one, Read)]
        outputs = iter(reader.read([flat_read(read) for read in reads]))
        last = reads[-1].passages if reads else last
        try:
            requests = combination.send(
                [next(outputs) if isinstance(one, Read) else False for one in requests]
            )
        except StopIteration:
            return tuple(last)


def test_hits_are_compressed_to_the_sentences_that_matter() -> None:
    """At most the share of their characters; what is left stands for the whole hit."""
    chunks = divide(Paragraphs(size=40), FARM, "")
    example = Example("q", FARM, question="Who feeds the mule?")
    [whole] = retrieve(BM25(k=2), [example], chunks)
    [hits] = retrieve(Compress(BM25(k=2), BM25(k=99), 0.4), [example], chunks)
    made = [hit.chunk for hit in hits if isinstance(hit.chunk, Passage)]
    assert "Odile Marsh feeds the mule." in made[0].reading
    assert sum(len(one.reading) for one in made) <= 0.4 * sum(len(h.chunk.text) for h in whole)
    assert made[0].spans == (whole[0].chunk.span,)


def test_sections_are_summed_up_along_the_headings(tmp_path: Path) -> None:
    """Deepest first; a summary begins with its heading. Without headings a note says so."""
    told = " ".join(f"The cat number {n} went to king {n} in new boots." for n in range(9))
    chapters = "\n\n".join(
        f"# Part {part}\n\n## Chapter {part}.1\n\n{told}\n\n## Chapter {part}.2\n\n{told}"
        for part in "12"
    )
    (tmp_path / "cats.md").write_text(chapters, encoding="utf-8")
    made = passages(enrichers.SectionTree(), load(tmp_path / "cats.md"))
    named = {str(one.parts[0]): one for one in made}
    assert [*named] == [
        "Chapter 1.1",
        "Chapter 1.2",
        "Chapter 2.1",
        "Chapter 2.2",
        "Part 1",
        "Part 2",
    ]
    assert {named["Chapter 1.1"], named["Chapter 1.2"]} <= {*named["Part 1"].sources}
    with collect_notes() as notes:
        assert passages(enrichers.SectionTree(), "No headings here. None at all.") == []
    assert "no headings found" in notes[0]
