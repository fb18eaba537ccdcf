"""Tests of the locations of spans for people."""

from hypothesis import given
from hypothesis import strategies as st

from leporello import Document, Section, Span
from leporello.core.records import Place
from leporello.text.outline import cited, heading, place_of_span

_SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=12)


@given(_SPANS, st.integers(0, 40))
def test_places_and_headings_surround_a_span(spans: list[tuple[int, int]], offset: int) -> None:
    places = tuple(Place(f"{n}", start, start + size) for n, (start, size) in enumerate(spans))
    sections = tuple(Section(place.name, place.start, place.end) for place in places)
    document = Document("a", "x" * 50, places=places, sections=sections)
    around = [p for p in sorted(places, key=lambda p: p.start) if p.start <= offset < p.end]
    names = [place.name for place in around]
    assert heading(document, offset) == " > ".join(names)
    location = place_of_span(document, Span(offset, offset + 1))
    assert location == (f"{' '.join(names)}, {' > '.join(names)}" if names else "")


def test_without_places_and_headings_characters_are_counted() -> None:
    document = Document("a.pdf", "x" * 9, places=(Place("p. 1", 0, 4), Place("p. 2", 4, 8)))
    assert cited(document, Span(1, 2)) == "a.pdf p. 1"
    assert cited(document, Span(1, 5)) == "a.pdf p. 1 to p. 2"
    assert cited(document, Span(8, 9)) == "a.pdf characters 8–9"
    sections = (Section("0", 0, 9), Section("3", 3, 6, 2), Section("6", 6, 9, 2))
    nested = Document("a.md", "x" * 9, sections=sections)
    assert cited(nested, Span(4, 8)) == "a.md 0 > 3 to 6"
