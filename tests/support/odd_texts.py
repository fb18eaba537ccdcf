"""Task with unusual texts between regular ones."""

from collections.abc import Iterator
from dataclasses import dataclass

from leporello import Document, Example, Span
from leporello.testing.texts import ODD_QUESTIONS, TEXTS

_REGULAR = "The lamp hangs in the hall. Rain falls on the street.\n\nThe cat sleeps in the mill. "


@dataclass(frozen=True)
class Odd:
    """Task of regular examples, with odd ones between them, in the same and in other documents.

    Attributes:
        odd: Whether to include the odd examples.
        characters: Length of each odd document.
    """

    odd: bool = True
    characters: int = 300
    metrics: tuple[str, ...] = ("f1", "recall")

    def examples(self) -> Iterator[Example]:
        yield from self._about("sound 1")
        for number, (name, make) in enumerate(TEXTS.items()):
            if self.odd:
                document = Document(name, make(self.characters), title=make(9))
                yield Example(f"asked {number}", document, "Where is the lamp?")
                yield Example(f"chosen {number}", document, "Which?", choices=("x", "\u202e"))
        if self.odd:
            yield Example("faulty", Document("faulty", ""), "Why?", fault="its file is gone")
        yield from self._about("sound 2")

    def fingerprint(self) -> str:
        return repr(self)

    def _about(self, name: str) -> Iterator[Example]:
        document = Document(name, _REGULAR * 20)
        gold = (Span(18, 26),)
        yield Example(f"{name} first", document, "Where is the lamp?", evidence=gold)
        if self.odd:
            for number, question in enumerate(ODD_QUESTIONS):
                yield Example(f"{name} odd {number}", document, question, instruction=question)
            yield Example(f"{name} faulty", document, "Why?", fault="its evidence is not there")
        yield Example(f"{name} last", document, "Who sleeps?", choices=("the cat", "the rain"))
