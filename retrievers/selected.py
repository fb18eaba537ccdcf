"""The sections that a summary is made of."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leporello.core.coverage import Span, merge
from leporello.core.notes import note
from leporello.core.records import Chunk, Hit, Section
from leporello.text.headings import headings, is_bare, label_of, name_of

_INTRODUCTIONS = (
    *("*introduction*", "*einleitung*", "*einführung*", "*introducción*", "*introduzione*"),
    *("*introdução*", "*inleiding*"),
)
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
# What may stand before a first chapter without being one.
_FRONT = ("abstract", "summary", "executive summary", "preface", "foreword", "zusammenfassung")


@dataclass(frozen=True)
class Selected:
    """The sections from the introduction on, without what no summary tells (MuLD, section 4).

    A chunk belongs to the section that it starts in. An introduction inside a chapter counts only
    inside the first one, and selects that chapter whole. Where there is none, everything is
    selected that is not left out. All chunks score 0, since nothing is known of them.

    A name is compared with a heading's own words, without number and case, and with the heading
    as it stands (`Appendix A`). A `*` at its end stands for any characters, one before it for any
    words.

    Attributes:
        begin: Names of the section from which on everything is selected.
        leave_out: Names of sections that are left out, with all inside them.
    """

    begin: tuple[str, ...] = _INTRODUCTIONS
    leave_out: tuple[str, ...] = _LEFT_OUT

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the selected chunks for each question, in document order.

        If nothing were left, everything is selected, and a note says so.
        """
        selected = self._select(chunks) if chunks else []
        if chunks and not selected:
            note("every section would be left out: all are selected")
            selected = list(chunks)
        return [[Hit(chunk, 0.0) for chunk in selected] for _ in questions]

    def _select(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        document = chunks[0].document
        sections = headings(document)
        out = merge(
            Span(section.start, section.end)
            for section in sections
            if _is_any(section, self.leave_out)
        )
        # An introduction of chapter 4 begins nothing (decision 13).
        begin = self._first(sections, out)
        starts = [section.start for section in sections]

        def belongs(chunk: Chunk) -> int:
            """Returns where it starts; a heading without text belongs to what it heads."""
            index = bisect_right(starts, chunk.start)
            start = chunk.start
            while 0 < index < len(starts) and is_bare(document, sections[index - 1]):
                start = starts[index]
                index += 1
            return start

        sectioned = ((chunk, belongs(chunk)) for chunk in chunks)
        return [chunk for chunk, start in sectioned if start >= begin and not _is_in(out, start)]

    def _first(self, sections: Sequence[Section], out: Sequence[Span]) -> int:
        """Returns from which character on sections are selected: 0 without an introduction."""
        around: list[Section] = []
        had_chapter = False  # whether there was a section, at the top, that may be a first chapter
        for section in sections:
            while around and around[-1].end <= section.start:
                passed = around.pop()
                front = _is_in(out, passed.start) or _is_any(passed, _FRONT)
                had_chapter = had_chapter or not (around or front)
            around.append(section)
            if not _is_in(out, section.start) and _is_any(section, self.begin):
                start = _beginning(around, begun=had_chapter)
                if start is not None:
                    return start
        return 0


def _beginning(around: Sequence[Section], *, begun: bool) -> int | None:
    """Returns where the text begins that an introduction opens; None for one of a later chapter.

    Args:
        around: Sections: the introduction, and before it those that it lies in, outermost first.
        begun: Whether another section stands before these.
    """
    introduction = around[-1]
    outer = next((section for section in around if _number(section)), introduction)
    number = _number(outer)
    if outer is introduction and len(number) <= 1:
        return None if begun and len(around) > 1 else outer.start
    return outer.start if number[0] <= 1 else None


def _number(section: Section) -> tuple[int, ...]:
    """Returns a section's number; `A Foo` may be an article, and counts as none."""
    label = label_of(section.title)
    return label.path if label and (label.word or label.style != "A") else ()


def _is_any(section: Section, names: Iterable[str]) -> bool:
    titles = {name_of(section.title), " ".join(section.title.casefold().split())}
    return any(_matches(title, name.casefold()) for title in titles for name in names)


def _matches(title: str, name: str) -> bool:
    """Says whether a name means a title: `appendix*` its first words, `*introduction*` any."""
    position = f" {title} ".find(f" {name.strip('*')}" + ("" if name.endswith("*") else " "))
    whole = name.endswith("*") or f" {title}".endswith(f" {name.strip('*')}")
    return whole and (position >= 0 if name.startswith("*") else position == 0)


def _is_in(spans: Sequence[Span], character: int) -> bool:
    index = bisect_right(spans, character, key=lambda span: span.start) - 1
    return index >= 0 and character < spans[index].end
