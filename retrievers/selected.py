"""Selects chunks as MuLD does: sections for a summary, mentions of a character."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leporello.core.coverage import Span, merge
from leporello.core.notes import note
from leporello.core.records import Chunk, Hit, Section
from leporello.retrievers.postings import in_order
from leporello.text.folding import composed, folded
from leporello.text.headings import headings, is_bare, label_of, name_of
from leporello.text.mentions import mentions_in

# Names are compared with a heading's words, ignoring number and case, and with the complete heading
# (`Appendix A`). A final `*` matches any characters, and an initial `*` any words.
_INTRODUCTIONS = (
    *("*introduction*", "*einleitung*", "*einführung*", "*introducción*", "*introduzione*"),
    *("*introdução*", "*inleiding*"),
)
# An abstract mentions nothing from these, and MuLD leaves contents and lists out (decision 13).
_LEFT_OUT = (
    *("contents", "table of contents", "list of*", "index", "glossary"),
    *("abbreviations", "acronyms", "symbols", "nomenclature"),
    *("bibliography", "references", "references and*", "works cited", "literature cited"),
    *("appendix*", "appendices*", "annex*", "supplementary material*"),
    *("acknowledg*", "thanks", "dedication", "declaration*", "copyright*", "colophon"),
    *("curriculum vitae", "vita", "about the author*", "publications"),
    *("inhaltsverzeichnis", "abbildungsverzeichnis", "tabellenverzeichnis", "literatur"),
    *("literaturverzeichnis", "anhang*", "danksagung", "lebenslauf", "erklärung"),
    *("table des matières", "sommaire", "liste des*", "bibliographie", "remerciements"),
    *("índice", "bibliografía", "agradecimientos", "apéndice*", "lista de*"),
)
# Sections before the first chapter that are not chapters.
_FRONT = ("abstract", "summary", "executive summary", "preface", "foreword", "zusammenfassung")


@dataclass(frozen=True)
class Selected:
    """Returns the sections from the introduction on, without appendices etc. (MuLD, section 4).

    A chunk belongs to the section in which it starts. An introduction within a chapter counts only
    in the first chapter, and selects the complete chapter. Without an introduction, all sections
    are selected that are not left out. All scores are 0.
    """

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the selected chunks for each question, in document order; without any, all."""
        selected = _select(chunks)
        if not selected:
            # An empty selection would give an answer without any text.
            note("every section would be left out: all are selected")
            selected = list(chunks)
        return [[Hit(chunk, 0.0) for chunk in selected] for _ in questions]


def _select(chunks: Sequence[Chunk]) -> list[Chunk]:
    document = chunks[0].document
    sections = headings(document)
    out = merge(
        Span(section.start, section.end) for section in sections if _is_any(section, _LEFT_OUT)
    )
    # Every chapter may have an introduction; only the first chapter's begins the selection,
    # since MuLD summarises "from the first introduction section onwards" (decision 13).
    begin = _first(sections, out)
    starts = [section.start for section in sections]

    def section_start(chunk: Chunk) -> int:
        """Returns the chunk's start, or the next section's if it begins with a bare heading."""
        index = bisect_right(starts, chunk.start)
        start = chunk.start
        while 0 < index < len(starts) and is_bare(document.text, *sections[index - 1 : index + 1]):
            start = starts[index]
            index += 1
        return start

    pairs = ((chunk, section_start(chunk)) for chunk in chunks)
    return [chunk for chunk, start in pairs if start >= begin and not _is_in(out, start)]


def _first(sections: Sequence[Section], out: Sequence[Span]) -> int:
    """Returns the first character of the selection: 0 without an introduction."""
    around: list[Section] = []
    had_chapter = False  # whether an earlier top-level section may be the first chapter
    for section in sections:
        while around and around[-1].end <= section.start:
            earlier = around.pop()
            is_front = _is_in(out, earlier.start) or _is_any(earlier, _FRONT)
            had_chapter = had_chapter or not (around or is_front)
        around.append(section)
        if not _is_in(out, section.start) and _is_any(section, _INTRODUCTIONS):
            start = _beginning(around, had_chapter=had_chapter)
            if start is not None:
                return start
    return 0


def _beginning(around: Sequence[Section], *, had_chapter: bool) -> int | None:
    """Returns the first character of an introduction's text; None if it is in a later chapter.

    `around` are sections that contain the introduction, outermost first, and the introduction.
    """
    introduction = around[-1]
    outer = next((section for section in around if _number(section)), introduction)
    number = _number(outer)
    if outer is introduction and len(number) <= 1:
        return None if had_chapter and len(around) > 1 else outer.start
    return outer.start if number[0] <= 1 else None


def _number(section: Section) -> tuple[int, ...]:
    """Returns a section's number; empty for `A Foo`, which may be an article."""
    label = label_of(section.title)
    # `A Study of Bees` begins with an article, not with the number of an appendix.
    return label.path if label and (label.word or label.style != "A") else ()


def _is_any(section: Section, names: Iterable[str]) -> bool:
    titles = {name_of(composed(section.title)), " ".join(folded(section.title).split())}
    return any(_matches(title, folded(name)) for title in titles for name in names)


def _matches(title: str, name: str) -> bool:
    """Returns whether a name matches a title: `appendix*` its start, `*introduction*` any words."""
    position = f" {title} ".find(f" {name.strip('*')}" + ("" if name.endswith("*") else " "))
    matches_end = name.endswith("*") or f" {title}".endswith(f" {name.strip('*')}")
    return matches_end and (position >= 0 if name.startswith("*") else position == 0)


def _is_in(spans: Sequence[Span], character: int) -> bool:
    index = bisect_right(spans, character, key=lambda span: span.start) - 1
    return index >= 0 and character < spans[index].end


@dataclass(frozen=True)
class Mentions:
    """Returns the chunks with the first, the last and the most mentions of the question, a name.

    MuLD (section 4) concatenates the three: `Stuff` with `order: document`. A chunk that meets
    several of the rules is returned once. Its score is the number of mentions that begin in it; if
    several chunks have the most mentions, the first counts. docs/decisions/0014-mentions.md defines
    mentions.
    """

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns at most three chunks for each name, those with more mentions first."""
        return [self._select(question, chunks) for question in questions]

    def _select(self, name: str, chunks: Sequence[Chunk]) -> list[Hit]:
        ordered = sorted(chunks, key=lambda chunk: (chunk.start, chunk.end))
        # By number, not share, of mentions: MuLD's chunks have the same length (decision 14).
        hits = [Hit(c, float(n)) for c, n in zip(ordered, _counts(name, ordered), strict=True) if n]
        if not hits:
            # Chunks without the name would be taken for evidence of a character (decision 14).
            note("no chunk mentions the name: nothing is selected")
            return []
        densest = max(hits, key=lambda hit: hit.score)  # the first if several are equal
        return in_order({hit.chunk.span: hit for hit in (hits[0], hits[-1], densest)}.values())


def _counts(name: str, chunks: Sequence[Chunk]) -> list[int]:
    # By the start only, so that a mention across a border counts once.
    starts = [mention.start for mention in mentions_in(chunks[0].document, name)]
    return [bisect_left(starts, chunk.end) - bisect_left(starts, chunk.start) for chunk in chunks]
